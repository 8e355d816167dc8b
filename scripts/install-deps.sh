#!/bin/sh
# Installs the Debian packages that are missing among those named by the arguments' sets, and says which.
#   install-deps.sh build|lab|demo|test|page|bench|fuzz|lint ...
# A LibTorch found through CMAKE_PREFIX_PATH takes the place of Debian's.
set -eu

torch="libtorch-dev libopenblas0-pthread"
for folder in $(echo "${CMAKE_PREFIX_PATH:-}" | tr ':;' '  '); do
  if [ -n "$(find "$folder" -name TorchConfig.cmake 2>/dev/null | head -n 1)" ]; then torch=""; fi
done
build="g++ cmake ninja-build ccache $torch"
lab="$build pkg-config zlib1g-dev nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libtomlplusplus-dev \
  libcurl4-openssl-dev libarchive-dev libssl-dev libturbojpeg0-dev libcmark-dev libjs-chart.js"
# Exchanged with, and measured against.
python="python3 python3-torch python3-torchvision"

wanted=""
for set in "$@"; do
  case "$set" in
    build) wanted="$wanted $build" ;;
    lab) wanted="$wanted $lab" ;;
    demo) wanted="$wanted $lab dataset-fashion-mnist" ;;
    test) wanted="$wanted $lab $python python3-protobuf libgtest-dev" ;;
    page) wanted="$wanted $lab python3 chromium fonts-dejavu-core" ;;
    bench) wanted="$wanted $lab $python libbenchmark-dev" ;;
    fuzz) wanted="$wanted clang libclang-rt-dev libfmt-dev zlib1g-dev nlohmann-json3-dev" ;;
    # clang-tidy reads <omp.h> where LibTorch does; Debian ships clang's own beside its OpenMP library.
    lint) wanted="$wanted clang-format clang-tidy libomp-dev" ;;
    *) echo "install-deps.sh: unknown set '$set'; use build, lab, demo, test, page, bench, fuzz or lint" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install-deps.sh: not a Debian system; going on in the hope that the equivalents are here of:$wanted"
  exit 0
fi

missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' && continue
  case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: not root and no sudo; please run: apt-get install$missing" >&2
    exit 2
  fi
  sudo="sudo"
fi
echo "Installing Debian packages:$missing"
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
