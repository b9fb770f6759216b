// SPDX-License-Identifier: Apache-2.0
// What kernels of batches of matrices have in common: access to matrices of any strides, the parallel
// loop over a batch with scratch memory, and errors that name a matrix of the batch.
//
// LAPACK stores matrices by columns and tensors by rows. A matrix that is copied row by row therefore
// is its own transpose to LAPACK. Most kernels use that: inv(A.T) is inv(A).T, and the factors of the
// singular value decomposition change roles. Others copy by columns.
#pragma once

#include "library.hpp"

#include <tenon/unbox.h>
#include <tenon/parallel.hpp>
#include <tenon/status.hpp>
#include <tenon/tensor.hpp>
#include <tenon/text.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace tenon::lapack {

struct KernelList {
  const tenon_kernel_def* first = nullptr;
  size_t count = 0;
  template <size_t N>
  KernelList(const tenon_kernel_def (&kernels)[N]) : first(kernels), count(N) {}
};

inline constexpr uint64_t kRealDtypes = uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1}
                                                                             << TENON_DTYPE_F64;
inline constexpr uint64_t kDtypes =
    kRealDtypes | uint64_t{1} << TENON_DTYPE_C64 | uint64_t{1} << TENON_DTYPE_C128;

// Calls f with a value of the element type.
template <class F>
tenon_status with_type(int dtype, F&& f) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return f(float{});
    case TENON_DTYPE_F64:
      return f(double{});
    case TENON_DTYPE_C64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

template <class T>
bool is_finite(T x) {
  if constexpr (kIsComplex<T>)
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  else
    return std::isfinite(x);
}
template <class T>
T conjugate(T x) {
  if constexpr (kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}

// One matrix in memory of any strides, counted in elements.
template <class T>
struct Matrix {
  T* data;
  int64_t rows, columns, row_stride, column_stride;
  T& operator()(int64_t i, int64_t j) const { return data[i * row_stride + j * column_stride]; }
};
template <class T>
Matrix<T> by_rows(T* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, columns, 1};
}
template <class T>
Matrix<T> by_columns(T* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, 1, rows};
}

// Copies in blocks, so that rows and columns of a block both stay in the first cache.
template <class T, class From>
void copy(const Matrix<From>& from, const Matrix<T>& to) {
  if (from.column_stride == 1 && to.column_stride == 1) {
    for (int64_t i = 0; i < from.rows; ++i)
      std::copy_n(from.data + i * from.row_stride, from.columns, to.data + i * to.row_stride);
    return;
  }
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < from.rows; i0 += kBlock)
    for (int64_t j0 = 0; j0 < from.columns; j0 += kBlock)
      for (int64_t i = i0; i < std::min(i0 + kBlock, from.rows); ++i)
        for (int64_t j = j0; j < std::min(j0 + kBlock, from.columns); ++j) to(i, j) = from(i, j);
}

template <class T>
bool all_finite(const Matrix<T>& x) {
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j)
      if (!is_finite(x(i, j))) return false;
  return true;
}

// The matrices in the last two axes of a tensor. `vector`: the last axis alone, as one column.
template <class T>
class Batch {
 public:
  explicit Batch(const tenon_tensor* x, bool vector = false) : x_(x), axes_(vector ? 1 : 2) {}
  int64_t rows() const { return x_->shape[x_->ndim - axes_]; }
  int64_t columns() const { return axes_ == 1 ? 1 : x_->shape[x_->ndim - 1]; }
  int64_t count() const {
    int64_t count = 1;
    for (int64_t extent : leading()) count *= extent;
    return count;
  }
  std::span<const int64_t> leading() const {
    return {x_->shape, static_cast<size_t>(x_->ndim - axes_)};
  }
  // Matrix `index` of this batch.
  Matrix<T> operator[](int64_t index) const { return at(index, leading()); }
  // Matrix `index` of a batch of shape `batch`, to which this one broadcasts.
  Matrix<T> at(int64_t index, std::span<const int64_t> batch) const {
    int64_t offset = 0;
    const auto own = static_cast<int64_t>(leading().size());
    for (int64_t axis = own - 1, of = static_cast<int64_t>(batch.size()) - 1; axis >= 0;
         --axis, --of) {
      if (x_->shape[axis] != 1) offset += index % batch[of] * x_->strides[axis];
      index /= batch[of];
    }
    T* data = static_cast<T*>(x_->data) + offset;
    const int64_t last = x_->strides[x_->ndim - 1];
    if (axes_ == 1) return {data, rows(), 1, last, 1};
    return {data, rows(), columns(), x_->strides[x_->ndim - 2], last};
  }

 private:
  const tenon_tensor* x_;
  int axes_;
};

// The first matrix of a batch that failed, and what LAPACK said about it.
class Failure {
 public:
  void note(int64_t index, int64_t info) {
    const std::lock_guard lock(mutex_);
    if (index_ >= 0 && index_ <= index) return;
    index_ = index;
    info_ = info;
  }
  explicit operator bool() const { return index_ >= 0; }
  int64_t info() const { return info_; }
  // " in matrix (1, 0) of the batch", or nothing where there is one matrix alone.
  std::string where(std::span<const int64_t> batch) const {
    if (batch.empty()) return "";
    std::vector<int64_t> indices(batch.size());
    int64_t rest = index_;
    for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis])
      indices[axis] = rest % batch[axis];
    return " in matrix " + list_text(indices) + " of the batch";
  }

 private:
  std::mutex mutex_;
  int64_t index_ = -1, info_ = 0;
};

// Memory of one thread, handed out piece by piece.
class Scratch {
 public:
  explicit Scratch(char* memory) : at_(memory) {}
  template <class T>
  T* take(int64_t count) {
    T* piece = reinterpret_cast<T*>(at_);
    at_ += bytes<T>(count);
    return piece;
  }
  template <class T>
  static int64_t bytes(int64_t count) {
    return (count * static_cast<int64_t>(sizeof(T)) + 63) & ~int64_t{63};
  }

 private:
  char* at_;
};

// Calls f(index, scratch) for every matrix of a batch; each costs `work` units (tenon/parallel.hpp).
// f returns 0, or what LAPACK said of a matrix that failed.
template <class F>
tenon_status for_batch(tenon_ctx* ctx, int64_t count, double work, int64_t bytes, Failure& failure,
                       tenon_err* err, F f) {
  // OpenBLAS has a buffer for each of so many threads that call it at once.
  constexpr int64_t kMaxThreads = 32;
  const bool serial = static_cast<double>(count) * work < kSerialWork;
  const int64_t threads =
      serial ? 1 : std::min<int64_t>({count, host->thread_count(), kMaxThreads});
  void* memory = nullptr;
  if (bytes > 0)
    if (const tenon_status status =
            host->scratch(ctx, static_cast<uint64_t>(bytes * threads), &memory, err);
        status != TENON_OK)
      return status;
  const auto run = [&](int64_t thread) {
    char* own = static_cast<char*>(memory) + thread * bytes;
    for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i)
      if (const int64_t info = f(i, Scratch(own)); info != 0) failure.note(i, info);
  };
  if (threads == 1) {
    run(0);
    return TENON_OK;
  }
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) run(thread);
  };
  host->parallel_for(
      0, threads, 1,
      [](void* user, int64_t begin, int64_t end) {
        (*static_cast<decltype(body)*>(user))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
  return TENON_OK;
}

inline double cube(int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

// What f(work, lwork, info) asks for when it is called with lwork = -1.
template <class T, class F>
int64_t best_lwork(F&& f) {
  T best{};
  const Int query = -1;
  Int info = 0;
  f(&best, &query, &info);
  double size;
  if constexpr (kIsComplex<T>)
    size = static_cast<double>(best.real());
  else
    size = static_cast<double>(best);
  // float32 rounds large sizes.
  return static_cast<int64_t>(size * (1 + 1e-6)) + 1;
}

inline constexpr int64_t kNotFinite = INT64_MIN;  // found by us, before LAPACK is called

// Ends a kernel: an error if a matrix failed. `expected` says what was expected of it.
inline tenon_status finish(tenon_status status, const char* op, const Failure& failure,
                           std::span<const int64_t> batch, const char* expected, const char* hint,
                           tenon_err* err) {
  if (status != TENON_OK || !failure) return status;
  if (failure.info() == kNotFinite)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected finite elements, got NaN or infinity%s; check the "
                       "computation before it with isfinite()",
                       op, failure.where(batch).c_str());
  return fail_format(err, TENON_INVALID_ARGUMENT, "[%s] expected %s%s (LAPACK: info %lld); %s", op,
                     expected, failure.where(batch).c_str(), static_cast<long long>(failure.info()),
                     hint);
}

}  // namespace tenon::lapack
