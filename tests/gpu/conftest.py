# SPDX-License-Identifier: Apache-2.0
"""Plugins of GPU vendors on the simulated libraries (tests/simulated)."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))  # precompile

LIBRARIES = Path(os.environ["TENON_BUILD_DIR"]) / "tests/simulated/lib"
# Kind of the device: the variables that name its libraries.
SIMULATED = {
    "cuda": {
        "TENON_CUDA_DRIVER": "libsimulated_cuda_driver.so",
        "TENON_CUDA_COMPILER": "libsimulated_nvrtc.so",
        "TENON_CUDA_COLLECTIVE": "libsimulated_nccl.so",
        "TENON_CUDA_BLAS": "libsimulated_cublaslt.so",
        "TENON_CUDA_DNN": "libsimulated_cudnn.so",
        "TENON_CUDA_TRACER": "libsimulated_cupti.so",
        "TENON_CUDA_FFT": "libsimulated_cufft.so",
        "TENON_CUDA_SOLVER": "libsimulated_cusolver.so",
        "TENON_CUDA_DENSE_BLAS": "libsimulated_cublas.so",
    },
    "hip": {
        "TENON_ROCM_DRIVER": "libsimulated_hip_driver.so",
        "TENON_ROCM_COMPILER": "libsimulated_hiprtc.so",
        "TENON_ROCM_COLLECTIVE": "libsimulated_rccl.so",
        "TENON_ROCM_BLAS": "libsimulated_hipblaslt.so",
        "TENON_ROCM_DNN": "libsimulated_miopen.so",
        "TENON_ROCM_TRACER": "libsimulated_roctracer.so",
        "TENON_ROCM_FFT": "libsimulated_hipfft.so",
        "TENON_ROCM_SOLVER": "libsimulated_hipsolver.so",
        "TENON_ROCM_DENSE_BLAS": "libsimulated_hipblas.so",
    },
    "ascend": {
        "TENON_ASCEND_RUNTIME": "libsimulated_ascendcl.so",
        "TENON_ASCEND_OPERATORS": "libsimulated_opapi.so",
        "TENON_ASCEND_COLLECTIVE": "libsimulated_hccl.so",
    },
}


# Tests that set another parameter run on those kinds instead.
@pytest.fixture(params=["cuda", "hip"])
def kind(request):
    missing = [
        name for name in SIMULATED[request.param].values() if not (LIBRARIES / name).exists()
    ]
    if missing:
        pytest.skip(
            f"not built: {', '.join(missing)} (ninja simulated_cuda simulated_rocm simulated_ascend)"
        )
    return request.param


@pytest.fixture
def simulated(kind):
    """The variables that name the simulated libraries of the kind, with their paths."""
    return {name: str(LIBRARIES / file) for name, file in SIMULATED[kind].items()}


@pytest.fixture
def run(kind, simulated):
    """Runs Python code in a new process with the simulated libraries; KIND is the kind of the device."""

    def run(code, **environment):
        code = f"import tenon\nKIND = {kind!r}\n" + textwrap.dedent(code)
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **simulated, **environment},
        )

    return run
