#!/usr/bin/env bash
# Builds dist/tenon_cuda-*.whl: programs of the CUDA plugin that were compiled ahead of time, and what pip has to install with them.
#   scripts/wheel_cuda.sh [CACHE]
# CACHE is a folder of programs ($XDG_CACHE_HOME/tenon/cuda), such as one from a machine with a GPU. Without it the operators of
# tests/ops run on the simulated device first, in the dtypes that networks use, which takes a quarter of an hour. It needs NVRTC
# and `fatbinary` of the CUDA toolkit, and no GPU. ARCHITECTURES and PTX are those of scripts/precompile.py.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python build=build/release
cache=${1:-build/programs/tenon/cuda}
if [ $# -eq 0 ]; then
  XDG_CACHE_HOME=$PWD/build/programs TENON_TEST_DEVICES=cuda scripts/test_gpu.sh "$build" \
    -k 'float32 or bfloat16 or float16 or int64 or bool'
fi
package=build/tenon_cuda
rm -rf "$package"
cp -r plugins/cuda/package "$package"
"$python" scripts/precompile.py "$cache" "$package/tenon_cuda/cuda.programs" \
  --architectures "${ARCHITECTURES:-sm_80,sm_90,sm_100}" --ptx "${PTX-compute_80}"
version=$(cat VERSION)
echo "$version" > "$package/VERSION"
# NVIDIA's packages of CUDA 13; cuDNN and NCCL carry the version of CUDA in their names.
printf '%s\n' "tenon==$version" "nvidia-cuda-nvrtc>=13,<14" "nvidia-cublas>=13,<14" "nvidia-cudnn-cu13>=9,<10" \
  "nvidia-nccl-cu13>=2.27,<3" > "$package/requirements.txt"
"$python" -m pip wheel --no-deps -w dist "$package"
