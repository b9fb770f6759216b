#!/usr/bin/env bash
# Cross-builds Tenon for aarch64 and runs its C++ tests under qemu's user mode. Python is left out, because
# its development files would have to be those of aarch64 too.
#   scripts/aarch64.sh           everything
#   scripts/aarch64.sh TEST ...  builds these programs of tests and runs them: cpu_vec_test_baseline
#
# Programs that the build runs, such as the generator, run under qemu too. GoogleTest and yaml-cpp come from
# Debian's packages for arm64, which are unpacked into the build folder: installed, they would replace those of
# this machine's own architecture.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/aarch64
sysroot=$build/sysroot
jobs=${NIGHTLY_JOBS:-$(nproc)}
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo

if [ ! -e "$sysroot/done" ]; then
  $sudo dpkg --add-architecture arm64
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends g++-aarch64-linux-gnu qemu-user
  mkdir -p "$sysroot"
  (cd "$sysroot" && apt-get download -qq {libgtest-dev,libyaml-cpp-dev,libyaml-cpp0.7}:arm64)
  for package in "$sysroot"/*.deb; do dpkg -x "$package" "$sysroot"; done
  touch "$sysroot/done"
fi
# The C library of the cross compiler comes first: its loader hangs in the first thread that it starts if the C library
# is another one, such as that of a system with packages for arm64.
libraries=/usr/aarch64-linux-gnu/lib:$sysroot/usr/lib/aarch64-linux-gnu

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENON_BUILD_PYTHON=OFF \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_FIND_ROOT_PATH="$sysroot/usr;/usr/aarch64-linux-gnu" -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=$libraries"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
if [ $# -gt 0 ]; then
  scripts/compile.sh "$build" -j "$jobs" --target "$@"
  ctest --test-dir "$build" --output-on-failure -R "^($(IFS='|'; echo "$*"))\$"
  exit
fi
scripts/compile.sh "$build" -j "$jobs"
# valgrind does not run under qemu, so that the tests of instructions are left out.
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -E instructions
