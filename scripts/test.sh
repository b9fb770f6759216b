#!/usr/bin/env bash
# Every test that needs no accelerator: C++ through CTest, then Python through pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}

ctest --test-dir "$build" --output-on-failure -j "$(nproc)"

# The vendor's plugin of the examples, built as a vendor would; the operator tests run on it too.
sdk=$PWD/build/sdk
rm -rf "$sdk"
cmake --install "$build" --prefix "$sdk" > /dev/null
cmake -S examples/custom_device -B build/custom_device -G Ninja -DCMAKE_PREFIX_PATH="$sdk" > /dev/null
cmake --build build/custom_device
export TENON_TEST_PLUGINS=$PWD/build/custom_device/libtenon_toy.so
export TENON_TEST_DEVICES=cpu,toy
export TENON_BUILD_DIR=$PWD/$build
export PYTHONPATH=$PWD/$build/python
.venv/bin/python -m pytest -q tests "$@"
