#!/bin/sh
# Builds the Python package and runs its tests, in build/python.
#   test-python.sh [ARGUMENT ...]         arguments are pytest's
#   test-python.sh --run FILE [...]       runs a program with the package instead
# PYTHON (python3) is used if it has torch 2.6 or newer. If not, scripts/wheel.sh puts PyTorch's wheel into a virtual environment
# of the build folder; where no package index can be reached, this part is skipped, and says so. Under CI=true it never is.
set -eu
cd "$(dirname "$0")/.."

python=$(command -v "${PYTHON:-python3}") || { echo "test-python.sh: there is no ${PYTHON:-python3}" >&2; exit 2; }
home=$PWD/build/python
tools="pytest scikit-build-core ninja numpy mypy matplotlib"
log=$home/setup.log
mkdir -p "$home"

found=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])' 2>/dev/null || echo none)
wanted='import sys; sys.exit(tuple(map(int, sys.argv[1].split(".")[:2])) < (2, 6))'
set_up() {
  if [ "$found" != none ] && "$python" -c "$wanted" "$found"; then
    echo "Python package: with torch $found of $python"
    # What the tests need comes into a folder, so that the interpreter's own are not changed.
    export PYTHONPATH="$home/tools" PATH="$home/tools/bin:$PATH"
    "$python" -c 'import pytest, scikit_build_core, numpy, mypy, matplotlib' 2>/dev/null ||
      "$python" -m pip install --quiet --disable-pip-version-check --upgrade --target "$home/tools" $tools
  else
    reason="no torch"
    [ "$found" = none ] || reason="torch $found, and the package needs 2.6 or newer"
    echo "Python package: $python has $reason; with ${WHEEL:-torch==2.13.0} in build/wheel/venv"
    scripts/wheel.sh $tools || return
    python=$PWD/build/wheel/venv/bin/python
    export PATH="$PWD/build/wheel/venv/bin:$PATH"
  fi
}
# The exit code of the last command is set_up's; its words are shown as they come, its errors kept for the reason.
if ! set_up 2>"$log"; then
  cat "$log" >&2
  echo "*** SKIPPED: the tests of the Python package. It could not be set up:" >&2
  echo "***   $(grep -i error "$log" | tail -n 1)" >&2
  echo "*** Connect to a package index (PIP_INDEX_URL, pip.conf), or name an interpreter with torch 2.6 or newer in PYTHON." >&2
  [ "${CI:-}" != true ] || { echo "*** CI skips nothing: failed." >&2; exit 1; }
  exit 77
fi

# Into a folder of its own, so that no environment is changed. The same object files for every tree, where ccache may see to it.
echo "Building the extension (build/python/build)"
export CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
"$python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --upgrade --target "$home/package" \
  --config-settings build-dir="$home/build" --config-settings cmake.define.SGDPH_PYTHON_TESTS=ON . >"$home/build.log" 2>&1 ||
  { tail -n 60 "$home/build.log" >&2; exit 1; }
export PYTHONPATH="$home/package:${PYTHONPATH:-}" SGDPH_GOLDEN_REPLAY="$home/build/golden_replay" PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if [ "${1:-}" = --run ]; then shift; exec "$python" "$@"; fi
run() { "$python" -m pytest -q -p no:cacheprovider "$@"; }
if [ $# -gt 0 ]; then
  run tests/python "$@"
  exit
fi

# The tests of ranks and of documents take as long as all others: they run beside them, on the other core, and what they say
# comes after.
here="" there=""
for file in tests/python/test_*.py; do
  case $file in */test_ddp.py | */test_docs.py) there="$there $file" ;; *) here="$here $file" ;; esac
done
run $there >"$home/tests.log" 2>&1 & beside=$!
code=0
run $here || code=$?
wait "$beside" || code=$?
cat "$home/tests.log"
exit "$code"
