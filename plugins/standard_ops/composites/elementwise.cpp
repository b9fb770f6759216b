// SPDX-License-Identifier: Apache-2.0
// Element-by-element operators that depend on limits of the dtype.
#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

double largest_finite(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3: return 448.0;
    case TENON_DTYPE_F8E5M2: return 57344.0;
    case TENON_DTYPE_F16: return 65504.0;
    case TENON_DTYPE_BF16: return 0x1.fep127;
    case TENON_DTYPE_F64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

}  // namespace

TENON_DECOMPOSE(nan_to_num) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (!(shapes::bit(x->dtype) & shapes::kFloats)) return finish(scope, outs, ops::clone(scope, x));
  double infinity = std::numeric_limits<double>::infinity(), largest = largest_finite(x->dtype);
  double posinf = is_none(args[2]) ? largest : float_of(args[2]);
  double neginf = is_none(args[3]) ? -largest : float_of(args[3]);
  Tensor result = ops::where(scope, ops::isnan(scope, x), float_of(args[1]), x);
  result = ops::where(scope, ops::equal(scope, x, infinity), posinf, result);
  return finish(scope, outs, ops::where(scope, ops::equal(scope, x, -infinity), neginf, result));
}

}  // namespace tenon::standard_ops
