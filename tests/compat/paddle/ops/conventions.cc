// SPDX-License-Identifier: Apache-2.0
// What authors rely on beyond the plain operator: names of second gradients, open extents, lists in
// place, functions for devices that are absent, error macros.
#include <vector>

#include "paddle/include/experimental/ext_all.h"

using paddle::Tensor;

// -- the gradient of Out beside the input Grad("Out")

std::vector<Tensor> Tanh(const Tensor& x) { return {paddle::tanh(x)}; }
std::vector<Tensor> TanhGrad(const Tensor& out, const Tensor& grad_out) {
  return {grad_out * (1.0 - out * out)};
}
std::vector<Tensor> TanhGradGrad(const Tensor& out, const Tensor& grad_out,
                                 const Tensor& grad_grad_x) {
  return {-2.0 * out * grad_out * grad_grad_x, grad_grad_x * (1.0 - out * out)};
}
PD_BUILD_OP(pd_new_tanh).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Tanh));
PD_BUILD_GRAD_OP(pd_new_tanh)
    .Inputs({"Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(TanhGrad));
PD_BUILD_DOUBLE_GRAD_OP(pd_new_tanh)
    .Inputs({"Out", paddle::Grad("Out"), paddle::Grad(paddle::Grad("X"))})
    .Outputs({paddle::New(paddle::Grad("Out")), paddle::Grad(paddle::Grad("Out"))})
    .SetKernelFn(PD_KERNEL(TanhGradGrad));

// -- memory of another dtype

std::vector<Tensor> Rounded(const Tensor& x) {
  Tensor out = paddle::empty_like(x);
  int64_t* to = out.mutable_data<int64_t>(x.place());
  PD_CHECK(out.dtype() == paddle::DataType::INT64 && out.shape() == x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = std::llround(x.data<float>()[i]);
  return {out};
}
std::vector<paddle::DataType> RoundedDtype(paddle::DataType) { return {paddle::DataType::INT64}; }
PD_BUILD_OP(pd_rounded)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Rounded))
    .SetInferDtypeFn(PD_INFER_DTYPE(RoundedDtype));

// Gives an argument that is written in place another tensor, of its own form or of another one.
void Reassign(Tensor& x, bool fits) {
  if (fits)
    x = x + 1.0;
  else
    x.mutable_data<int64_t>();
}
PD_BUILD_OP(pd_reassign)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"fits: bool"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(Reassign));

// -- extents that only the kernel knows

std::vector<Tensor> Positive(const Tensor& x) {
  std::vector<float> kept;
  for (int64_t i = 0; i < x.numel(); ++i)
    if (x.data<float>()[i] > 0) kept.push_back(x.data<float>()[i]);
  Tensor out = paddle::empty({static_cast<int64_t>(kept.size()), 2}, x.dtype(), x.place());
  for (size_t i = 0; i < kept.size(); ++i)
    out.data<float>()[2 * i] = kept[i], out.data<float>()[2 * i + 1] = -kept[i];
  return {out};
}
std::vector<Tensor> PositiveGrad(const Tensor& x, const Tensor& grad_out) {
  Tensor grad = paddle::zeros_like(x);
  const float* from = grad_out.data<float>();
  for (int64_t i = 0; i < x.numel(); ++i)
    if (x.data<float>()[i] > 0) grad.data<float>()[i] = from[0] - from[1], from += 2;
  return {grad};
}
std::vector<std::vector<int64_t>> PositiveShape(std::vector<int64_t>) { return {{-1, 2}}; }
std::vector<paddle::DataType> SameDtype(paddle::DataType x) { return {x}; }
PD_BUILD_OP(pd_positive)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Positive))
    .SetInferShapeFn(PD_INFER_SHAPE(PositiveShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(SameDtype));
PD_BUILD_GRAD_OP(pd_positive)
    .Inputs({"X", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(PositiveGrad));

std::vector<Tensor> Wrong(const Tensor& x) { return {paddle::zeros({3, 3}, x.dtype())}; }
PD_BUILD_OP(pd_wrong_open)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Wrong))
    .SetInferShapeFn(PD_INFER_SHAPE(PositiveShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(SameDtype));

// -- in place: lists and optionals, whose gradient asks for what was written

void ExpInto(Tensor& x) {
  double* values = x.data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = std::exp(values[i]);
}
void ExpAll(std::vector<Tensor>& x, paddle::optional<Tensor>& y,
            paddle::optional<std::vector<Tensor>>& more) {
  for (Tensor& each : x) ExpInto(each);
  if (y) ExpInto(*y);
  if (more)
    for (Tensor& each : *more) ExpInto(each);
}
std::vector<Tensor> ExpAllGrad(const std::vector<Tensor>& x, const paddle::optional<Tensor>& y,
                               const paddle::optional<std::vector<Tensor>>& more,
                               const std::vector<Tensor>& grad_x,
                               const paddle::optional<Tensor>& grad_y,
                               const paddle::optional<std::vector<Tensor>>& grad_more) {
  PD_CHECK(static_cast<bool>(y) == static_cast<bool>(grad_y), "y and its gradient");
  PD_CHECK(static_cast<bool>(more) == static_cast<bool>(grad_more), "more and its gradients");
  std::vector<Tensor> grads;
  for (size_t i = 0; i < x.size(); ++i) grads.push_back(x[i] * grad_x[i]);
  if (y) grads.push_back(*y * *grad_y);
  for (size_t i = 0; more && i < more->size(); ++i) grads.push_back((*more)[i] * (*grad_more)[i]);
  return grads;
}
PD_BUILD_OP(pd_exp_all)
    .Inputs({paddle::Vec("X"), paddle::Optional("Y"), paddle::Optional(paddle::Vec("More"))})
    .Outputs({paddle::Vec("Out"), paddle::Optional("YOut"),
              paddle::Optional(paddle::Vec("MoreOut"))})
    .SetInplaceMap({{paddle::Vec("X"), paddle::Vec("Out")},
                    {paddle::Optional("Y"), paddle::Optional("YOut")},
                    {paddle::Optional(paddle::Vec("More")),
                     paddle::Optional(paddle::Vec("MoreOut"))}})
    .SetKernelFn(PD_KERNEL(ExpAll));
PD_BUILD_GRAD_OP(pd_exp_all)
    .Inputs({paddle::Vec("X"), paddle::Optional("Y"), paddle::Optional(paddle::Vec("More")),
             paddle::Grad(paddle::Vec("Out")), paddle::Grad(paddle::Optional("YOut")),
             paddle::Grad(paddle::Optional(paddle::Vec("MoreOut")))})
    .Outputs({paddle::Grad(paddle::Vec("X")), paddle::Grad(paddle::Optional("Y")),
              paddle::Grad(paddle::Optional(paddle::Vec("More")))})
    .SetKernelFn(PD_KERNEL(ExpAllGrad));

void ExpOne(Tensor& x) { ExpInto(x); }
void ExpOneGrad(const Tensor& x, Tensor& grad_out) {
  for (int64_t i = 0; i < x.numel(); ++i) grad_out.data<double>()[i] *= x.data<double>()[i];
}
PD_BUILD_OP(pd_exp_)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(ExpOne));
PD_BUILD_GRAD_OP(pd_exp_)
    .Inputs({"X", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetInplaceMap({{paddle::Grad("Out"), paddle::Grad("X")}})
    .SetKernelFn(PD_KERNEL(ExpOneGrad));

// -- functions that do not fit: the operator has one input

std::vector<Tensor> Doubled(const Tensor& x) { return {paddle::concat({x, x}, 0)}; }
std::vector<std::vector<int64_t>> TwoShapes(std::vector<int64_t> x, std::vector<int64_t>) {
  return {x};
}
std::vector<paddle::DataType> TwoDtypes(paddle::DataType x, paddle::DataType) { return {x}; }
PD_BUILD_OP(pd_doubled)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(Doubled))
    .SetInferShapeFn(PD_INFER_SHAPE(TwoShapes))
    .SetInferDtypeFn(PD_INFER_DTYPE(TwoDtypes));

// -- functions for a device that is absent

std::vector<Tensor> OnAnotherDevice(const Tensor& x);
std::vector<Tensor> Anywhere(const Tensor& x, bool pretend) {
  if (x.is_gpu() || pretend) return OnAnotherDevice(x);
  return {x * 2.0};
}
PD_BUILD_OP(pd_anywhere)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"pretend: bool"})
    .SetKernelFn(PD_KERNEL(Anywhere));

// -- no elements, places

std::vector<Tensor> Nothing(const Tensor& x) {
  PD_CHECK(x.numel() == 0 && x.data<float>() != nullptr);
  Tensor out = paddle::empty({0, 3}, x.dtype(), x.place());
  PD_CHECK(out.data<float>() != nullptr && out.mutable_data<float>(x.place()) != nullptr);
  PD_CHECK(x.place() == paddle::PlaceType::kCPU && paddle::PlaceType::kCPU == x.place());
  PD_CHECK(x.place() != paddle::PlaceType::kGPU && paddle::PlaceType::kGPU != x.place());
  PD_CHECK(paddle::GPUPlace(3) == paddle::PlaceType::kGPU);
  return {out};
}
PD_BUILD_OP(pd_nothing).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Nothing));

// -- a view as result

std::vector<Tensor> Transpose(const Tensor& x, const std::vector<int>& axes) {
  return {paddle::transpose(x, axes)};
}
std::vector<std::vector<int64_t>> TransposeShape(const std::vector<int64_t>& x,
                                                 const std::vector<int>& axes) {
  std::vector<int64_t> shape;
  for (int axis : axes) shape.push_back(x[axis]);
  return {shape};
}
std::vector<Tensor> TransposeGrad(const Tensor& grad_out, const std::vector<int>& axes) {
  std::vector<int> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[axes[i]] = static_cast<int>(i);
  return {paddle::transpose(grad_out, back)};
}
PD_BUILD_OP(transpose)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"axes: std::vector<int>"})
    .SetKernelFn(PD_KERNEL(Transpose))
    .SetInferShapeFn(PD_INFER_SHAPE(TransposeShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(SameDtype));
PD_BUILD_GRAD_OP(transpose)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .Attrs({"axes: std::vector<int>"})
    .SetKernelFn(PD_KERNEL(TransposeGrad));

// -- errors

enum class Unprintable { kOne, kTwo };
std::vector<Tensor> Enforce(const Tensor& x, int how) {
  const int one = 1, two = 2;
  const std::vector<int64_t> shape = x.shape();
  switch (how) {
    case 0:
      PADDLE_ENFORCE_EQ(one, two, phi::errors::InvalidArgument("expected %d axes of %s", 3, "x"));
      break;
    case 1:
      PADDLE_ENFORCE_NE(one, 1, common::errors::OutOfRange("index %5.2f%% of %lld", 2.5, 7LL));
      break;
    case 2:
      PADDLE_ENFORCE_GT(one, two, phi::errors::Unimplemented("not yet"));
      break;
    case 3:
      PADDLE_ENFORCE_GE(one, two, paddle::platform::errors::NotFound("nowhere"));
      break;
    case 4:
      PADDLE_ENFORCE_LT(two, one, common::errors::PreconditionNotMet("too early"));
      break;
    case 5:
      PADDLE_ENFORCE_LE(two, one, common::errors::ResourceExhausted("full"));
      break;
    case 6:
      PADDLE_ENFORCE_NOT_NULL(static_cast<int*>(nullptr), phi::errors::Fatal("a pointer"));
      break;
    case 7:
      PADDLE_ENFORCE(one == two, "one is %d", one);
      break;
    case 8:
      PADDLE_ENFORCE_EQ(Unprintable::kOne, Unprintable::kTwo);
      break;
    case 9:
      PADDLE_THROW(phi::errors::External("from elsewhere: %s", x.dtype()));
    default:
      PADDLE_ENFORCE_EQ(shape.size(), 2UL, phi::errors::InvalidArgument("two axes"));
      PADDLE_ENFORCE_EQ(x.place() == paddle::CPUPlace(), true);
  }
  return {x};
}
PD_BUILD_OP(pd_enforce)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"how: int"})
    .SetKernelFn(PD_KERNEL(Enforce));

// -- rows by an index, and the stream that kernels for devices ask for

std::vector<Tensor> Gathered(const Tensor& x, const Tensor& index, int axis) {
  struct Stream* stream = x.stream();
  PD_CHECK(stream == nullptr);
  return {paddle::gather(x, index, axis), paddle::experimental::gather(x, index)};
}
PD_BUILD_OP(pd_gathered)
    .Inputs({"X", "Index"})
    .Outputs({"Out", "First"})
    .Attrs({"axis: int"})
    .SetKernelFn(PD_KERNEL(Gathered));
