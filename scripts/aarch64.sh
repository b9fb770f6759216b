#!/usr/bin/env bash
# Cross-builds Tenon for aarch64 and runs its C++ tests under qemu's user mode. Python is left out, because
# its development files would have to be those of aarch64 too.
#
# Programs that the build runs, such as the generator, run under qemu too. Boost is headers alone;
# GoogleTest and yaml-cpp come from Debian's packages for arm64.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/aarch64
jobs=${NIGHTLY_JOBS:-$(nproc)}
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo

if ! dpkg-query -W -f='${Status}' libgtest-dev:arm64 2>/dev/null | grep -q 'ok installed'; then
  $sudo dpkg --add-architecture arm64
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends \
    g++-aarch64-linux-gnu qemu-user libgtest-dev:arm64 libyaml-cpp-dev:arm64
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENON_BUILD_PYTHON=OFF \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_FIND_ROOT_PATH=/usr/aarch64-linux-gnu -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;/usr/aarch64-linux-gnu"
cmake --build "$build" -j "$jobs"
# qemu counts no instructions and serves no other processes that tests start by name.
QEMU_LD_PREFIX=/usr/aarch64-linux-gnu ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -E instructions
