#!/usr/bin/env bash
# Every test that needs no accelerator: C++ through CTest, then Python through pytest, in one process for
# each core (tests/conftest.py says how they are divided).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -eq 0 ] || shift  # the rest is for pytest

# Devices that hang or are slow on purpose wait for clocks most of the time, and so do the tests of them.
waiting='^conformance\.(fault|slow)'
ctest --test-dir "$build" --output-on-failure -j $((4 * $(nproc))) -LE gpu -R "$waiting"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -LE gpu -E "$waiting"

# Devices built as a vendor would build them, against an installed SDK; the operator tests run on them too:
# the example with kernels, and what `tenon new-device` writes, which has none.
sdk=$PWD/build/sdk
rm -rf "$sdk"
cmake --install "$build" --prefix "$sdk" > /dev/null
for folder in examples/custom_device sdk/templates/device; do
  cmake -S "$folder" -B "build/$(basename "$folder")" -G Ninja -DCMAKE_PREFIX_PATH="$sdk" > /dev/null
  scripts/compile.sh "build/$(basename "$folder")"
done
export TENON_TEST_PLUGINS=$PWD/build/custom_device/libtenon_toy.so:$PWD/build/device/libtenon_acme.so
export TENON_TEST_DEVICES=cpu,toy,acme,level1
# The same with its eleven kernels, which may not use the host (tests/primitives).
export TENON_TEST_PLUGINS+=:$PWD/$build/tests/primitives/libtenon_level1.so
export TENON_TEST_PLUGINS+=:$PWD/$build/tests/primitives/libtenon_level1_half.so
export TENON_OVERRIDES=level1_half
export TENON_FALLBACK=warn_once,level1=deny
export TENON_BUILD_DIR=$PWD/$build
export PYTHONPATH=$PWD/$build/python
# The slowest are named, so that a run shows what to draw down.
.venv/bin/python -m pytest -q -n "$(nproc)" --durations=25 --durations-min=4 tests "$@"

# On CUDA and ROCm, with the libraries that stand in for the vendors' (tests/simulated).
if reason=$(.venv/bin/python -c 'import tenon; tenon.device("opencl")' 2>&1); then
  TENON_TEST_DEVICES=opencl TENON_FALLBACK=deny .venv/bin/python -m pytest -q tests/ops -k "opencl and (float32 or complex64)"
else
  echo "test.sh: operators on OpenCL skipped: ${reason##*$'\n'}"
fi

