#!/usr/bin/env bash
# Installs what building and testing need and the machine lacks: Debian packages, and a Python
# environment in .venv with pinned versions. Does nothing, quickly, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache git binutils libyaml-cpp-dev libxbyak-dev libprotozero-dev
          libgtest-dev libbenchmark-dev openssl python3-dev python3-venv
          valgrind  # counts instructions, for tests of what a call costs
          patch  # tests of the vendors' guide apply its changes
          libopenblas0-pthread  # tests of linear algebra
          libdnnl-dev  # tests of oneDNN: the library, and its headers to compare with
          abigail-tools  # abidiff, for a guard of the contract
          opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd)  # OpenCL: to build the plugin; a driver for tests
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || { echo "bootstrap: expected a Debian or Ubuntu system; install by hand: ${missing[*]}" >&2; exit 1; }
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  echo "bootstrap: installing ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

scripts/environment.sh .venv requirements/dev.txt
