// SPDX-License-Identifier: Apache-2.0
// What quantisers of blocks of 32 and of 256 numbers have in common.
#pragma once

#include "composites/compose.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tenon::standard_ops {

// The bytes of numbers [count, 1] as float16, rounded to nearest, ties to even: uint8 [count, 2].
Tensor bytes_of_float16(Scope& scope, const Tensor& numbers);

// Numbers as float16 rounds them, in float32.
Tensor rounded_to_float16(Scope& scope, const Tensor& numbers);

// 1 / step, and 0 where that is 0.
Tensor inverse_of(Scope& scope, const Tensor& step);

// Floats as codes from `low` to `high`; NaN as 0.
Tensor codes_of(Scope& scope, const Tensor& levels, double low, double high, int32_t dtype);

// Codes [count, 32] below 16 as 16 bytes: the first half in the lower bits.
Tensor paired(Scope& scope, const Tensor& codes);

// Fields of `bits` bits of codes [blocks, outer * parts * inner]: bytes [blocks, outer * inner] whose field k is that of part k.
Tensor joined(Scope& scope, const Tensor& codes, int64_t outer, int64_t parts, int64_t inner,
              int64_t bits);

// Of each row of x [rows, n]: the sum; the element of the largest magnitude, with its sign; the sum of squares of what
// `made` differs by.
Tensor sum_of(Scope& scope, const Tensor& x);
Tensor extreme_of(Scope& scope, const Tensor& x);
Tensor squared_error(Scope& scope, const Tensor& x, const Tensor& made);

// x / factor, as the nearest whole number from `low` to `high`.
Tensor levels_of(Scope& scope, const Tensor& x, const Tensor& factor, double low, double high);

// Calls f(part, blocks) for parts of x [blocks, n] that fit a cache with what is computed of them, and joins what it gives.
constexpr int64_t kBlocksAtOnce = 256;
template <class F>
Tensor by_parts(Scope& scope, const Tensor& x, F&& f) {
  std::vector<Tensor> parts;
  if (!scope.ok()) return {};
  for (int64_t first = 0; first < x->shape[0] && scope.ok(); first += kBlocksAtOnce) {
    const int64_t blocks = std::min(kBlocksAtOnce, x->shape[0] - first);
    parts.push_back(f(ops::narrow(scope, x, 0, first, blocks), blocks));
  }
  return parts.size() == 1 ? parts[0] : ops::concat(scope, parts, 0);
}

// Whether `format` has blocks of 256 numbers with codes in equal steps, and can be written.
bool has_large_blocks(std::string_view format);

// Rows of float32 [blocks, 256] as bytes [blocks, bytes of a block] of such a format.
Tensor quantized_large(Scope& scope, const Tensor& x, std::string_view format);

// Rows of float32 [blocks, 32] as bytes of iq4_nl, and [blocks, 256] as bytes of iq4_xs.
Tensor quantized_iq4_nl(Scope& scope, const Tensor& x);
Tensor quantized_iq4_xs(Scope& scope, const Tensor& x);

}  // namespace tenon::standard_ops
