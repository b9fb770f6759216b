// SPDX-License-Identifier: Apache-2.0
// What quantisers of blocks of 32 and of 256 numbers have in common.
#pragma once

#include "composites/compose.hpp"

#include <string_view>

namespace tenon::standard_ops {

// The bytes of numbers [count, 1] as float16, rounded to nearest, ties to even: uint8 [count, 2].
Tensor bytes_of_float16(Scope& scope, const Tensor& numbers);

// 1 / step, and 0 where that is 0.
Tensor inverse_of(Scope& scope, const Tensor& step);

// Floats as codes from `low` to `high`; NaN as 0.
Tensor codes_of(Scope& scope, const Tensor& levels, double low, double high, int32_t dtype);

// Whether `format` has blocks of 256 numbers that can be written.
bool has_large_blocks(std::string_view format);

// Rows of float32 [blocks, 256] as bytes [blocks, bytes of a block] of such a format.
Tensor quantized_large(Scope& scope, const Tensor& x, std::string_view format);

}  // namespace tenon::standard_ops
