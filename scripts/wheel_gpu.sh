#!/usr/bin/env bash
# Builds dist/tenon_dl_cuda-*.whl or dist/tenon_dl_rocm-*.whl: programs of the plugin that were compiled ahead of time, and what pip has to
# install with them.
#   scripts/wheel_gpu.sh cuda|rocm [CACHE]
# CACHE is a folder of programs ($XDG_CACHE_HOME/tenon/cuda or hip), such as one from a machine with a GPU. Without it the operators
# of tests/ops run on the simulated device first, in the dtypes that networks use, which takes a quarter of an hour. It needs NVRTC
# and `fatbinary` of the CUDA toolkit, or HIPRTC, and no GPU. ARCHITECTURES, PTX and COMPILER are those of scripts/precompile.py.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python build=build/release
vendor=${1:?expected cuda or rocm}
case $vendor in
  cuda) kind=cuda ;;
  rocm) kind=hip ;;
  *) echo "wheel_gpu.sh: expected cuda or rocm, got $vendor" >&2; exit 2 ;;
esac
cache=${2:-build/programs/tenon/$kind}
if [ $# -eq 1 ]; then
  XDG_CACHE_HOME=$PWD/build/programs TENON_TEST_DEVICES=$kind scripts/test_gpu.sh "$build" \
    -k 'float32 or bfloat16 or float16 or int64 or bool'
fi
package=build/tenon_$vendor
rm -rf "$package"
cp -r "plugins/$vendor/package" "$package"
version=$(cat VERSION)
echo "$version" > "$package/VERSION"
requirements=("tenon-dl==$version")
if [ "$vendor" = cuda ]; then
  chosen=(--architectures "${ARCHITECTURES:-sm_80,sm_90,sm_100}" --ptx "${PTX-compute_80}")
  # NVIDIA's packages of CUDA 13; cuDNN and NCCL carry the version of CUDA in their names.
  requirements+=("nvidia-cuda-nvrtc>=13,<14" "nvidia-cublas>=13,<14" "nvidia-cufft>=12,<13" "nvidia-cusolver>=12,<13"
    "nvidia-cudnn-cu13>=9,<10" "nvidia-nccl-cu13>=2.27,<3")
else
  chosen=(--architectures "${ARCHITECTURES:-gfx90a,gfx942,gfx1100}" --ptx "")
  # PyPI has no packages of ROCm's libraries.
fi
[ -z "${COMPILER-}" ] || chosen+=(--compiler "$COMPILER")
"$python" scripts/precompile.py "$cache" "$package/tenon_$vendor/$vendor.programs" "${chosen[@]}"
printf '%s\n' "${requirements[@]}" > "$package/requirements.txt"
"$python" -m pip wheel --no-deps -w dist "$package"
