#!/usr/bin/env bash
# The main job: train on real handwritten digits, on the CPU and on a device plugin that is built here,
# out of tree, against the installed SDK alone.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}

sdk=$PWD/build/sdk
rm -rf "$sdk"
cmake --install "$build" --prefix "$sdk" > /dev/null
cmake -S examples/custom_device -B build/custom_device -G Ninja -DCMAKE_PREFIX_PATH="$sdk" > /dev/null
scripts/compile.sh build/custom_device

export PYTHONPATH=$PWD/$build/python
echo
echo "== cpu =="
.venv/bin/python examples/train_digits.py --device cpu
echo
echo "== toy: the plugin in examples/custom_device =="
.venv/bin/python examples/train_digits.py --device toy --plugin build/custom_device/libtenon_toy.so
echo
if reason=$(.venv/bin/python -c 'import tenon; tenon.device("opencl")' 2>&1); then
  echo "== opencl: every operator on the device, or the run fails =="
  TENON_FALLBACK=deny .venv/bin/python examples/train_digits.py --device opencl
else
  echo "== opencl: skipped: ${reason##*$'\n'} =="
fi
