// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/rocm declares of hipFFT, beside its header. Compiled, not run.
#define __HIP_PLATFORM_AMD__ 1
#include <hipfft/hipfft.h>

#include "fft/fft.hpp"
#include "same_call.hpp"

namespace gpu::fft {
#define CHECK_FFT(member, name, parameters) CHECK_CALL(Status, member, parameters, hipfft##name)
TENON_GPU_FFT_FUNCTIONS(CHECK_FFT)

static_assert(kComplexToComplex == HIPFFT_C2C && kComplexToComplex + kDouble == HIPFFT_Z2Z);
static_assert(kRealToComplex == HIPFFT_R2C && kRealToComplex + kDouble == HIPFFT_D2Z);
static_assert(kComplexToReal == HIPFFT_C2R && kComplexToReal + kDouble == HIPFFT_Z2D);
static_assert(kForward == HIPFFT_FORWARD && kBackward == HIPFFT_BACKWARD);
}  // namespace gpu::fft
