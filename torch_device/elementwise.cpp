// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two tensors of one floating dtype, or of a tensor and a number: calls that take less
// time than boxing their arguments and finding their tape. What such a call is in operators is known
// beforehand; every other one is PyTorch's own kernel for devices, which checks it and calls its form
// with `out`.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/add_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/div_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/mul_compositeexplicitautogradnonfunctional_dispatch.h>
#include <ATen/ops/sub_compositeexplicitautogradnonfunctional_dispatch.h>
#include <torch/library.h>

#include "runtime.hpp"

namespace tenon_torch {
namespace {

bool has_plain_dtype(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
      return true;
    default:
      return false;
  }
}

// Numbers of Python are tensors of float64 or int64 on the CPU here.
bool is_number(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
         (tensor.scalar_type() == at::kDouble || tensor.scalar_type() == at::kLong);
}

std::optional<at::Tensor> computed(const tenon_op* op, const at::Tensor& self,
                                   const at::Tensor& other) {
  if (!self.is_privateuseone() || !has_plain_dtype(self)) return std::nullopt;
  Handle second;
  tenon_value values[2] = {};
  if (other.is_privateuseone()) {
    if (other.scalar_type() != self.scalar_type() || other.device() != self.device() ||
        !at::are_expandable(self.sizes(), other.sizes()))
      return std::nullopt;
    second = handle_of(other);
    values[1] = boxed(second.get());
  } else if (is_number(other)) {
    bool is_whole = other.scalar_type() == at::kLong;
    const void* data = other.const_data_ptr();
    values[1].tag = TENON_VALUE_FLOAT;
    values[1].v.f = is_whole ? static_cast<double>(*static_cast<const int64_t*>(data))
                             : *static_cast<const double*>(data);
  } else {
    return std::nullopt;
  }
  Handle first = handle_of(self);
  values[0] = boxed(first.get());
  DeviceScope device(self.get_device());
  return tensor_of(std::move(call(op, values, 2, nullptr)[0]));
}

namespace others = at::compositeexplicitautogradnonfunctional;

at::Tensor add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  static const tenon_op* const op = find_operator("add");
  if (alpha.equal(1))
    if (std::optional<at::Tensor> sum = computed(op, self, other)) return *sum;
  return others::add(self, other, alpha);
}
at::Tensor subtract(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  static const tenon_op* const op = find_operator("subtract");
  if (alpha.equal(1))
    if (std::optional<at::Tensor> difference = computed(op, self, other)) return *difference;
  return others::sub(self, other, alpha);
}
at::Tensor multiply(const at::Tensor& self, const at::Tensor& other) {
  static const tenon_op* const op = find_operator("multiply");
  std::optional<at::Tensor> product = computed(op, self, other);
  return product ? *product : others::mul(self, other);
}
at::Tensor divide(const at::Tensor& self, const at::Tensor& other) {
  static const tenon_op* const op = find_operator("divide");
  std::optional<at::Tensor> quotient = computed(op, self, other);
  return quotient ? *quotient : others::div(self, other);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensor", &add);
  m.impl("sub.Tensor", &subtract);
  m.impl("mul.Tensor", &multiply);
  m.impl("div.Tensor", &divide);
}

}  // namespace
}  // namespace tenon_torch
