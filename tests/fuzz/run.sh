#!/usr/bin/env bash
# Fuzzes the readers of files under sanitizers: tests/fuzz/run.sh [inputs for each reader] [folder to work in] [readers]
# Prints a line for each and fails on a finding, which stays in the folder. Begins with a well-formed input of each and with
# those of tests/fuzz/corpus.tar.xz; FUZZ_KEEP=1 puts there what was found, without what reaches nothing new. FUZZ_SANITIZE=
# (empty) leaves the sanitizers out, which is many times faster: for inputs by the million, beside fewer with them. Needs
# clang, fmt, zlib, nlohmann-json, libarchive, libturbojpeg, toml++ and xz.
set -euo pipefail
runs=${1:-100000}
work=${2:-}
if [ -z "$work" ]; then
  work=$(mktemp -d)
  scratch=$work
fi
mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$(dirname "$0")/../.."
compiler=${FUZZ_CXX:-clang++}
readers=${3:-idx cifar csv event_file checkpoint zip pickle torch_file packed_records recipe run_log archive jpeg}
command -v "$compiler" >/dev/null || { echo "tests/fuzz/run.sh: $compiler is missing; install clang" >&2; exit 2; }

# A well-formed input to begin with; $1: reader, $2: file.
seed() {
  case $1 in
    idx) printf '\0\0\010\002\0\0\0\002\0\0\0\003abcdef' >"$2" ;;
    cifar) { printf '\003\007'; head -c 3072 /dev/zero; } >"$2"; { printf '\003'; head -c 3072 /dev/zero; } >"$2.ten" ;;
    event_file) printf '\010\001\020\254\002\052\012\012\010\012\001a\025\0\0\0\077' >"$2" ;;
    csv) printf 'filename,label\nn01_1.jpg,n01\r\n"n02, ""1"".jpg",n02\n' >"$2" ;;
    # One member "a/b" that holds "xy".
    zip)
      { printf 'PK\003\004\0\0\0\0\0\0\0\0\0\0\231\050\346\217\002\0\0\0\002\0\0\0\003\0\0\0a/bxy'
        printf 'PK\001\002\0\0\0\0\0\0\0\0\0\0\0\0\231\050\346\217\002\0\0\0\002\0\0\0\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a/b'
        printf 'PK\005\006\0\0\0\0\001\0\001\0\061\0\0\0\043\0\0\0\0\0'; } >"$2" ;;
    # A dict with one tensor of 2 x 3 floats in a storage of six.
    pickle | torch_file)
      { printf '\200\002}q\0X\001\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\007\0\0\0storagectorch\nFloatStorage\n'
        printf 'X\001\0\0\0000X\003\0\0\0cpuK\006tQK\0K\002K\003\206K\003K\001\206\211ccollections\nOrderedDict\n)RtRs.'; } >"$2" ;;
    # A run of two epochs whose header and settings are shared in part.
    packed_records)
      printf '%s' '{"run":"a","header":{"seed":1},"settings":{"opt":"sgdm"},"epochs":2,' \
        '"columns":{"epoch":[1,2],"cost":{"peak":5}},"end":{"status":"finished"}}' >"$2" ;;
    recipe)
      printf '%s\n' 'title = "t"' '[run]' 'opt = "sgdm"' 'epochs = 3' 'lr = 0.5' 'lr_milestones = [1, 2]' 'data_path = "a b"' \
        '[optimizer.sgd-ph]' 'lr = 0.1' 'betas = [0.9, 0.99]' 'rule = "last"' >"$2" ;;
    run_log)
      printf '%s\n' '{"type":"header","cpu":"c","seed":1,"settings":{"opt":"sgdm"}}' \
        '{"type":"epoch","epoch":1,"test_top1":50.5,"cost":{"train_seconds":1.5}}' \
        '{"type":"end","status":"finished","cost":{"train_seconds":1.5,"peak_memory_bytes":100}}' >"$2" ;;
    archive)
      ( cd "$(dirname "$2")"; mkdir set; echo 1 >set/a; echo 22 >set/b
        tar -czf seed --mtime=@0 set; tar -cf seed.tar --mtime=@0 set; tar -cJf seed.xz --mtime=@0 set; rm -r set ) ;;
    # A grey picture of 8 x 8 pixels, baseline.
    jpeg)
      { printf '\377\330\377\333\0\103\0'; head -c 64 /dev/zero | tr '\0' '\001'
        printf '\377\300\0\013\010\0\010\0\010\001\001\021\0\377\304\0\024\0\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
        printf '\377\304\0\024\020\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\377\332\0\010\001\001\0\0\077\0\077\377\331'; } >"$2" ;;
    checkpoint)
      local header='{"meta":{"step":3},"sections":[{"name":"a","bytes":2,"crc32":2659403885},{"name":"b","bytes":0,"crc32":0}]}'
      { printf '\001\0'; printf "\\$(printf %03o ${#header})\\0"; printf '%sab' "$header"; } >"$2" ;;
  esac
}

# Assertions of the libraries that we read by: they are built without, and refuse after them what they assert.
sanitize=${FUZZ_SANITIZE-address,undefined}
flags="-std=c++17 -O1 -g -DNDEBUG -fno-omit-frame-pointer -fsanitize=fuzzer-no-link${sanitize:+,$sanitize} -fno-sanitize-recover=all"
flags="$flags -Iinclude -Ilab -Itests -Itests/fuzz"
mkdir -p "$work/objects"
rm -f "$work"/objects/* "$work/rooms.a"
printf '%s\n' lab/base/*.cpp lab/formats/*.cpp lab/records/{packed_records,run_log,run_record,inspect_record}.cpp \
  lab/settings/*.cpp lab/optimizers/options.cpp src/schema.cpp lab/fetch/unpack.cpp lab/data/jpeg.cpp \
  | xargs -P "$(nproc)" -I {} sh -c "$compiler $flags -c {} -o $work/objects/\$(echo {} | tr / _).o"
ar rcs "$work/rooms.a" "$work"/objects/*.o

failed=0
tar -tJf tests/fuzz/corpus.tar.xz >"$work/known"
for reader in $readers; do
  corpus=$work/$reader
  rm -rf "$corpus"
  mkdir -p "$corpus"
  seed "$reader" "$corpus/seed"
  if grep -q "^./$reader/$" "$work/known"; then tar -xJf tests/fuzz/corpus.tar.xz -C "$work" "./$reader"; fi
  # shellcheck disable=SC2086
  "$compiler" $flags -fsanitize=fuzzer "tests/fuzz/${reader}_fuzz.cpp" "$work/rooms.a" -lfmt -lz -larchive -lturbojpeg -o "$work/${reader}_fuzz"
  if "$work/${reader}_fuzz" -runs="$runs" -seed=1 -max_len=10000 -rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10 \
    -artifact_prefix="$work/$reader-" "$corpus" >"$work/$reader.log" 2>&1; then
    echo "$reader: $(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 inputs in \2 s, no finding/p' "$work/$reader.log")"
  else
    failed=1
    echo "$reader: finding, see $work/$reader.log" >&2
    grep -m 3 -E 'ERROR|SUMMARY|not so|terminate' "$work/$reader.log" >&2 || true
  fi
done
if [ -n "${FUZZ_KEEP:-}" ]; then
  kept=$work/kept
  rm -rf "$kept"
  for reader in $readers; do
    mkdir -p "$kept/$reader"
    "$work/${reader}_fuzz" -merge=1 -max_len=2000 -rss_limit_mb=1024 "$kept/$reader" "$work/$reader" >/dev/null 2>&1
    ls -S "$kept/$reader" | head -n -250 | while read -r large; do rm "$kept/$reader/$large"; done  # the tree stays small
  done
  tar -cJf tests/fuzz/corpus.tar.xz --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$kept" .
fi
if [ "$failed" = 0 ] && [ -n "${scratch:-}" ]; then rm -rf "$scratch"; fi
exit "$failed"
