// SPDX-License-Identifier: Apache-2.0
// Tensors of numbers by primitive_iota.
#include "lowering/lower.hpp"

namespace tenon::standard_ops {

tenon_status infer_full(const tenon_value*, uint32_t, tenon_meta*, uint32_t, tenon_err*);
tenon_status infer_arange(const tenon_value*, uint32_t, tenon_meta*, uint32_t, tenon_err*);

TENON_DECOMPOSE(full) {
  Scope scope(err);
  tenon_meta meta;
  TENON_TRY(infer_full(args, 4, &meta, 1, err));
  return finish(scope, outs,
                primitive::full(scope, {meta.shape, meta.shape + meta.ndim}, args[1], meta.dtype,
                                device_of(args[3])));
}

TENON_DECOMPOSE(arange) {
  Scope scope(err);
  tenon_meta meta;
  TENON_TRY(infer_arange(args, 5, &meta, 1, err));
  const ScalarArg first = is_none(args[1]) ? ScalarArg(0) : ScalarArg(args[0]);
  Tensor numbers = primitive::iota(scope, meta.shape[0], first, args[2],
                                   primitive::work_dtype(meta.dtype), device_of(args[4]));
  return finish(scope, outs, primitive::to_dtype(scope, numbers, meta.dtype));
}

TENON_DECOMPOSE(linspace) {
  Scope scope(err);
  const double start = float_of(args[0]), stop = float_of(args[1]);
  const int64_t count = int_of(args[2]);
  const bool to_the_end = bool_of(args[3]);
  const int64_t intervals = to_the_end ? count - 1 : count;
  const double step = intervals > 0 ? (stop - start) / static_cast<double>(intervals) : 0.0;
  const int32_t dtype = shapes::dtype_or(args[4], TENON_DTYPE_F32), device = device_of(args[5]),
                work = primitive::work_dtype(dtype);
  Tensor numbers = primitive::iota(scope, count, start, step, work, device);
  if (to_the_end && count > 1) {  // the last number exactly
    Tensor indices = primitive::iota(scope, count, 0, 1, TENON_DTYPE_I64, device);
    Tensor before = less(scope, indices, count - 1);
    numbers = primitive::select(scope, before, numbers,
                                lowering::number_for(ScalarArg(stop).value(), work).value());
  }
  return finish(scope, outs, primitive::to_dtype(scope, numbers, dtype));
}

}  // namespace tenon::standard_ops
