// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/cuda declares of cuFFT, beside its header. Compiled, not run.
#include <cufft.h>

#include "fft/fft.hpp"
#include "same_call.hpp"

namespace gpu::fft {
#define CHECK_FFT(member, name, parameters) CHECK_CALL(Status, member, parameters, cufft##name)
TENON_GPU_FFT_FUNCTIONS(CHECK_FFT)

static_assert(kComplexToComplex == CUFFT_C2C && kComplexToComplex + kDouble == CUFFT_Z2Z);
static_assert(kRealToComplex == CUFFT_R2C && kRealToComplex + kDouble == CUFFT_D2Z);
static_assert(kComplexToReal == CUFFT_C2R && kComplexToReal + kDouble == CUFFT_Z2D);
static_assert(kForward == CUFFT_FORWARD && kBackward == CUFFT_INVERSE);
}  // namespace gpu::fft
