#!/bin/sh
# Installs the Debian packages that are missing among those named by the arguments' sets, and says which.
#   install-deps.sh build|lab|demo|test|page|bench|fuzz|lint ...
# The names are those of Debian 12 and 13, and of Ubuntu, which lacks LibTorch. TORCH=wheel takes PyTorch's wheel instead
# (wheel.sh); a LibTorch found through CMAKE_PREFIX_PATH takes the place of either.
set -eu

torch="libtorch-dev libopenblas0-pthread"
# Headers of the Gloo that Debian's LibTorch was built with, by which processes work together.
gloo="libgloo-dev"
# Exchanged with, and measured against.
python="python3 python3-torch python3-torchvision python3-protobuf"
# Ranks started by mpirun, on hosts that are network namespaces.
ranks="openmpi-bin iproute2 procps"
case "${TORCH:-debian}" in
  debian) ;;
  wheel)
    torch="python3"
    gloo=""
    python="python3"
    "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || torch="python3 python3-venv"
    ;;
  *)
    echo "install-deps.sh: unknown TORCH '$TORCH'; use debian or wheel, or name your own LibTorch in CMAKE_PREFIX_PATH" >&2
    exit 2
    ;;
esac
for folder in $(echo "${CMAKE_PREFIX_PATH:-}" | tr ':;' '  '); do
  if [ -n "$(find "$folder" -name TorchConfig.cmake 2>/dev/null | head -n 1)" ]; then torch=""; gloo=""; fi
done
build="g++ cmake ninja-build ccache $torch"
lab="$build $gloo pkg-config zlib1g-dev nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libtomlplusplus-dev \
  libcurl4-openssl-dev libarchive-dev libssl-dev libturbojpeg0-dev libcmark-dev libjs-chart.js"

# The Python package is built and tested in a virtual environment.
package=""
"${PYTHON:-python3}" -c 'import ensurepip, os, sysconfig, venv; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
  package="python3-dev python3-venv"
# From Debian 13 on the system's torch is new enough for it (but leaves out pybind11, which wheels contain), and what it is
# built and tested with is packaged too.
release=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-testing}")
case "${PYTHON:-$(command -v python3 || echo /usr/bin/python3)} ${TORCH:-debian} $release" in
  *" debian debian 12") ;;
  "/usr/bin/python3 debian debian "*) package="$package python3-pip python3-pytest python3-scikit-build-core \
    python3-mypy python3-matplotlib python3-setuptools pybind11-dev" ;;
esac

wanted=""
modules=""
for set in "$@"; do
  case "$set" in
    build) wanted="$wanted $build" ;;
    lab) wanted="$wanted $lab" ;;
    demo) wanted="$wanted $lab dataset-fashion-mnist" ;;
    test) wanted="$wanted $lab $python $package $ranks libgtest-dev"; modules="numpy protobuf" ;;
    page) wanted="$wanted $lab python3 chromium fonts-dejavu-core" ;;
    bench) wanted="$wanted $lab $python libbenchmark-dev iproute2" ;;
    fuzz) wanted="$wanted clang libclang-rt-dev xz-utils libfmt-dev zlib1g-dev nlohmann-json3-dev libarchive-dev libturbojpeg0-dev libtomlplusplus-dev" ;;
    # clang-tidy reads <omp.h> where LibTorch does; Debian ships clang's own beside its OpenMP library.
    lint) wanted="$wanted clang-format clang-tidy libomp-dev" ;;
    *) echo "install-deps.sh: unknown set '$set'; use build, lab, demo, test, page, bench, fuzz or lint" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install-deps.sh: not a Debian system; going on in the hope that the equivalents are here of:$wanted"
  wanted=""
fi

missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' && continue
  case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
done

if [ -n "$missing" ]; then
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
  for package in $missing; do
    [ -z "$(apt-cache show --quiet=2 "$package" 2>/dev/null)" ] || continue
    case "$package" in
      libtorch-dev | python3-torch*)
        echo "install-deps.sh: this system does not package $package; use PyTorch's wheel: the same command with TORCH=wheel" >&2 ;;
      *) echo "install-deps.sh: this system does not package $package" >&2 ;;
    esac
    exit 2
  done
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
fi
if [ "${TORCH:-debian}" = wheel ]; then "$(dirname "$0")/wheel.sh" $modules; fi
