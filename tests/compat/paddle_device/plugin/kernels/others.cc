// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

#include <algorithm>

namespace standin {

template <typename T>
void MatmulKernel(const phi::Context& context, const phi::DenseTensor& x, const phi::DenseTensor& y,
                  bool transpose_x, bool transpose_y, phi::DenseTensor* out) {
  const int64_t rows = out->dims()[0], columns = out->dims()[1],
                inner = x.dims()[transpose_x ? 0 : 1];
  const T *a = x.data<T>(), *b = y.data<T>();
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T sum = T(0);
      for (int64_t k = 0; k < inner; ++k)
        sum += a[transpose_x ? k * rows + i : i * inner + k] *
               b[transpose_y ? j * inner + k : k * columns + j];
      to[i * columns + j] = sum;
    }
}

template <typename T>
void ConcatKernel(const phi::Context& context, const std::vector<const phi::DenseTensor*>& parts,
                  const phi::Scalar& axis_scalar, phi::DenseTensor* out) {
  const int64_t axis = axis_scalar.to<int64_t>();
  const auto dims = out->dims();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= dims[i];
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  T* to = context.Alloc<T>(out);
  for (int64_t row = 0; row < outer; ++row)
    for (const phi::DenseTensor* part : parts) {
      const int64_t run = part->dims()[axis] * inner;
      to = std::copy(part->data<T>() + row * run, part->data<T>() + (row + 1) * run, to);
    }
}

template <typename T>
void FullKernel(const phi::Context& context, const phi::IntArray& shape, const phi::Scalar& value,
                phi::DataType dtype, phi::DenseTensor* out) {
  PD_CHECK(shape.size() == out->dims().size() && dtype == out->dtype(), "shape of ", shape.size());
  T* to = context.Alloc<T>(out);
  std::fill(to, to + out->numel(), value.to<T>());
}

template <typename T>
void SgdKernel(const phi::Context& context, const phi::DenseTensor& param,
               const phi::DenseTensor& rate, const phi::DenseTensor& grad,
               const paddle::optional<phi::DenseTensor>& master, bool, phi::DenseTensor* param_out,
               phi::DenseTensor* master_out) {
  PD_CHECK(!master && !master_out, "no master weights");
  const T step = rate.data<T>()[0];
  T* to = context.Alloc<T>(param_out);
  for (int64_t i = 0; i < param.numel(); ++i) to[i] = param.data<T>()[i] - step * grad.data<T>()[i];
}

template <typename T>
void ContiguousKernel(const phi::Context& context, const phi::DenseTensor& x,
                      phi::DenseTensor* out) {
  const auto dims = x.dims(), strides = x.strides();
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < out->numel(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      at += rest % dims[axis] * strides[axis];
    to[i] = x.data<T>()[at];
  }
}

// Uniform numbers that depend on the seed alone.
template <typename T>
void UniformKernel(const phi::Context& context, const phi::IntArray&, phi::DataType,
                   const phi::Scalar& min, const phi::Scalar& max, int seed,
                   phi::DenseTensor* out) {
  PD_CHECK(seed != 0, "a seed of 0 means any");
  uint64_t state = seed;
  T* to = context.Alloc<T>(out);
  for (int64_t i = 0; i < out->numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    to[i] = min.to<T>() +
            static_cast<T>(state >> 40) / static_cast<T>(1 << 24) * (max.to<T>() - min.to<T>());
  }
}

// Kernels that do wrong: each serves a dtype of its own of a unary operator.
template <typename T>
void WrongKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out);
template <>
void WrongKernel<float>(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {
  throw std::runtime_error("the device is on fire");
}
template <>
void WrongKernel<double>(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {}
template <>
void WrongKernel<phi::dtype::float16>(const phi::Context& context, const phi::DenseTensor&,
                                      phi::DenseTensor* out) {
  context.Alloc<float>(out);
}
template <typename T>
void NoMemoryKernel(const phi::Context&, const phi::DenseTensor&, phi::DenseTensor*) {
  phi::DenseTensor none;
  none.Resize({3});
  none.data<T>()[0] = T(1);
}

}  // namespace standin

#define STANDIN_KERNEL(...) PD_BUILD_PHI_KERNEL(__VA_ARGS__)
STANDIN_KERNEL(matmul, STANDIN, ALL_LAYOUT, standin::MatmulKernel, float, double) {}
STANDIN_KERNEL(concat, STANDIN, ALL_LAYOUT, standin::ConcatKernel, float, int64_t) {}
STANDIN_KERNEL(full, STANDIN, ALL_LAYOUT, standin::FullKernel, float, int64_t,
               phi::dtype::complex<float>) {}
STANDIN_KERNEL(sgd, STANDIN, ALL_LAYOUT, standin::SgdKernel, float) {}
STANDIN_KERNEL(contiguous, STANDIN, ALL_LAYOUT, standin::ContiguousKernel, float, int64_t) {}
STANDIN_KERNEL(uniform, STANDIN, ALL_LAYOUT, standin::UniformKernel, float) {}
STANDIN_KERNEL(sin, STANDIN, ALL_LAYOUT, standin::WrongKernel, float, double, phi::dtype::float16) {
}
STANDIN_KERNEL(cos, STANDIN, ALL_LAYOUT, standin::NoMemoryKernel, float) {}
// No operator of Tenon's.
STANDIN_KERNEL(accuracy, STANDIN, ALL_LAYOUT, standin::ContiguousKernel, float) {}
