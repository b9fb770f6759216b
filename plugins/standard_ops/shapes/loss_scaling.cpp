// SPDX-License-Identifier: Apache-2.0
// Gradients of a scaled loss.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status check_number(const char* name, const tenon_tensor& tensor, tenon_err* err) {
  if (tensor.numel == 1) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, "check_finite_and_unscale",
                      "expected %s to be one number, got shape %s", name,
                      shape_text(tensor).c_str());
}

}  // namespace

TENON_INFER(check_finite_and_unscale) {
  const tenon_tensor &inverse_scale = tensor_of(args[1]), &found_inf = tensor_of(args[2]);
  if (tenon_status status = check_number("inverse_scale", inverse_scale, err)) return status;
  if (tenon_status status = check_number("found_inf", found_inf, err)) return status;
  set_like(outs[0], tensor_of(args[0]));
  set_like(outs[1], found_inf);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
