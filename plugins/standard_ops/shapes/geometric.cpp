// SPDX-License-Identifier: Apache-2.0
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

TENON_INFER(segment_argmax) {
  const char* op = "segment_argmax";
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 2, "[rows, columns]", err));
  const int64_t rows[] = {x.shape[0]};
  if (!std::ranges::equal(shape_of(index), rows) || int_of(args[2]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected index of shape [%lld] and a count of at least 0, got %s and %lld",
                        ll(rows[0]), shape_text(index).c_str(), ll(int_of(args[2])));
  const int64_t shape[] = {int_of(args[2]), x.shape[1]};
  set_new(outs[0], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
