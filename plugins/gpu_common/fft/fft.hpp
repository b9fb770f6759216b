// SPDX-License-Identifier: Apache-2.0
// The vendor's library of Fourier transforms, cuFFT or hipFFT, opened at run time. Both have the same functions under
// different prefixes, and the same numbers; their handles differ.
//
// Sources of the signatures: cufft.h of CUDA 13.0 and the hipFFT API reference (1.0). tests/gpu/declarations compares them
// with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/driver.hpp"
#include "runtime/vendor.hpp"

namespace gpu::fft {

using Status = int;  // cufftResult, hipfftResult: 0 is success
using Handle = vendor::FftHandle;
using Number = long long;

// X(member, name without the vendor's prefix, parameters)
// clang-format off
#define TENON_GPU_FFT_FUNCTIONS(X)                                                                     \
  X(create, Create, (Handle* out))                                                                     \
  X(destroy, Destroy, (Handle))                                                                        \
  X(set_auto_allocation, SetAutoAllocation, (Handle, int allocate))                                    \
  X(make, MakePlanMany64,                                                                              \
    (Handle, int rank, Number* n, Number* in_embed, Number in_stride, Number in_distance,              \
     Number* out_embed, Number out_stride, Number out_distance, int type, Number batch,                \
     size_t* workspace_bytes))                                                                         \
  X(set_work_area, SetWorkArea, (Handle, void* workspace))                                             \
  X(set_stream, SetStream, (Handle, Stream))                                                           \
  X(c2c, ExecC2C, (Handle, void* in, void* out, int direction))                                        \
  X(z2z, ExecZ2Z, (Handle, void* in, void* out, int direction))                                        \
  X(r2c, ExecR2C, (Handle, void* in, void* out))                                                       \
  X(d2z, ExecD2Z, (Handle, void* in, void* out))                                                       \
  X(c2r, ExecC2R, (Handle, void* in, void* out))                                                       \
  X(z2d, ExecZ2D, (Handle, void* in, void* out))
// clang-format on

struct Library {
#define TENON_GPU_MEMBER(member, name, parameters) Status(*member) parameters;
  TENON_GPU_FFT_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

// cufftType, hipfftType; those of float64 are kDouble more.
enum Type : int { kComplexToComplex = 0x29, kRealToComplex = 0x2a, kComplexToReal = 0x2c };
inline constexpr int kDouble = 0x40;
inline constexpr int kForward = -1, kBackward = 1;

// Opens the library at the first call. NULL: it is absent, which the log says, and library_problem what to install.
const Library* library();
const char* library_name();  // NULL: absent
const char* library_problem();

}  // namespace gpu::fft
