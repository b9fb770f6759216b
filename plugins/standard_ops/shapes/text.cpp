// SPDX-License-Identifier: Apache-2.0
// Strings: the bytes of all of them, and one more offset than there are strings.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

namespace {

tenon_status count_strings(const char* op, const tenon_value* parts, int64_t* count,
                           tenon_err* err) {
  const tenon_tensor &text = tensor_of(parts[0]), &offsets = tensor_of(parts[1]);
  if (text.ndim != 1 || offsets.ndim != 1 || offsets.shape[0] == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected bytes as a vector and one more offset than there are strings, "
                        "got shapes %s and %s",
                        shape_text(text).c_str(), shape_text(offsets).c_str());
  *count = offsets.shape[0] - 1;
  return TENON_OK;
}

tenon_status one_of_each(const char* op, const tenon_value* args, int32_t dtype, tenon_meta* outs,
                         tenon_err* err) {
  int64_t shape[1];
  TENON_TRY(count_strings(op, args, shape, err));
  set_new(outs[0], dtype, shape);
  return TENON_OK;
}

}  // namespace

TENON_INFER(text_equal) {
  int64_t x = 0, y = 0;
  TENON_TRY(count_strings("text_equal", args, &x, err));
  TENON_TRY(count_strings("text_equal", args + 2, &y, err));
  if (x != y && x != 1 && y != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "text_equal",
                        "expected as many strings on both sides or one on either, got %lld and "
                        "%lld",
                        ll(x), ll(y));
  const int64_t shape[] = {x == 1 ? y : x};
  set_new(outs[0], TENON_DTYPE_BOOL, shape);
  return TENON_OK;
}

TENON_INFER(text_find) { return one_of_each("text_find", args, TENON_DTYPE_I64, outs, err); }
TENON_INFER(text_hash) { return one_of_each("text_hash", args, TENON_DTYPE_I64, outs, err); }
TENON_INFER(text_lookup) {
  int64_t keys = 0;
  TENON_TRY(count_strings("text_lookup", args + 2, &keys, err));
  return one_of_each("text_lookup", args, TENON_DTYPE_I64, outs, err);
}

}  // namespace tenon::standard_ops
