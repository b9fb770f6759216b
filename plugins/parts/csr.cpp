// SPDX-License-Identifier: Apache-2.0
// Kind "csr": a matrix, row after row. Products with it are the operators of opdefs/sparse.yaml on the parts.
#include "rules.hpp"

#include <tenon/text.hpp>

namespace tenon::parts {
namespace {

constexpr const char* kPartNames[] = {"indptr", "indices", "values"};
enum { kIndptr, kIndices, kValues };

bool is_vector_of_integers(const tenon_tensor& tensor) {
  return tensor.ndim == 1 && tensor.dtype >= TENON_DTYPE_U8 && tensor.dtype <= TENON_DTYPE_I64;
}

tenon_status check(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts, const int64_t*,
                   tenon_err* err) {
  const tenon_tensor &indptr = *parts[kIndptr], &indices = *parts[kIndices];
  const tenon_tensor& values = *parts[kValues];
  if (ndim != 2)
    return fail(err, TENON_INVALID_ARGUMENT,
                "csr: expected the shape of a matrix, got " + shape_text(ndim, shape));
  if (!is_vector_of_integers(indptr) || indptr.shape[0] != shape[0] + 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                "csr: expected an integer indptr of shape " +
                    list_text(std::vector<int64_t>{shape[0] + 1}) + ", got " +
                    host->dtype_name(indptr.dtype) + " of shape " + shape_text(indptr));
  if (!is_vector_of_integers(indices) || values.ndim != 1 || values.shape[0] != indices.shape[0])
    return fail(err, TENON_INVALID_ARGUMENT,
                "csr: expected integer indices [stored elements] and as many values, got " +
                    std::string(host->dtype_name(indices.dtype)) + " of shape " +
                    shape_text(indices) + " and shape " + shape_text(values));
  return TENON_OK;
}

Tensor multiplied(Scope& scope, const Composed& a, const Tensor& y) {
  return run(scope, op::csr_matmul,
             {box(a.parts[kIndptr]), box(a.parts[kIndices]), box(a.parts[kValues]), box(y)});
}
Tensor multiplied_transposed(Scope& scope, const Composed& a, const Tensor& y, int64_t columns) {
  return run(scope, op::csr_matmul_transposed,
             {box(a.parts[kIndptr]), box(a.parts[kIndices]), box(a.parts[kValues]), box(y),
              boxed(columns)});
}
Tensor column(Scope& scope, const Tensor& x) {
  return run(scope, op::unsqueeze, {box(x), boxed(int64_t{1})});
}
Tensor without_column(Scope& scope, const Tensor& x) {
  return run(scope, op::select, {box(x), boxed(int64_t{1}), boxed(int64_t{0})});
}
Tensor transposed(Scope& scope, const Tensor& x) { return run(scope, op::transpose, {box(x)}); }

tenon_status fail_sizes(const Call& call) {
  return fail(call.err, TENON_INVALID_ARGUMENT,
              "[matmul] expected as many columns on the left as rows on the right, got shapes " +
                  shape_text(*as_tensor(call.args[0])) + " and " +
                  shape_text(*as_tensor(call.args[1])));
}

Result matmul(Scope& scope, const Call& call) {
  const Composed *x = call.composed(0), *y = call.composed(1);
  const tenon_tensor *left = as_tensor(call.args[0]), *right = as_tensor(call.args[1]);
  if ((x && y) || !left || !right || left->ndim > 2 || right->ndim > 2 || left->ndim < 1 ||
      right->ndim < 1)
    return declined();
  if (left->shape[left->ndim - 1] != right->shape[0]) {
    scope.check(fail_sizes(call));
    return {};
  }
  if (x) {
    const bool is_vector = right->ndim == 1;
    const Tensor whole = is_vector ? column(scope, call.tensor(1)) : call.tensor(1);
    const Tensor product = multiplied(scope, *x, whole);
    return {is_vector ? without_column(scope, product) : product};
  }
  // x @ A is the transpose of A.T @ x.T.
  const bool is_vector = left->ndim == 1;
  const Tensor whole =
      is_vector ? column(scope, call.tensor(0)) : transposed(scope, call.tensor(0));
  const Tensor product = multiplied_transposed(scope, *y, whole, right->shape[1]);
  return {is_vector ? without_column(scope, product) : transposed(scope, product)};
}

// Over all elements, or along one of the two axes: products with ones.
Result sum(Scope& scope, const Call& call) {
  const Composed& a = *call.composed(0);
  const bool keeps = call.nargs > 2 && call.args[2].v.i;
  if (!call.is_given(1)) {
    if (keeps) return declined();
    return {run(scope, op::sum, {box(a.parts[kValues])})};
  }
  if (call.args[1].aux != 1) return declined();
  int64_t axis = static_cast<const int64_t*>(call.args[1].v.p)[0];
  const tenon_tensor* whole = as_tensor(call.args[0]);
  if (axis < 0) axis += 2;
  if (axis != 0 && axis != 1) return declined();
  const Tensor& values = a.parts[kValues];
  const Tensor ones = filled(scope, {whole->shape[axis], 1}, 1, values->dtype, values->device);
  const Tensor sums = axis == 1 ? multiplied(scope, a, ones)
                                : multiplied_transposed(scope, a, ones, whole->shape[1]);
  if (!keeps) return {without_column(scope, sums)};
  return {axis == 1 ? sums : transposed(scope, sums)};
}

Result mean(Scope& scope, const Call& call) {
  const Result total = sum(scope, call);
  if (total.declines || !scope.ok()) return total;
  const tenon_tensor* whole = as_tensor(call.args[0]);
  int64_t count = whole->numel;
  if (call.is_given(1)) {
    const int64_t axis = static_cast<const int64_t*>(call.args[1].v.p)[0];
    count = whole->shape[axis < 0 ? axis + 2 : axis];
  }
  return {run(scope, op::divide, {box(total.tensor), boxed(count)})};
}

Result norm(Scope& scope, const Call& call) {
  if (call.is_given(2) || (call.nargs > 3 && call.args[3].v.i) || !(call.args[1].v.f > 0))
    return declined();
  const Tensor sums = csr_distinct(scope, call.tensor(0));
  if (!scope.ok()) return {};
  return {run(scope, op::norm, {box(composed_of(sums.get())->values()), call.args[1]})};
}

// A union: what both have is added up by sorting.
Result add(Scope& scope, const Call& call) {
  const Composed *x = call.composed(0), *y = call.composed(1);
  const auto as_coo = [&](uint32_t i, const Composed* composed) {
    return composed && composed->kind == &kCsr ? csr_to_coo(scope, call.tensor(i)) : call.tensor(i);
  };
  if (call.is_number(0) || call.is_number(1)) return declined();
  const Tensor left = as_coo(0, x), right = as_coo(1, y);
  if (!scope.ok()) return {};
  static Operator plus("tenon::add"), minus("tenon::subtract");
  const Tensor total = run(scope, call.name() == "add" ? plus : minus, {box(left), box(right)});
  if (!x || !y || !scope.ok()) return {total};
  return {coo_to_csr(scope, total)};
}

constexpr NamedRule kRules[] = {{"matmul", matmul}, {"sum", sum}, {"mean", mean},
                                {"norm", norm},     {"add", add}, {"subtract", add}};

}  // namespace

const Kind kCsr = {.struct_size = sizeof(Kind),
                   .layer = -1,
                   .name = "csr",
                   .nparts = 3,
                   .nwords = 0,
                   .values = kValues,
                   .part_names = kPartNames,
                   .check = check,
                   .call = call_csr};

tenon_status call_csr(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                      uint32_t nouts, tenon_err* err) {
  return run_rule(kRules, {op, args, nargs, outs, nouts, err});
}

Tensor csr_to_coo(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const Composed& a = *composed_of(x.get());
  const Tensor rows =
      run(scope, op::csr_rows, {box(a.parts[kIndptr]), boxed(a.parts[kIndices]->shape[0])});
  const Tensor columns = cast_to(scope, a.parts[kIndices], TENON_DTYPE_I64);
  if (!scope.ok()) return {};
  tenon_tensor* both[] = {rows.get(), columns.get()};
  const Tensor indices = run(scope, op::stack, {boxed(both, 2), boxed(int64_t{0})});
  return compose(scope, &kCoo, shape_of(x.get()), {indices, a.parts[kValues]});
}

Tensor csr_distinct(Scope& scope, const Tensor& x) {
  const Tensor pairs = csr_to_coo(scope, x);
  if (!scope.ok()) return {};
  return is_ascending(scope, pairs) ? x : coo_to_csr(scope, pairs);
}

Tensor coo_to_csr(Scope& scope, const Tensor& x) {
  const Tensor sorted = coalesced(scope, x);
  if (!scope.ok()) return {};
  const Composed& coo = *composed_of(sorted.get());
  if (x->ndim != 2 || coo.parts[0]->shape[0] != 2) {
    scope.fail(
        TENON_INVALID_ARGUMENT,
        "csr: expected a matrix of two axes with indices, got shape " + shape_text(*x.get()));
    return {};
  }
  const auto along = [&](int64_t axis) {
    return run(scope, op::select, {box(coo.parts[0]), boxed(int64_t{0}), boxed(axis)});
  };
  const Tensor indptr = run(scope, op::searchsorted,
                            {box(along(0)), box(numbers(scope, x->shape[0] + 1, coo.parts[0]))});
  return compose(scope, &kCsr, shape_of(x.get()), {indptr, along(1), coo.parts[1]});
}

}  // namespace tenon::parts
