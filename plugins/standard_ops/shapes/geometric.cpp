// SPDX-License-Identifier: Apache-2.0
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

namespace {

// [count, columns], of rows [rows, columns] with a segment for each.
tenon_status infer_segments(const char* op, const tenon_value* args, int32_t dtype, tenon_meta& out,
                            tenon_err* err) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 2, "[rows, columns]", err));
  const int64_t rows[] = {x.shape[0]};
  if (!std::ranges::equal(shape_of(index), rows) || int_of(args[2]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected index of shape [%lld] and a count of at least 0, got %s and %lld",
                        ll(rows[0]), shape_text(index).c_str(), ll(int_of(args[2])));
  const int64_t shape[] = {int_of(args[2]), x.shape[1]};
  set_new(out, dtype, shape);
  return TENON_OK;
}

}  // namespace

TENON_INFER(segment_add) {
  return infer_segments("segment_add", args, tensor_of(args[0]).dtype, outs[0], err);
}
TENON_INFER(segment_extreme) {
  return infer_segments("segment_extreme", args, tensor_of(args[0]).dtype, outs[0], err);
}
TENON_INFER(segment_argmax) {
  return infer_segments("segment_argmax", args, TENON_DTYPE_I64, outs[0], err);
}

}  // namespace tenon::standard_ops
