// SPDX-License-Identifier: Apache-2.0
// Products of CSR matrices with dense ones. The elements of a result's row that fit the registers are added up there
// while the rows of `y` that come later are requested. Threads divide the rows, or for the transpose the columns, so that
// sums are in the order of storage and the number of threads changes no bit.
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "simd/vec.hpp"
#include "sparse/structure.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kAhead = 8;   // stored elements between a request and its use
constexpr int kMaxVectors = 8;  // of a row that are added up in registers

template <class T>
void prefetch_row(const T* row, int64_t count) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T)), kMaxLines = 8;
  for (int64_t j = 0; j < count && j < kMaxLines * kLine; j += kLine) __builtin_prefetch(row + j);
}

// What a row is the sum of: values[k] times the row columns[k] of y, of which `stride` elements lie between two.
template <class T, class I>
struct Terms {
  const T* values;
  const I* columns;
  const T* y;
  int64_t stride, stored;
};

// The elements of one row of the result from `j` on, of N vectors.
template <int N, class T, class I>
void add_vectors(const Terms<T, I>& terms, int64_t begin, int64_t end, int64_t j, T* out) {
  using V = Vec<T>;
  typename V::Vector sums[N] = {};
  for (int64_t k = begin; k < end; ++k) {
    if (k + kAhead < terms.stored)
      prefetch_row(terms.y + static_cast<int64_t>(terms.columns[k + kAhead]) * terms.stride + j,
                   N * V::count);
    const T value = terms.values[k];
    const T* row = terms.y + static_cast<int64_t>(terms.columns[k]) * terms.stride + j;
    for (int i = 0; i < N; ++i) sums[i] += V::load(row + i * V::count) * value;
  }
  for (int i = 0; i < N; ++i) V::store(out + i * V::count, sums[i]);
}

// One element of a row: four sums side by side, because each would wait for the one before it.
template <class T, class I>
T add_products(const Terms<T, I>& terms, int64_t begin, int64_t end, int64_t j) {
  const auto product = [&](int64_t k) {
    return terms.y[static_cast<int64_t>(terms.columns[k]) * terms.stride + j] * terms.values[k];
  };
  T sums[4] = {};
  int64_t k = begin;
  for (; k + 4 <= end; k += 4)
    for (int i = 0; i < 4; ++i) sums[i] += product(k + i);
  for (; k < end; ++k) sums[0] += product(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T, class I>
void multiply_row(const Terms<T, I>& terms, int64_t begin, int64_t end, int64_t features, T* out) {
  constexpr int64_t kCount = Vec<T>::count;
  int64_t j = 0;
  for (; j + kMaxVectors * kCount <= features; j += kMaxVectors * kCount)
    add_vectors<kMaxVectors>(terms, begin, end, j, out + j);
  if (j + 4 * kCount <= features) add_vectors<4>(terms, begin, end, j, out + j), j += 4 * kCount;
  if (j + 2 * kCount <= features) add_vectors<2>(terms, begin, end, j, out + j), j += 2 * kCount;
  if (j + kCount <= features) add_vectors<1>(terms, begin, end, j, out + j), j += kCount;
  for (; j < features; ++j) out[j] = add_products(terms, begin, end, j);
}

// Rows times a vector, which lies in caches more often than not.
template <class T, class I>
void multiply_vector(const Terms<T, I>& terms, const int64_t* offsets, int64_t first, int64_t last,
                     T* out) {
  const T *values = terms.values, *y = terms.y;
  const I* columns = terms.columns;
  for (int64_t row = first; row < last; ++row) {
    const int64_t end = offsets[row + 1];
    T sums[4] = {};
    int64_t k = offsets[row];
    for (; k + 4 <= end; k += 4)
      for (int i = 0; i < 4; ++i) sums[i] += y[columns[k + i]] * values[k + i];
    for (; k < end; ++k) sums[0] += y[columns[k]] * values[k];
    out[row] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// The columns of the matrix and the rows of `y` are the same.
tenon_status csr_matmul(tenon_ctx* ctx, const tenon_tensor* indptr, const tenon_tensor* indices,
                        const tenon_tensor* values, const tenon_tensor* y, tenon_tensor* out,
                        tenon_err* err) {
  if (is_low_precision(values->dtype))
    return run_as_float32(csr_matmul, ctx, err, indptr, indices, values, y, out);
  const int64_t rows = out->shape[0], features = out->shape[1], stored = indices->numel;
  const int64_t* offsets;
  const tenon_status status = read_indptr(ctx, "csr_matmul", indptr, stored, &offsets, err);
  if (status != TENON_OK) return status;
  return with_columns(ctx, "csr_matmul", indices, y->shape[0], err, [&]<class I>(const I* columns) {
    const auto multiply = [&]<class T>(Type<T>) {
      const Terms<T, I> terms{data_of<T>(values), columns, data_of<T>(y), features, stored};
      T* to = data_of<T>(out);
      for_each_part(offsets, rows, features + 1, [&](int64_t first, int64_t last) {
        if (features == 1) return multiply_vector(terms, offsets, first, last, to);
        for (int64_t row = first; row < last; ++row)
          multiply_row(terms, offsets[row], offsets[row + 1], features, to + row * features);
      });
    };
    if (values->dtype == TENON_DTYPE_F32)
      multiply(Type<float>{});
    else
      multiply(Type<double>{});
  });
}
TENON_BOX_csr_matmul(csr_matmul_boxed, csr_matmul);

// Each thread has columns of `y` and of the result, and goes through the matrix in the order of storage.
tenon_status csr_matmul_transposed(tenon_ctx* ctx, const tenon_tensor* indptr,
                                   const tenon_tensor* indices, const tenon_tensor* values,
                                   const tenon_tensor* y, int64_t count, tenon_tensor* out,
                                   tenon_err* err) {
  if (is_low_precision(values->dtype))
    return run_as_float32(csr_matmul_transposed, ctx, err, indptr, indices, values, y, count, out);
  const int64_t rows = y->shape[0], features = y->shape[1], stored = indices->numel;
  const int64_t* offsets;
  const tenon_status status =
      read_indptr(ctx, "csr_matmul_transposed", indptr, stored, &offsets, err);
  if (status != TENON_OK) return status;
  return with_columns(
      ctx, "csr_matmul_transposed", indices, count, err, [&]<class I>(const I* columns) {
        const auto multiply = [&]<class T>(Type<T>) {
          const T *scale = data_of<T>(values), *from = data_of<T>(y);
          T* to = data_of<T>(out);
          std::fill_n(to, out->numel, T{});
          constexpr int64_t kMinFeatures = 16;  // of a thread
          const int64_t parts =
              std::clamp<int64_t>(features / kMinFeatures, 1, workers_for(stored, features + 1));
          parallel(parts, stored * features / parts, [&](int64_t first, int64_t last) {
            const int64_t begin = features * first / parts, end = features * last / parts;
            for (int64_t row = 0; row < rows; ++row) {
              for (int64_t k = offsets[row]; k < offsets[row + 1]; ++k) {
                if (k + kAhead < stored)
                  prefetch_row(to + static_cast<int64_t>(columns[k + kAhead]) * features + begin,
                               end - begin);
                T* sum = to + static_cast<int64_t>(columns[k]) * features;
                const T* terms = from + row * features;
                for (int64_t j = begin; j < end; ++j) sum[j] += terms[j] * scale[k];
              }
            }
          });
        };
        if (values->dtype == TENON_DTYPE_F32)
          multiply(Type<float>{});
        else
          multiply(Type<double>{});
      });
}
TENON_BOX_csr_matmul_transposed(csr_matmul_transposed_boxed, csr_matmul_transposed);

constexpr int kTogether = 4;  // products that are added up side by side

// The sums of the elements of vectors, pair by pair: every step adds neighbours, and leaves those of x and then those of y.
template <class Vector, size_t... I>
Vector add_neighbours(const Vector& x, const Vector& y, std::index_sequence<I...>) {
  return __builtin_shufflevector(x, y, (2 * I)...) + __builtin_shufflevector(x, y, (2 * I + 1)...);
}
template <class T>
void sum_each(const typename Vec<T>::Vector* sums, T* out) {
  using V = Vec<T>;
  constexpr auto kAll = std::make_index_sequence<V::count>();
  const auto add = [&](const auto& x, const auto& y) { return add_neighbours(x, y, kAll); };
  typename V::Vector low = add(sums[0], sums[1]), high = add(sums[2], sums[3]);
  if constexpr (V::count == 2) {
    out[0] = low[0], out[1] = low[1], out[2] = high[0], out[3] = high[1];
  } else {
    low = add(low, high);
    for (int left = V::count / 4; left > 1; left /= 2) low = add(low, low);
    for (int i = 0; i < kTogether; ++i) out[i] = low[i];
  }
}

// Products of x and `count` rows of y, at most kTogether. Each is added up in the same order whatever is beside it.
template <class T>
void dots(const T* x, const T* const* rows, int count, int64_t features, T* out) {
  using V = Vec<T>;
  typename V::Vector sums[kTogether] = {};
  int64_t j = 0;
  if (count == kTogether) {
    for (; j + V::count <= features; j += V::count) {
      const auto own = V::load(x + j);
      for (int i = 0; i < kTogether; ++i) sums[i] += own * V::load(rows[i] + j);
    }
  } else {
    for (int i = 0; i < count; ++i)
      for (j = 0; j + V::count <= features; j += V::count)
        sums[i] += V::load(x + j) * V::load(rows[i] + j);
  }
  T totals[kTogether];
  sum_each<T>(sums, totals);
  for (int i = 0; i < count; ++i) {
    T rest{};
    for (int64_t k = features / V::count * V::count; k < features; ++k) rest += x[k] * rows[i][k];
    out[i] = totals[i] + rest;
  }
}

tenon_status csr_sddmm(tenon_ctx* ctx, const tenon_tensor* indptr, const tenon_tensor* indices,
                       const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                       tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(csr_sddmm, ctx, err, indptr, indices, x, y, out);
  const int64_t rows = x->shape[0], features = x->shape[1], stored = indices->numel;
  const int64_t* offsets;
  const tenon_status status = read_indptr(ctx, "csr_sddmm", indptr, stored, &offsets, err);
  if (status != TENON_OK) return status;
  return with_columns(ctx, "csr_sddmm", indices, y->shape[0], err, [&]<class I>(const I* columns) {
    const auto multiply = [&]<class T>(Type<T>) {
      const T *left = data_of<T>(x), *right = data_of<T>(y);
      T* to = data_of<T>(out);
      for_each_part(offsets, rows, features + 1, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) {
          for (int64_t k = offsets[row]; k < offsets[row + 1]; k += kTogether) {
            const T* others[kTogether];
            const int count = static_cast<int>(std::min<int64_t>(kTogether, offsets[row + 1] - k));
            for (int i = 0; i < count; ++i) {
              others[i] = right + static_cast<int64_t>(columns[k + i]) * features;
              if (k + i + kAhead < stored)
                prefetch_row(right + static_cast<int64_t>(columns[k + i + kAhead]) * features,
                             features);
            }
            dots(left + row * features, others, count, features, to + k);
          }
        }
      });
    };
    if (x->dtype == TENON_DTYPE_F32)
      multiply(Type<float>{});
    else
      multiply(Type<double>{});
  });
}
TENON_BOX_csr_sddmm(csr_sddmm_boxed, csr_sddmm);

tenon_status csr_rows(tenon_ctx* ctx, const tenon_tensor* indptr, int64_t count, tenon_tensor* out,
                      tenon_err* err) {
  const int64_t* offsets;
  const tenon_status status = read_indptr(ctx, "csr_rows", indptr, count, &offsets, err);
  if (status != TENON_OK) return status;
  for (int64_t row = 0; row + 1 < indptr->numel; ++row)
    std::fill(data_of<int64_t>(out) + offsets[row], data_of<int64_t>(out) + offsets[row + 1], row);
  return TENON_OK;
}
TENON_BOX_csr_rows(csr_rows_boxed, csr_rows);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_csr_matmul(csr_matmul, nullptr, kFloats, 0, 0),
    TENON_KERNEL_csr_matmul_transposed(csr_matmul_transposed, nullptr, kFloats, 0, 0),
    TENON_KERNEL_csr_sddmm(csr_sddmm, nullptr, kFloats, 0, 0),
    TENON_KERNEL_csr_rows(csr_rows, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList csr_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
