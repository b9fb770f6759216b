// SPDX-License-Identifier: Apache-2.0
// Matrix products of any ranks by primitive_contract, which takes batches of matrices.
#include "lowering/lower.hpp"

namespace tenon::standard_ops {

tenon_status infer_matmul(const tenon_value*, uint32_t, tenon_meta*, uint32_t, tenon_err*);

TENON_DECOMPOSE(matmul) {
  Scope scope(err);
  tenon_meta meta;
  TENON_TRY(infer_matmul(args, 2, &meta, 1, err));
  const int32_t dtype = meta.dtype, work = primitive::work_dtype(dtype);
  Tensor x = primitive::to_dtype(scope, operand(scope, args[0]), work),
         y = primitive::to_dtype(scope, operand(scope, args[1]), work);
  if (!scope.ok()) return scope.status();
  // A vector is one row on the left, one column on the right.
  const Shape of_x = x->ndim == 1 ? Shape{1, x->shape[0]} : sizes_of(x);
  const Shape of_y = y->ndim == 1 ? Shape{y->shape[0], 1} : sizes_of(y);
  const int64_t rows = of_x[of_x.size() - 2], depth = of_x.back(), columns = of_y.back();
  Shape batch = {meta.shape, meta.shape + meta.ndim};
  if (y->ndim > 1) batch.pop_back();
  if (x->ndim > 1) batch.pop_back();

  Tensor product;
  if (primitive::count_of({of_y.begin(), of_y.end() - 2}) == 1) {
    // One matrix for the whole batch: a single product of all rows.
    const int64_t all = primitive::count_of({of_x.begin(), of_x.end() - 1});
    product = primitive::contract(scope, primitive::reshape(scope, x, {1, all, depth}),
                                  primitive::reshape(scope, y, {1, depth, columns}));
  } else {
    auto batched = [&](const Tensor& tensor, const Shape& shape, int64_t m, int64_t n) {
      Shape wide = batch;
      wide.insert(wide.end(), {m, n});
      Tensor matrices = primitive::expand(scope, primitive::reshape(scope, tensor, shape), wide);
      return primitive::reshape(scope, matrices, {primitive::count_of(batch), m, n});
    };
    product =
        primitive::contract(scope, batched(x, of_x, rows, depth), batched(y, of_y, depth, columns));
  }
  product = primitive::to_dtype(scope, product, dtype);
  return finish(scope, outs,
                primitive::reshape(scope, product, {meta.shape, meta.shape + meta.ndim}));
}

}  // namespace tenon::standard_ops
