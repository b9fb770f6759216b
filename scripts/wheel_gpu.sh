#!/usr/bin/env bash
# Compiles the programs of a GPU's plugin ahead of time, and builds dist/tenon_dl_cuda-*.whl or dist/tenon_dl_rocm-*.whl with them:
#   scripts/wheel_gpu.sh cuda|rocm [CACHE]
# CACHE is a folder of programs ($XDG_CACHE_HOME/tenon/cuda or hip), such as one from a machine with a GPU. Without it the operators
# of tests/ops run on the simulated device first, in the dtypes that networks use, which takes a quarter of an hour. It needs NVRTC
# and `fatbinary` of the CUDA toolkit, or HIPRTC, and no GPU. ARCHITECTURES, PTX and COMPILER are those of scripts/precompile.py.
# scripts/wheel.sh has to have built the plugin; the programs stay in build/programs for its next packages.
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
if [ "$vendor" = cuda ]; then
  chosen=(--architectures "${ARCHITECTURES:-sm_80,sm_90,sm_100}" --ptx "${PTX-compute_80}")
else
  chosen=(--architectures "${ARCHITECTURES:-gfx90a,gfx942,gfx1100}" --ptx "")
fi
[ -z "${COMPILER-}" ] || chosen+=(--compiler "$COMPILER")
mkdir -p build/programs
"$python" scripts/precompile.py "$cache" "build/programs/$vendor.programs" "${chosen[@]}"
scripts/wheel_vendor.sh "$vendor"
