// SPDX-License-Identifier: Apache-2.0
#include "operators.hpp"

#include <tenon/error.hpp>

#include <algorithm>

namespace tenon::forward {
namespace {

const tenon_op* find(const char* name) {
  const tenon_op* op = host->op_find(name);
  if (!op)
    throw Error(TENON_NOT_FOUND, std::string("forward mode needs the operator `") + name +
                                     "`; load the plugin standard_ops");
  return op;
}

tenon_value shape_of(const tenon_tensor* x) {
  return boxed(x->shape, static_cast<uint64_t>(x->ndim));
}

}  // namespace

void call(const tenon_op* op, std::vector<tenon_value> args, tenon_value* outs, uint32_t nouts) {
  ErrorSink err;
  err.check(host->op_call(op, args.data(), static_cast<uint32_t>(args.size()), outs, nouts, err));
}

Tensor call_one(const tenon_op* op, std::vector<tenon_value> args) {
  tenon_value out = kNoValue;
  call(op, std::move(args), &out, 1);
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

Tensor call_one(const char* op, std::vector<tenon_value> args) {
  return call_one(find(op), std::move(args));
}

Tensor add(const Tensor& x, const Tensor& y) {
  return call_one("add", {boxed(x.get()), boxed(y.get())});
}

Tensor conjugate(const Tensor& x) { return call_one("conj", {boxed(x.get())}); }

Tensor zeros_like(tenon_tensor* x) {
  return call_one("full",
                  {shape_of(x), boxed(0.0), boxed_dtype(x->dtype), boxed_device(x->device)});
}

bool has_shape_of(const tenon_tensor* x, const tenon_tensor* like) {
  return x->ndim == like->ndim && std::equal(x->shape, x->shape + x->ndim, like->shape);
}

Tensor formed_as(const Tensor& x, const tenon_tensor* like) {
  Tensor result = x;
  if (result->dtype != like->dtype)
    result = call_one("cast", {boxed(result.get()), boxed_dtype(like->dtype)});
  if (!has_shape_of(result.get(), like))
    result = call_one("expand", {boxed(result.get()), shape_of(like)});
  return result;
}

Tensor as_strided(const Tensor& x, const tenon_tensor* like, int64_t offset) {
  return call_one("as_strided",
                  {boxed(x.get()), shape_of(like),
                   boxed(like->strides, static_cast<uint64_t>(like->ndim)), boxed(offset)});
}

void copy_into(tenon_tensor* destination, const Tensor& x) {
  tenon_value out = boxed(destination);
  call(find("clone"), {boxed(x.get())}, &out, 1);
}

}  // namespace tenon::forward
