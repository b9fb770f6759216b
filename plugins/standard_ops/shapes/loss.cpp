// SPDX-License-Identifier: Apache-2.0
// Losses that are one kernel.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

TENON_INFER(softmax_cross_entropy) {
  const tenon_tensor &x = tensor_of(args[0]), &target = tensor_of(args[1]);
  int32_t axis = x.ndim > 1 ? 1 : 0;
  begin_new(outs[0], x.dtype);
  for (int32_t i = 0; i < x.ndim; ++i)
    if (i != axis) add_axis(outs[0], x.shape[i]);
  Ints wanted = {outs[0].shape, static_cast<size_t>(outs[0].ndim)};
  if (x.ndim == 0 || !std::ranges::equal(shape_of(target), wanted))
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "cross_entropy",
        "expected x [batch, classes, ...] and target [batch, ...] with class numbers, "
        "got shapes %s and %s",
        shape_text(x).c_str(), shape_text(target).c_str());
  if (text_of(args[3]) != "none") begin_new(outs[0], x.dtype);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
