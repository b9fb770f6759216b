// SPDX-License-Identifier: Apache-2.0
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// `x` as contiguous float64 on the host, which holds every number that is checked.
Tensor as_doubles(Scope& scope, const Tensor& x) {
  Tensor plain = ops::stop_gradient(scope, x);
  return ops::contiguous(scope, ops::cast(scope, plain, TENON_DTYPE_F64));
}

}  // namespace

tenon_status expect_between(tenon_status code, const char* op, const char* what, const Tensor& x,
                            double low, double high, tenon_err* err) {
  return for_each_row(x, err, [&](std::span<const double> row) -> tenon_status {
    bool fits = true;  // without a way out of the loop, so that it is vectorised
    for (double number : row) fits &= number >= low && number <= high;
    if (fits) return TENON_OK;
    for (double number : row)
      if (!(number >= low && number <= high))
        return shapes::fail(err, code, op, "expected %s from %.10g to %.10g, got %.10g", what, low,
                            high, number);
    return TENON_OK;
  });
}

tenon_status for_each_row(const Tensor& x, tenon_err* err,
                          const std::function<tenon_status(std::span<const double>)>& visit) {
  if (x->device != host->device_host() || x->numel == 0) return TENON_OK;
  Scope scope(err);
  Tensor numbers = as_doubles(scope, x);
  if (!scope.ok()) return scope.status();
  const int64_t length = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
  const auto* from = static_cast<const double*>(numbers->data);
  for (int64_t at = 0; at < numbers->numel; at += length)
    TENON_TRY(visit({from + at, static_cast<size_t>(length)}));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
