// SPDX-License-Identifier: Apache-2.0
// Products of CSR matrices with dense ones. The elements of a result's row that fit the registers are added up there
// while the rows of `y` that come later are requested. Threads divide the rows, or for the transpose the columns, so that
// sums are in the order of storage and the number of threads changes no bit.
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "simd/vec.hpp"
#include "sparse/structure.hpp"
#include "sparse/vector_product.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>
#include <cstring>
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

template <class T, class I>
void multiply_row(const Terms<T, I>& terms, int64_t begin, int64_t end, int64_t features, T* out) {
  constexpr int64_t kCount = Vec<T>::count;
  int64_t j = 0;
  for (; j + kMaxVectors * kCount <= features; j += kMaxVectors * kCount)
    add_vectors<kMaxVectors>(terms, begin, end, j, out + j);
  if (j + 4 * kCount <= features) add_vectors<4>(terms, begin, end, j, out + j), j += 4 * kCount;
  if (j + 2 * kCount <= features) add_vectors<2>(terms, begin, end, j, out + j), j += 2 * kCount;
  if (j + kCount <= features) add_vectors<1>(terms, begin, end, j, out + j), j += kCount;
  for (; j < features; ++j)
    out[j] = add_products(terms.values, begin, end, [&terms, j](int64_t k) {
      return terms.y + static_cast<int64_t>(terms.columns[k]) * terms.stride + j;
    });
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
      const bool is_short = stored < kShortRow * rows;
      for_each_part(offsets, rows, features + 1, [&](int64_t first, int64_t last) {
        if (features == 1 && is_short)
          return multiply_short_rows(terms.values, columns, terms.y, offsets, first, last, to);
        if (features == 1)
          return multiply_rows(terms.values, columns, terms.y, offsets, first, last, to);
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

// The sums of neighbours in each lane of 16 bytes, those of x before those of y: a shuffle that leaves no lane takes one
// instruction of one cycle.
template <class T, class Vector, int... I>
Vector add_neighbours(const Vector& x, const Vector& y, std::integer_sequence<int, I...>) {
  constexpr int kCount = sizeof...(I), kLane = 16 / sizeof(T), kPairs = kLane / 2;
  constexpr auto kFrom = [](int i) {
    return i / kLane * kLane + i % kPairs * 2 + (i % kLane < kPairs ? 0 : kCount);
  };
  return __builtin_shufflevector(x, y, kFrom(I)...) +
         __builtin_shufflevector(x, y, (kFrom(I) + 1)...);
}

// The sum of the lanes of x, neighbours first, in one lane.
template <class T, class Vector, int... I>
auto add_neighbouring_lanes(const Vector& x, std::integer_sequence<int, I...>) {
  constexpr int kLane = 16 / sizeof(T);
  constexpr auto kFrom = [](int i) { return i / kLane * 2 * kLane + i % kLane; };
  return __builtin_shufflevector(x, x, kFrom(I)...) +
         __builtin_shufflevector(x, x, (kFrom(I) + kLane)...);
}
template <class T, class Vector>
auto add_lanes(const Vector& x) {
  if constexpr (sizeof x == 16) {
    return x;
  } else {
    constexpr auto kHalf = std::make_integer_sequence<int, sizeof x / sizeof(T) / 2>();
    return add_lanes<T>(add_neighbouring_lanes<T>(x, kHalf));
  }
}

// The sums of the elements of four vectors, pair by pair.
template <class T>
void sum_each(const typename Vec<T>::Vector* sums, T* out) {
  constexpr auto kAll = std::make_integer_sequence<int, Vec<T>::count>();
  const auto low = add_neighbours<T>(sums[0], sums[1], kAll),
             high = add_neighbours<T>(sums[2], sums[3], kAll);
  if constexpr (sizeof(T) == 8) {
    const auto first = add_lanes<T>(low), second = add_lanes<T>(high);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + 2, &second, sizeof second);
  } else {
    const auto all = add_lanes<T>(add_neighbours<T>(low, high, kAll));
    std::memcpy(out, &all, sizeof all);
  }
}

// Products of x and kTogether rows of y, of which the last may be the same one. Each is added up in the same order
// whatever is beside it. N is the number of vectors in a row, or 0 for any.
template <int N, class T>
void dots(const T* x, const T* const* rows, int64_t features, T* out) {
  using V = Vec<T>;
  typename V::Vector sums[kTogether] = {};
  const int64_t vectors = N > 0 ? N : features / V::count;
  for (int64_t j = 0; j < vectors; ++j) {
    const auto own = V::load(x + j * V::count);
    for (int i = 0; i < kTogether; ++i) sums[i] += own * V::load(rows[i] + j * V::count);
  }
  sum_each<T>(sums, out);
  if constexpr (N > 0) return;
  for (int i = 0; i < kTogether; ++i) {
    T rest{};
    for (int64_t k = vectors * V::count; k < features; ++k) rest += x[k] * rows[i][k];
    out[i] += rest;
  }
}

// What is sampled: rows of x times rows of y.
template <class T, class I>
struct Factors {
  const T *x, *y;
  const I* columns;
  int64_t features, stored;
};

template <int N, class T, class I>
void sample_rows(const Factors<T, I>& f, const int64_t* offsets, int64_t first, int64_t last,
                 T* out) {
  constexpr int64_t kFurther = 16;  // stored elements between a request and its use
  const int64_t features = N > 0 ? N * Vec<T>::count : f.features;
  const auto other = [&](int64_t k) { return f.y + static_cast<int64_t>(f.columns[k]) * features; };
  for (int64_t row = first; row < last; ++row) {
    const T* own = f.x + row * features;
    const int64_t end = offsets[row + 1];
    for (int64_t k = offsets[row]; k < end; k += kTogether) {
      if (k + kFurther + kTogether <= f.stored)
        for (int i = 0; i < kTogether; ++i) prefetch_row(other(k + kFurther + i), features);
      const T* rows[kTogether];
      for (int i = 0; i < kTogether; ++i) rows[i] = other(std::min(k + i, end - 1));
      if (end - k >= kTogether) {
        dots<N>(own, rows, features, out + k);
      } else {
        T found[kTogether];
        dots<N>(own, rows, features, found);
        std::copy_n(found, end - k, out + k);
      }
    }
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
      const Factors<T, I> factors{data_of<T>(x), data_of<T>(y), columns, features, stored};
      T* to = data_of<T>(out);
      constexpr int64_t kCount = Vec<T>::count;
      for_each_part(offsets, rows, features + 1, [&](int64_t first, int64_t last) {
        // Rows of the usual heads of attention stay in registers.
        if (features == 4 * kCount) return sample_rows<4>(factors, offsets, first, last, to);
        if (features == 8 * kCount) return sample_rows<8>(factors, offsets, first, last, to);
        sample_rows<0>(factors, offsets, first, last, to);
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
