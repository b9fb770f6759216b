// SPDX-License-Identifier: Apache-2.0
// The two operators that the host itself calls, on devices that have primitive_copy instead.
#include "lowering/lower.hpp"

namespace tenon::standard_ops {

TENON_DECOMPOSE(cast) {
  Scope scope(err);
  return finish(scope, outs,
                primitive::copy(scope, args[0], static_cast<int32_t>(int_of(args[1]))));
}

// An output that was given is passed on: strided memory is written by no other kernel.
TENON_DECOMPOSE(clone) {
  static constinit call::Operator copy("primitive_copy");
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  tenon_value values[] = {boxed(x.get()), boxed_dtype(x->dtype)};
  copy.run(scope, values, 2, outs, 1);
  return scope.status();
}

}  // namespace tenon::standard_ops
