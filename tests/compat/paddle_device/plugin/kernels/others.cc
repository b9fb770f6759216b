// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/capi/all.h>

#include <algorithm>
#include <cmath>

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

template <typename T, typename To>
void CopyAs(const phi::Context& context, const phi::DenseTensor& x, phi::DenseTensor* out) {
  To* to = context.Alloc<To>(out);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = static_cast<To>(x.data<T>()[i]);
}
template <typename T>
void CastKernel(const phi::Context& context, const phi::DenseTensor& x, phi::DataType dtype,
                phi::DenseTensor* out) {
  PD_CHECK(dtype == out->dtype(), "cast to ", dtype, " into ", out->dtype());
  if (dtype == phi::DataType::FLOAT32) return CopyAs<T, float>(context, x, out);
  if (dtype == phi::DataType::FLOAT64) return CopyAs<T, double>(context, x, out);
  if (dtype == phi::DataType::INT32) return CopyAs<T, int32_t>(context, x, out);
  if (dtype == phi::DataType::BOOL) return CopyAs<T, bool>(context, x, out);
  PD_THROW("no such cast");
}

// One loss for each row, whatever room its output has: as existing kernels do it.
template <typename T>
void CrossEntropyKernel(const phi::Context& context, const phi::DenseTensor& logits,
                        const phi::DenseTensor& label, bool soft_label, bool use_softmax, bool,
                        int ignore_index, int axis, phi::DenseTensor* softmax,
                        phi::DenseTensor* loss) {
  const int64_t rows = logits.dims()[0], classes = logits.dims()[1];
  PD_CHECK(!soft_label && use_softmax && axis == 1 && label.numel() == rows);
  T *weights = context.Alloc<T>(softmax), *losses = context.Alloc<T>(loss);
  for (int64_t row = 0; row < rows; ++row) {
    const T* x = logits.data<T>() + row * classes;
    const T largest = *std::max_element(x, x + classes);
    T sum = T(0);
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(x[i] - largest);
    for (int64_t i = 0; i < classes; ++i)
      weights[row * classes + i] = std::exp(x[i] - largest) / sum;
    const int64_t target = label.data<int64_t>()[row];
    losses[row] = target == ignore_index ? T(0) : std::log(sum) + largest - x[target];
  }
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
STANDIN_KERNEL(cast, STANDIN, ALL_LAYOUT, standin::CastKernel, float, int16_t, bool) {}
STANDIN_KERNEL(cross_entropy_with_softmax, STANDIN, ALL_LAYOUT, standin::CrossEntropyKernel, float,
               double) {}
// No operator of Tenon's.
STANDIN_KERNEL(accuracy, STANDIN, ALL_LAYOUT, standin::ContiguousKernel, float) {}
