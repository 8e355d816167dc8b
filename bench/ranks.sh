#!/bin/sh
# Two hosts, which are network namespaces, with a link of RATE between them (default 300mbit), and a rank on each.
#   ranks.sh PROGRAM [RATE]
set -eu
program=$1
rate=${2:-300mbit}
tag=sgdphb$$
skip() {
  echo "SKIPPED: the benchmark of two ranks over a slow link needs $1; nothing was measured" >&2
  exit 0
}
command -v ip >/dev/null && command -v tc >/dev/null || skip "ip and tc (Debian: iproute2)"
[ -x "$program" ] || skip "a build with Gloo's headers (Debian: libgloo-dev)"
ip netns add "${tag}a" 2>/dev/null || skip "root, to make network namespaces"
trap 'ip netns del "${tag}a"; ip netns del "${tag}b" 2>/dev/null || true' EXIT
ip netns add "${tag}b"
ip -n "${tag}a" link add eth0 type veth peer name eth0 netns "${tag}b"
for host in a b; do
  [ $host = a ] && address=10.93.8.10 || address=10.93.8.11
  ip -n "$tag$host" addr add $address/24 dev eth0
  ip -n "$tag$host" link set lo up
  ip -n "$tag$host" link set eth0 up
  ip netns exec "$tag$host" tc qdisc add dev eth0 root tbf rate "$rate" burst 64kb latency 400ms ||
    skip "a kernel with the token bucket filter (tc tbf)"
done
echo "2 ranks, link of $rate, 8 x (512x512 and batch norm), 8.4 MB of gradients, batches of 256, a thread each:"
export WORLD_SIZE=2 MASTER_ADDR=10.93.8.10 MASTER_PORT=29500 OMP_NUM_THREADS=1
RANK=1 timeout 300 ip netns exec "${tag}b" "$program" &
RANK=0 timeout 300 ip netns exec "${tag}a" "$program"
wait
