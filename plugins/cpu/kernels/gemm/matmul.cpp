// SPDX-License-Identifier: Apache-2.0
// matmul, matmul_integer and linear: batch axes, broadcasting and dtypes around GEMM.
#include "gemm/low_precision.hpp"
#include "kernel.hpp"

#include <tenon/signatures/linalg.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The operands as matrices, whatever their axes: out[batch] = x[batch] y[batch].
struct Product {
  int64_t m, n, k;
  int64_t x_row, x_column, y_row, y_column, out_row;
  BatchOffsets batch;
};

int64_t extent_from_end(const tenon_tensor* t, int i) {
  return i < t->ndim ? t->shape[t->ndim - 1 - i] : 1;
}
int64_t stride_from_end(const tenon_tensor* t, int i) {
  return i < t->ndim && t->shape[t->ndim - 1 - i] != 1 ? t->strides[t->ndim - 1 - i] : 0;
}

// `transposed` says that y is [n, k], as the weight of linear is.
Product product_of(const tenon_tensor* x, const tenon_tensor* y, bool transposed) {
  Product p;
  const bool row = x->ndim == 1, column = y->ndim == 1;
  p.k = x->shape[x->ndim - 1];
  p.m = row ? 1 : x->shape[x->ndim - 2];
  p.n = column ? 1 : y->shape[transposed ? 0 : y->ndim - 1];
  p.x_column = x->strides[x->ndim - 1];
  p.x_row = row ? 0 : x->strides[x->ndim - 2];
  if (column) {
    p.y_row = y->strides[0];
    p.y_column = 0;
  } else {
    p.y_row = y->strides[y->ndim - (transposed ? 1 : 2)];
    p.y_column = y->strides[y->ndim - (transposed ? 2 : 1)];
  }
  p.out_row = p.n;

  // Collects batch axes from the innermost outwards; out is contiguous.
  const int skip_x = row ? 1 : 2, skip_y = column ? 1 : 2;
  const int axes = std::max(x->ndim - skip_x, y->ndim - skip_y);
  int64_t out_stride = p.m * p.n;
  for (int i = 0; i < axes; ++i) {
    const int64_t extent = std::max(extent_from_end(x, i + skip_x), extent_from_end(y, i + skip_y));
    const int64_t smaller =
        std::min(extent_from_end(x, i + skip_x), extent_from_end(y, i + skip_y));
    const int64_t length = smaller == 0 ? 0 : extent;
    const int64_t x_stride = stride_from_end(x, i + skip_x);
    const int64_t y_stride = stride_from_end(y, i + skip_y);
    // A batch times a single matrix is one taller matrix if the stride continues from the last row
    // of an item to the first row of the next.
    if (p.batch.count == 0 && y_stride == 0 && !row &&
        (x_stride == p.m * p.x_row || length == 1 || p.m == 1)) {
      if (p.m == 1 && length != 1) p.x_row = x_stride;
      p.m *= length;
      out_stride *= length;
      continue;
    }
    if (length != 1) {
      const int at = p.batch.count++;
      p.batch.extent[at] = length;
      p.batch.a[at] = x_stride;
      p.batch.b[at] = y_stride;
      p.batch.c[at] = out_stride;
    }
    out_stride *= length;
  }
  // GEMM expects the outermost axis first.
  BatchOffsets& batch = p.batch;
  std::reverse(batch.extent, batch.extent + batch.count);
  std::reverse(batch.a, batch.a + batch.count);
  std::reverse(batch.b, batch.b + batch.count);
  std::reverse(batch.c, batch.c + batch.count);
  return p;
}

// Initialises every row of out with the bias.
template <class T>
void fill_rows(const tenon_tensor* out, const tenon_tensor* bias) {
  const int64_t n = bias->numel, stride = n > 1 ? bias->strides[bias->ndim - 1] : 0;
  const T* from = data_of<T>(bias);
  parallel(n > 0 ? out->numel / n : 0, n, [&](int64_t begin, int64_t end) {
    T* to = data_of<T>(out) + begin * n;
    for (int64_t j = 0; j < n; ++j) to[j] = from[j * stride];
    for (int64_t i = 1; i < end - begin; ++i) std::memcpy(to + i * n, to, sizeof(T) * n);
  });
}

template <class T>
tenon_status run(tenon_ctx* ctx, const Product& p, const tenon_tensor* x, const tenon_tensor* y,
                 const tenon_tensor* bias, const tenon_tensor* out, tenon_err* err) {
  if (bias && p.n > 1 && bias->strides[bias->ndim - 1] == 1) {
    return gemm_with_bias<T>(ctx, p.m, p.n, p.k, {data_of<T>(x), p.x_row, p.x_column},
                             {data_of<T>(y), p.y_row, p.y_column}, data_of<T>(bias),
                             data_of<T>(out), p.out_row, p.batch, err);
  }
  if (bias) fill_rows<T>(out, bias);
  return gemm<T>(ctx, p.m, p.n, p.k, {data_of<T>(x), p.x_row, p.x_column},
                 {data_of<T>(y), p.y_row, p.y_column}, data_of<T>(out), p.out_row, bias != nullptr,
                 p.batch, err);
}

template <class T16>
tenon_status run_low_precision(tenon_ctx* ctx, const Product& p, const tenon_tensor* x,
                               const tenon_tensor* y, const tenon_tensor* bias,
                               const tenon_tensor* out, tenon_err* err) {
  if (bias) fill_rows<T16>(out, bias);
  return gemm_low_precision<T16>(ctx, p.m, p.n, p.k, {data_of<T16>(x), p.x_row, p.x_column},
                                 {data_of<T16>(y), p.y_row, p.y_column}, data_of<T16>(out),
                                 p.out_row, bias != nullptr, p.batch, err);
}

// Computes (a + ib)(c + id) by four real GEMMs on separated real and imaginary parts.
template <class T>
tenon_status run_complex(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                         const tenon_tensor* bias, tenon_tensor* out, bool transposed,
                         tenon_err* err) {
  const int64_t numbers = 3 * x->numel + 2 * y->numel + 2 * out->numel;
  void* memory = nullptr;
  const tenon_status status = host->scratch(
      ctx, static_cast<uint64_t>(std::max<int64_t>(numbers, 1)) * sizeof(T), &memory, err);
  if (status != TENON_OK) return status;
  T* x_real = static_cast<T*>(memory);
  T *x_imaginary = x_real + x->numel, *x_negated = x_imaginary + x->numel;
  T *y_real = x_negated + x->numel, *y_imaginary = y_real + y->numel;
  T *real = y_imaginary + y->numel, *imaginary = real + out->numel;
  const T* from = data_of<T>(x);
  for (int64_t i = 0; i < x->numel; ++i) {
    x_real[i] = from[2 * i];
    x_imaginary[i] = from[2 * i + 1];
    x_negated[i] = -from[2 * i + 1];
  }
  from = data_of<T>(y);
  for (int64_t i = 0; i < y->numel; ++i) {
    y_real[i] = from[2 * i];
    y_imaginary[i] = from[2 * i + 1];
  }
  const Product p = product_of(x, y, transposed);
  const struct {
    const T *left, *right;
    T* to;
    bool accumulate;
  } products[] = {{x_real, y_real, real, false},
                  {x_negated, y_imaginary, real, true},
                  {x_real, y_imaginary, imaginary, false},
                  {x_imaginary, y_real, imaginary, true}};
  for (const auto& each : products) {
    const tenon_status done = gemm<T>(ctx, p.m, p.n, p.k, {each.left, p.x_row, p.x_column},
                                      {each.right, p.y_row, p.y_column}, each.to, p.out_row,
                                      each.accumulate, p.batch, err);
    if (done != TENON_OK) return done;
  }
  T* to = data_of<T>(out);
  const T* shift = bias ? data_of<T>(bias) : nullptr;
  for (int64_t i = 0; i < out->numel; ++i) {
    const int64_t j = shift ? i % p.n : 0;
    to[2 * i] = real[i] + (shift ? shift[2 * j] : T(0));
    to[2 * i + 1] = imaginary[i] + (shift ? shift[2 * j + 1] : T(0));
  }
  return TENON_OK;
}

template <bool Transposed>
tenon_status multiply(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                      const tenon_tensor* bias, tenon_tensor* out, tenon_err* err) {
  const auto as = [&]<class T>(Type<T>) {
    return run<T>(ctx, product_of(x, y, Transposed), x, y, bias, out, err);
  };
  if (out->numel == 0) return TENON_OK;
  switch (x->dtype) {
    case TENON_DTYPE_F32:
      return as(Type<float>{});
    case TENON_DTYPE_F64:
      return as(Type<double>{});
    case TENON_DTYPE_C64:
      return run_complex<float>(ctx, x, y, bias, out, Transposed, err);
    case TENON_DTYPE_C128:
      return run_complex<double>(ctx, x, y, bias, out, Transposed, err);
    case TENON_DTYPE_F16:
      return run_low_precision<Float16>(ctx, product_of(x, y, Transposed), x, y, bias, out, err);
    case TENON_DTYPE_BF16:
      return run_low_precision<BFloat16>(ctx, product_of(x, y, Transposed), x, y, bias, out, err);
    default:
      break;
  }
  if (is_low_precision(x->dtype)) {
    return run_as_float32(multiply<Transposed>, ctx, err, x, y, bias, out);
  }
  switch (kDtypeSize[x->dtype]) {  // Signed integers wrap to the same bits.
    case 1:
      return as(Type<uint8_t>{});
    case 2:
      return as(Type<uint16_t>{});
    case 4:
      return as(Type<uint32_t>{});
    default:
      return as(Type<uint64_t>{});
  }
}

tenon_status matmul_integer(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                            tenon_tensor* out, tenon_err* err) {
  const Product p = product_of(x, y, false);
  if (out->numel == 0) return TENON_OK;
  const auto as = [&]<class L, class R>(Type<L>, Type<R>) {
    return gemm_int8<L, R>(ctx, p.m, p.n, p.k, {data_of<L>(x), p.x_row, p.x_column},
                           {data_of<R>(y), p.y_row, p.y_column}, data_of<int32_t>(out), p.out_row,
                           p.batch, err);
  };
  const auto with_right = [&]<class L>(Type<L> left) {
    return y->dtype == TENON_DTYPE_I8 ? as(left, Type<int8_t>{}) : as(left, Type<uint8_t>{});
  };
  return x->dtype == TENON_DTYPE_I8 ? with_right(Type<int8_t>{}) : with_right(Type<uint8_t>{});
}
TENON_BOX_matmul_integer(matmul_integer_boxed, matmul_integer);

// The kernels for strided operands serve the dtypes that GEMM reads in place. The other dtypes are
// converted or separated first, which is simpler for contiguous operands.
constexpr uint64_t kConverted =
    dtype_bit(TENON_DTYPE_F8E4M3) | dtype_bit(TENON_DTYPE_F8E5M2) | kComplexes;
constexpr uint64_t kInPlace = (kIntegers | kFloats) & ~kConverted;

tenon_status matmul(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                    tenon_err* err) {
  return multiply<false>(ctx, x, y, nullptr, out, err);
}
TENON_BOX_matmul(matmul_boxed, matmul);

tenon_status linear(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                    const tenon_tensor* bias, tenon_tensor* out, tenon_err* err) {
  return multiply<true>(ctx, x, weight, bias, out, err);
}
TENON_BOX_linear(linear_boxed, linear);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_matmul(matmul, nullptr, kInPlace, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_matmul(matmul, nullptr, kConverted, 0, 0),
    TENON_KERNEL_matmul_integer(matmul_integer, nullptr,
                                dtype_bit(TENON_DTYPE_I8) | dtype_bit(TENON_DTYPE_U8),
                                TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_linear(linear, nullptr, kInPlace, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_linear(linear, nullptr, kConverted, 0, 0)};

}  // namespace

KernelList matmul_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
