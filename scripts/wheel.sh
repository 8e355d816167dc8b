#!/bin/sh
# Puts PyTorch's wheel into a virtual environment of the build folder, build/wheel/venv, and a link to the LibTorch in it,
# build/wheel/torch, which the wheel presets name.
#   wheel.sh [PACKAGE ...]          packages beside it, for the tests
# WHEEL is what pip is asked for. Where pip looks is its own configuration's to say (PIP_INDEX_URL, pip.conf): the presets want
# a build for CPUs, or CUDA's toolkit beside one for CUDA. PYTHON is the interpreter, which the wheel must be made for.
set -eu
cd "$(dirname "$0")/.."

torch=${WHEEL:-torch==2.13.0}
home=build/wheel
[ "$(head -n 1 $home/installed 2>/dev/null)" = "$torch" ] || rm -f $home/installed
missing=""
for package in "$torch" "$@"; do
  grep -qsxF "$package" $home/installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "Installing into $home/venv:$missing"
mkdir -p $home
[ -x $home/venv/bin/pip ] || "${PYTHON:-python3}" -m venv $home/venv
# With LibTorch named each time, nothing exchanges it for another.
$home/venv/bin/pip install --quiet --disable-pip-version-check "$torch" $missing
root=$($home/venv/bin/python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
ln -sfn "$root" $home/torch
printf '%s\n' $missing >> $home/installed
