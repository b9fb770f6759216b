// SPDX-License-Identifier: Apache-2.0
#include "composites/domain.hpp"

#include <cmath>
#include <functional>
#include <span>

#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

// `x` as contiguous float64 on the host, which holds every number that is checked.
Tensor as_doubles(Scope& scope, const Tensor& x) {
  Tensor plain = ops::stop_gradient(scope, x);
  return ops::contiguous(scope, ops::cast(scope, plain, TENON_DTYPE_F64));
}

bool is_checked(const Tensor& x) { return x->device == host->device_host() && x->numel > 0; }

// The rows of `x` along its last axis as doubles, one after the other, until `visit` fails.
tenon_status for_each_row(const Tensor& x, tenon_err* err,
                          const std::function<tenon_status(std::span<const double>)>& visit) {
  if (!is_checked(x)) return TENON_OK;
  Scope scope(err);
  if (!has_elements(scope, x)) return scope.status();
  Tensor numbers = as_doubles(scope, x);
  if (!scope.ok()) return scope.status();
  const int64_t length = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
  const auto* from = static_cast<const double*>(numbers->data);
  for (int64_t at = 0; at < numbers->numel; at += length)
    TENON_TRY(visit({from + at, static_cast<size_t>(length)}));
  return TENON_OK;
}

tenon_status check_between(tenon_status code, const char* op, const char* what, const Tensor& x,
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

tenon_status check_weights(const Tensor& weights, int64_t needed, tenon_err* err) {
  const auto check_row = [&](std::span<const double> row) -> tenon_status {
    int64_t positive = 0;
    for (double weight : row) {
      if (!(weight >= 0 && std::isfinite(weight)))
        return shapes::fail(err, TENON_INVALID_ARGUMENT, "multinomial",
                            "expected finite weights of at least 0, got %g", weight);
      positive += weight > 0;
    }
    if (positive >= std::max<int64_t>(needed, 1)) return TENON_OK;
    if (positive == 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "multinomial",
                          "expected weights of which one at least is above 0, got zeros alone");
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "multinomial",
                        "expected at least %lld weights above 0 for as many draws without "
                        "replacement, got %lld; pass replacement=true",
                        ll(needed), ll(positive));
  };
  return for_each_row(weights, err, check_row);
}

}  // namespace

tenon_status expect_between(tenon_status code, const char* op, const char* what, Tensor& x,
                            double low, double high, tenon_err* err) {
  if (!is_checked(x)) return TENON_OK;
  // An operator is recorded, and a tensor that is composed of others is checked part by part.
  const bool is_composed = x->flags & TENON_TENSOR_COMPOSED;
  if (!is_recorded() && !is_composed) return check_between(code, op, what, x, low, high, err);
  Scope scope(err);
  x = ops::expect_between(scope, x, low, high, op, what, code == TENON_OUT_OF_RANGE);
  return scope.status();
}

tenon_status expect_weights(Tensor& weights, int64_t needed, tenon_err* err) {
  if (!is_checked(weights)) return TENON_OK;
  if (!is_recorded()) return check_weights(weights, needed, err);
  Scope scope(err);
  weights = ops::expect_weights(scope, weights, needed);
  return scope.status();
}

TENON_DECOMPOSE(expect_between) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const tenon_status code = bool_of(args[5]) ? TENON_OUT_OF_RANGE : TENON_INVALID_ARGUMENT;
  const std::string op(text_of(args[3])), what(text_of(args[4]));
  TENON_TRY(
      check_between(code, op.c_str(), what.c_str(), x, float_of(args[1]), float_of(args[2]), err));
  return finish(scope, outs, ops::clone(scope, x));
}

TENON_DECOMPOSE(expect_weights) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(check_weights(x, int_of(args[1]), err));
  return finish(scope, outs, ops::clone(scope, x));
}

}  // namespace tenon::standard_ops
