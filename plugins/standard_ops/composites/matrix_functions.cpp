// SPDX-License-Identifier: Apache-2.0
// Functions of matrices made of products, factorizations and reductions.
#include "composites/matrices.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status fail_ord(const char* op, std::string_view ord, tenon_err* err) {
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected ord 'fro', 'nuc', '1', '-1', '2', '-2', 'inf' or '-inf', got "
                      "'%.*s'",
                      static_cast<int>(ord.size()), ord.data());
}
bool is_ord(std::string_view ord) {
  for (std::string_view known : {"fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"})
    if (ord == known) return true;
  return false;
}

// The norm of matrices, whose axes remain with length 1.
Tensor kept_norm(Scope& scope, const Tensor& x, std::string_view ord) {
  if (!scope.ok()) return {};
  if (ord == "fro") return ops::norm(scope, x, 2.0, IntList{-2, -1}, true);
  const bool smallest = ord[0] == '-';
  const auto extreme = [&](const Tensor& values, int64_t axis) {
    return smallest ? ops::min(scope, values, {axis}, true) : ops::max(scope, values, {axis}, true);
  };
  if (ord == "nuc" || ord == "2" || ord == "-2") {
    Tensor s = as_column(scope, ops::svdvals(scope, x));
    return ord == "nuc" ? ops::sum(scope, s, {-2}, true) : extreme(s, -2);
  }
  const bool columns = ord == "1" || ord == "-1";
  Tensor sums = ops::sum(scope, ops::abs(scope, x), {columns ? -2 : -1}, true);
  return extreme(sums, columns ? -1 : -2);
}

Shape joined(Ints first, Ints second) {
  Shape shape = to_vector(first);
  shape.insert(shape.end(), second.begin(), second.end());
  return shape;
}

// The order of least work for a chain of matrices: entry (i, j) says before which matrix the product
// of i to j is split (Cormen et al., Introduction to Algorithms, chapter 15).
class Chain {
 public:
  explicit Chain(std::vector<Tensor> matrices)
      : matrices_(std::move(matrices)),
        count_(matrices_.size()),
        cost_(count_ * count_, 0.0),
        split_(count_ * count_, 0) {
    for (size_t length = 2; length <= count_; ++length)
      for (size_t i = 0; i + length <= count_; ++i) choose(i, i + length - 1);
  }
  Tensor multiply(Scope& scope, size_t i, size_t j) const {
    if (i == j) return matrices_[i];
    const size_t k = split_[i * count_ + j];
    return ops::matmul(scope, multiply(scope, i, k - 1), multiply(scope, k, j));
  }

 private:
  void choose(size_t i, size_t j) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t k = i + 1; k <= j; ++k) {
      const double cost = cost_[i * count_ + k - 1] + cost_[k * count_ + j] +
                          static_cast<double>(rows_of(matrices_[i])) *
                              static_cast<double>(rows_of(matrices_[k])) *
                              static_cast<double>(columns_of(matrices_[j]));
      if (cost >= best) continue;
      best = cost;
      split_[i * count_ + j] = k;
    }
    cost_[i * count_ + j] = best;
  }

  std::vector<Tensor> matrices_;
  size_t count_;
  std::vector<double> cost_;
  std::vector<size_t> split_;
};

}  // namespace

TENON_DECOMPOSE(logdet) {
  Scope scope(err);
  auto found = ops::slogdet(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (is_complex(found.sign))
    return finish(scope, outs, ops::add(scope, ops::log(scope, found.sign), found.logabsdet));
  return finish(scope, outs,
                ops::where(scope, ops::less(scope, found.sign, 0),
                           std::numeric_limits<double>::quiet_NaN(), found.logabsdet));
}

// Squares for the binary digits of n.
TENON_DECOMPOSE(matrix_power) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("matrix_power", x, true, err));
  // As unsigned, since the magnitude of the smallest int64 is no int64.
  uint64_t n = static_cast<uint64_t>(int_of(args[1]));
  if (n == 0)
    return finish(scope, outs,
                  ops::add(scope, ops::zeros_like(scope, x), eye_like(scope, x, rows_of(x))));
  if (int_of(args[1]) < 0) {
    x = ops::inv(scope, x);
    n = 0 - n;
  }
  Tensor result, square = x;
  for (; scope.ok(); square = ops::matmul(scope, square, square)) {
    if (n & 1) result = result ? ops::matmul(scope, result, square) : square;
    n >>= 1;
    if (n == 0) break;
  }
  return finish(scope, outs, int_of(args[1]) == 1 ? ops::clone(scope, result) : result);
}

TENON_DECOMPOSE(matrix_rank) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const bool hermitian = bool_of(args[2]);
  TENON_TRY(expect_matrices("matrix_rank", x, hermitian, err));
  Tensor s = hermitian ? ops::abs(scope, ops::eigvalsh(scope, x)) : ops::svdvals(scope, x);
  if (scope.ok() && columns_of(s) > 0) {
    const double rtol = is_none(args[1]) ? default_rtol(x) : float_of(args[1]);
    s = ops::greater(scope, s, ops::multiply(scope, ops::max(scope, s, {-1}, true), rtol));
  }
  return finish(scope, outs, ops::count_nonzero(scope, s, {-1}));
}

TENON_DECOMPOSE(matrix_norm) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("matrix_norm", x, false, err));
  if (!is_ord(text_of(args[1]))) return fail_ord("matrix_norm", text_of(args[1]), err);
  Tensor norm = kept_norm(scope, x, text_of(args[1]));
  return finish(scope, outs, bool_of(args[2]) ? norm : ops::squeeze(scope, norm, {-2, -1}));
}

TENON_DECOMPOSE(cond) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const std::string_view ord = text_of(args[1]);
  if (!is_ord(ord)) return fail_ord("cond", ord, err);
  const bool by_values = ord == "2" || ord == "-2";
  TENON_TRY(expect_matrices("cond", x, !by_values, err));
  if (by_values) {
    Tensor s = ops::svdvals(scope, x);
    if (scope.ok() && columns_of(s) == 0)  // no singular values: 0, as in PyTorch
      return finish(scope, outs, ops::sum(scope, s, {-1}));
    Tensor largest = ops::max(scope, s, {-1}), smallest = ops::min(scope, s, {-1});
    if (ord == "-2") return finish(scope, outs, ops::divide(scope, smallest, largest));
    return finish(
        scope, outs,
        ops::where(scope, ops::equal(scope, smallest, 0), std::numeric_limits<double>::infinity(),
                   ops::divide(scope, largest, smallest)));
  }
  // Singular matrices are replaced by the identity, as inv refuses them.
  Tensor singular = as_matrix(scope, ops::equal(scope, ops::slogdet(scope, x).sign, 0));
  Tensor regular = ops::where(scope, singular, eye_like(scope, x, rows_of(x)), x);
  Tensor norm = ops::multiply(scope, kept_norm(scope, x, ord),
                              kept_norm(scope, ops::inv(scope, regular), ord));
  Tensor result = ops::where(scope, singular, std::numeric_limits<double>::infinity(), norm);
  return finish(scope, outs, ops::squeeze(scope, result, {-2, -1}));
}

// Component i is x[i + 1] * y[i + 2] - x[i + 2] * y[i + 1].
TENON_DECOMPOSE(cross) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  const int32_t ndim = std::max(x->ndim, y->ndim);
  TENON_TRY(resolve_axis("cross", int_of(args[2]), ndim, &axis, err));
  const int64_t from_end = axis - ndim;
  const auto has_three = [&](const Tensor& v) {
    return v->ndim + from_end >= 0 && v->shape[v->ndim + from_end] == 3;
  };
  if (!has_three(x) || !has_three(y))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "cross",
                        "expected vectors of length 3 in axis %lld, got shapes %s and %s",
                        ll(int_of(args[2])), shape_text(*x.get()).c_str(),
                        shape_text(*y.get()).c_str());
  const auto rolled = [&](const Tensor& v, int64_t shift) {
    return ops::roll(scope, v, {shift}, {from_end});
  };
  return finish(scope, outs,
                ops::subtract(scope, ops::multiply(scope, rolled(x, -1), rolled(y, -2)),
                              ops::multiply(scope, rolled(x, -2), rolled(y, -1))));
}

TENON_DECOMPOSE(kron) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t ndim = std::max(x->ndim, y->ndim);
  if (2 * ndim > TENON_MAX_NDIM)
    return shapes::fail(err, TENON_UNSUPPORTED, "kron", "expected at most %d axes, got %d",
                        TENON_MAX_NDIM / 2, ndim);
  Shape of_x, of_y, shape;
  for (int32_t i = 0; i < ndim; ++i) {
    const int32_t in_x = i - (ndim - x->ndim), in_y = i - (ndim - y->ndim);
    const int64_t m = in_x < 0 ? 1 : x->shape[in_x], n = in_y < 0 ? 1 : y->shape[in_y];
    of_x.insert(of_x.end(), {m, 1});
    of_y.insert(of_y.end(), {1, n});
    shape.push_back(m * n);
  }
  Tensor products =
      ops::multiply(scope, ops::reshape(scope, x, of_x), ops::reshape(scope, y, of_y));
  return finish(scope, outs, ops::reshape(scope, products, shape));
}

TENON_DECOMPOSE(cdist) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 2 || y->ndim < 2 || columns_of(x) != columns_of(y))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "cdist",
                        "expected rows of one length in the last axes of matrices, got shapes %s "
                        "and %s",
                        shape_text(*x.get()).c_str(), shape_text(*y.get()).c_str());
  Tensor away = ops::subtract(scope, as_row(scope, x), ops::unsqueeze(scope, y, {-3}));
  return finish(scope, outs, ops::norm(scope, away, float_of(args[2]), IntList{-1}));
}

TENON_DECOMPOSE(multi_dot) {
  Scope scope(err);
  auto given = tensors_of(args[0]);
  if (given.size() < 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "multi_dot",
                        "expected at least two matrices, got %zu", given.size());
  std::vector<Tensor> matrices;
  for (tenon_tensor* each : given) matrices.push_back(Tensor::borrow(each));
  // Small floats are rounded once, after the last product.
  int32_t dtype = matrices.front()->dtype;
  for (const Tensor& each : matrices) dtype = host->dtype_promote(dtype, each->dtype);
  const bool is_small = dtype >= TENON_DTYPE_F8E4M3 && dtype < TENON_DTYPE_F32;
  if (is_small)
    for (Tensor& each : matrices) each = ops::cast(scope, each, TENON_DTYPE_F32);
  if (!scope.ok()) return scope.status();
  const bool row = matrices.front()->ndim == 1, column = matrices.back()->ndim == 1;
  if (row) matrices.front() = as_row(scope, matrices.front());
  if (column) matrices.back() = as_column(scope, matrices.back());
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (!scope.ok()) return scope.status();
    const bool fits =
        matrices[i]->ndim == 2 && (i == 0 || rows_of(matrices[i]) == columns_of(matrices[i - 1]));
    if (!fits)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "multi_dot",
                          "expected matrices whose inner extents agree, got shape %s as operand "
                          "%zu",
                          shape_text(*given[i]).c_str(), i);
  }
  const size_t last = matrices.size() - 1;
  Tensor result = Chain(std::move(matrices)).multiply(scope, 0, last);
  if (is_small) result = ops::cast(scope, result, dtype);
  if (row) result = ops::squeeze(scope, result, {-2});
  return finish(scope, outs, column ? ops::squeeze(scope, result, {-1}) : result);
}

TENON_DECOMPOSE(tensorinv) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t ind = int_of(args[1]);
  const Ints shape = shape_of(*x.get());
  const bool in_range = ind > 0 && ind <= x->ndim;
  const Ints first = shape.first(in_range ? static_cast<size_t>(ind) : 0);
  const Ints second = shape.subspan(first.size());
  const int64_t m = standard_ops::product(first), n = standard_ops::product(second);
  if (!in_range || m != n)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "tensorinv",
                        "expected as many elements in the first ind=%lld axes as in the others, "
                        "got shape %s",
                        ll(ind), shape_text(*x.get()).c_str());
  Tensor inverse = ops::inv(scope, ops::reshape(scope, x, {m, n}));
  return finish(scope, outs, ops::reshape(scope, inverse, joined(second, first)));
}

TENON_DECOMPOSE(tensorsolve) {
  Scope scope(err);
  Tensor a = operand(scope, args[0]), b = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (!is_none(args[2])) {
    uint32_t mask;
    TENON_TRY(resolve_axes("tensorsolve", args[2], a->ndim, &mask, err));
    Shape order;
    for (int32_t i = 0; i < a->ndim; ++i)
      if (!(mask >> i & 1)) order.push_back(i);
    for (int64_t axis : ints_of(args[2])) order.push_back(axis < 0 ? axis + a->ndim : axis);
    a = ops::permute(scope, a, order);
  }
  if (!scope.ok()) return scope.status();
  const Ints shape = shape_of(*a.get());
  const size_t of_b = static_cast<size_t>(b->ndim);
  const Ints rest = shape.subspan(std::min(of_b, shape.size()));
  const int64_t n = standard_ops::product(rest);
  if (of_b > shape.size() || standard_ops::product(shape.first(of_b)) != n || b->numel != n)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "tensorsolve",
                        "expected a whose first axes have the shape of b and whose others have as "
                        "many elements, got shapes %s and %s",
                        shape_text(*a.get()).c_str(), shape_text(*b.get()).c_str());
  Tensor x = ops::solve(scope, ops::reshape(scope, a, {n, n}), ops::reshape(scope, b, {n}));
  return finish(scope, outs, ops::reshape(scope, x, to_vector(rest)));
}

// Running products of 1, x, x, ..., whose gradient is right at zeros.
TENON_DECOMPOSE(vander) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "vander",
                        "expected vectors in the last axis, got a 0-d tensor");
  const int64_t n = is_none(args[1]) ? columns_of(x) : int_of(args[1]);
  if (n < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "vander", "expected n of at least 0, got %lld",
                        ll(n));
  Shape shape = sizes_of(x);
  shape.push_back(n);
  if (n == 0) return finish(scope, outs, full_with(scope, x, shape, 0));
  shape.back() = 1;
  Tensor factors = full_with(scope, x, shape, 1);
  if (n > 1) {
    shape.back() = n - 1;
    Tensor repeated = ops::expand(scope, as_column(scope, x), shape);
    factors = ops::concat(scope, {factors, repeated}, -1);
  }
  Tensor powers = ops::cumprod(scope, factors, -1);
  return finish(scope, outs, bool_of(args[2]) ? powers : ops::flip(scope, powers, {-1}));
}

}  // namespace tenon::standard_ops
