// SPDX-License-Identifier: Apache-2.0
// The operators that redistributions and rules call on the parts of a rank.
#pragma once

#include <tenon/ops/call.hpp>

namespace tenon::sharding {

using call::Operator;

inline Tensor run(Scope& scope, Operator& op, std::initializer_list<tenon_value> args) {
  tenon_value values[8];
  std::copy(args.begin(), args.end(), values);
  return call::result(scope, op, values, static_cast<uint32_t>(args.size()));
}
inline tenon_value box(const Tensor& tensor) { return tensor ? boxed(tensor.get()) : kNoValue; }

namespace op {
inline constinit Operator narrow("tenon::narrow"), zeros_like("tenon::zeros_like"),
    clone("tenon::clone"), multiply("tenon::multiply"), full("tenon::full");
}  // namespace op

}  // namespace tenon::sharding
