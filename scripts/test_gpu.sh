#!/usr/bin/env bash
# The CUDA, ROCm, Ascend and Kunlun plugins on simulated vendor libraries, which need no such chip: the conformance kit, and the
# operators without fallback to the host: in float32, complex64 and complex128 on CUDA and ROCm, in float16 and bfloat16 too on Ascend, and in every dtype that the
# chip has on Kunlun. A first run compiles every program for the processor; later ones find them in the user's cache.
#   scripts/test_gpu.sh [BUILD [ARGUMENTS OF PYTEST]]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -eq 0 ] || shift  # the rest is for pytest

simulated=$PWD/$build/tests/simulated/lib
if [ ! -e "$simulated/libsimulated_hiprtc.so" ]; then
  echo "test_gpu.sh: skipped: tests/simulated was not built"
  exit
fi
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -L gpu

export TENON_CUDA_DRIVER=$simulated/libsimulated_cuda_driver.so TENON_CUDA_COMPILER=$simulated/libsimulated_nvrtc.so
export TENON_ROCM_DRIVER=$simulated/libsimulated_hip_driver.so TENON_ROCM_COMPILER=$simulated/libsimulated_hiprtc.so
export TENON_CUDA_COLLECTIVE=$simulated/libsimulated_nccl.so TENON_ROCM_COLLECTIVE=$simulated/libsimulated_rccl.so
export TENON_CUDA_BLAS=$simulated/libsimulated_cublaslt.so TENON_ROCM_BLAS=$simulated/libsimulated_hipblaslt.so
export TENON_CUDA_DNN=$simulated/libsimulated_cudnn.so TENON_ROCM_DNN=$simulated/libsimulated_miopen.so
export TENON_CUDA_TRACER=$simulated/libsimulated_cupti.so TENON_ROCM_TRACER=$simulated/libsimulated_roctracer.so
export TENON_CUDA_FFT=$simulated/libsimulated_cufft.so TENON_ROCM_FFT=$simulated/libsimulated_hipfft.so
export TENON_CUDA_SOLVER=$simulated/libsimulated_cusolver.so TENON_ROCM_SOLVER=$simulated/libsimulated_hipsolver.so
export TENON_CUDA_DENSE_BLAS=$simulated/libsimulated_cublas.so TENON_ROCM_DENSE_BLAS=$simulated/libsimulated_hipblas.so
export TENON_BUILD_DIR=$PWD/$build PYTHONPATH=$PWD/$build/python
# Tests whose names have no device are of the CPU; scripts/test.sh has run them.
for device in cuda hip; do
  TENON_TEST_COMPILING=$device .venv/bin/python -m pytest -q -n "$(nproc)" tests/kernel_c/test_fusion.py
done
TENON_TEST_DEVICES=cuda,hip TENON_FALLBACK=deny .venv/bin/python -m pytest -q -n "$(nproc)" tests/ops -k "(cuda or hip) and (float32 or complex)" "$@"
# The second device has streams, programs and handles of libraries of its own.
TENON_TEST_DEVICES=cuda:1,hip:1 TENON_FALLBACK=deny .venv/bin/python -m pytest -q -n "$(nproc)" tests/ops/test_values.py -k "(cuda or hip) and float32" "$@"

export TENON_ASCEND_RUNTIME=$simulated/libsimulated_ascendcl.so TENON_ASCEND_OPERATORS=$simulated/libsimulated_opapi.so
export TENON_ASCEND_COLLECTIVE=$simulated/libsimulated_hccl.so
.venv/bin/python -m pytest -q -n "$(nproc)" tests/ascend
TENON_TEST_DEVICES=ascend TENON_FALLBACK=deny .venv/bin/python -m pytest -q -n "$(nproc)" tests/ops -k "ascend and (float32 or float16)" "$@"

export TENON_KUNLUN_RUNTIME=$simulated/libsimulated_xpurt.so TENON_KUNLUN_OPERATORS=$simulated/libsimulated_xpuapi.so
.venv/bin/python -m pytest -q -n "$(nproc)" tests/kunlun
# Products of integers, which XDNN lacks, are made of every product of two elements: minutes each on a simulated chip.
TENON_TEST_DEVICES=kunlun TENON_FALLBACK=deny .venv/bin/python -m pytest -q -n "$(nproc)" tests/ops -k "kunlun and (float32 or float16 or not test_products)" "$@"
