// SPDX-License-Identifier: Apache-2.0
// Converts blocks of low precision floats to float32 and back, with the conversion instructions of
// the processor where it has them.
#pragma once

#include "dtypes.hpp"

#include <tenon/reduced_float.hpp>

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// n elements of a reduced dtype, or of one of the float8 that are stored only, `stride` bytes apart, to dense float32 and back.
void widen(int dtype, const char* from, int64_t stride, float* to, int64_t n);
void narrow(int dtype, const float* from, char* to, int64_t stride, int64_t n);

// One element, for attributes and tails.
float widen_one(int dtype, const void* from);
void narrow_one(int dtype, float x, void* to);

}  // namespace tenon::cpu::TENON_CPU_ISA
