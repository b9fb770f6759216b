// SPDX-License-Identifier: Apache-2.0
// Products of two CSR matrices. A first pass counts the elements of each row, a second one computes them where they go. A
// row is added up in the accumulator that suits the number of its products.
#include "sparse/accumulators.hpp"
#include "sparse/products.hpp"

#include <tenon/signatures/sparse.h>

#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr const char* kOp = "csr_product";

// The number of products of a row, which bounds the number of its elements.
template <class X, class Y>
int64_t products_of(const Structure<X>& x, const Structure<Y>& y, int64_t row) {
  int64_t count = 0;
  for (int64_t k = x.offsets[row]; k < x.offsets[row + 1]; ++k) {
    const auto through = static_cast<int64_t>(x.columns[k]);
    count += y.offsets[through + 1] - y.offsets[through];
  }
  return count;
}

template <class T>
using SomeSums = DenseSums<T, true>;  // of few elements for 64 columns
template <class T>
using ManySums = DenseSums<T, false>;

// What the rows of a product need.
template <class T>
struct Needs {
  int64_t columns, elements = 0, hashed = 0, products = 0;
  bool is_dense = false;

  template <class X, class Y>
  Needs(const Structure<X>& x, const Structure<Y>& y, int64_t rows, int64_t count)
      : columns(count) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t bound = products_of(x, y, row);
      elements = std::max(elements, std::min(bound, columns));
      products += bound;
      if (SomeSums<T>::is_worth(bound, columns))
        is_dense = true;
      else
        hashed = std::max(hashed, bound);
    }
  }
  int64_t dense_bytes() const { return is_dense ? SomeSums<T>::bytes(columns) : 0; }
  int64_t hashed_bytes() const { return (HashedSums<T>::bytes(hashed) + 63) / 64 * 64; }
};

// f(row, accumulator, memory behind the accumulators) for each row, on several threads.
template <class T, class X, class Y, class F>
tenon_status for_sums(tenon_ctx* ctx, const Structure<X>& x, const Structure<Y>& y,
                      const Needs<T>& needs, int64_t rows, int64_t more_bytes, tenon_err* err,
                      F&& f) {
  const int64_t bytes = needs.dense_bytes() + needs.hashed_bytes() + more_bytes;
  const int64_t work = 4 * (needs.products / std::max<int64_t>(rows, 1) + 1);
  return for_rows(ctx, rows, work, bytes, err, [&](int64_t first, int64_t last, void* memory) {
    char* const behind_dense = static_cast<char*>(memory) + needs.dense_bytes();
    // In the same memory, which each of them leaves empty.
    SomeSums<T> some(memory, needs.is_dense ? needs.columns : 0);
    ManySums<T> many(memory, needs.is_dense ? needs.columns : 0);
    HashedSums<T> hashed(behind_dense, needs.hashed);
    void* const more = behind_dense + needs.hashed_bytes();
    for (int64_t row = first; row < last; ++row) {
      const int64_t products = products_of(x, y, row);
      if (products == 0) continue;
      if (ManySums<T>::is_worth(products, needs.columns))
        f(row, many, more);
      else if (SomeSums<T>::is_worth(products, needs.columns))
        f(row, some, more);
      else
        f(row, hashed, more);
    }
  });
}

template <class T, class X, class Y>
tenon_status multiply(tenon_ctx* ctx, const Structure<X>& x, const Structure<Y>& y,
                      const tenon_tensor* values_x, const tenon_tensor* values_y, int64_t rows,
                      int64_t columns, tenon_err* err) {
  const Needs<T> needs(x, y, rows, columns);
  tenon_tensor *indptr, *indices, *values;
  const int64_t size = rows + 1;
  tenon_status status = host->output_alloc(ctx, 0, TENON_DTYPE_I64, 1, &size, &indptr, err);
  if (status != TENON_OK) return status;
  int64_t* begin = data_of<int64_t>(indptr);
  std::fill_n(begin, size, int64_t{0});
  status = for_sums(ctx, x, y, needs, rows, 0, err, [&](int64_t row, auto& sums, void*) {
    for_products(x, y, row, [&](int64_t column, int64_t, int64_t) { sums.touch(column); });
    begin[row + 1] = sums.count();
  });
  if (status != TENON_OK) return status;
  for (int64_t row = 0; row < rows; ++row) begin[row + 1] += begin[row];

  constexpr int32_t kIndices = sizeof(Y) == 4 ? TENON_DTYPE_I32 : TENON_DTYPE_I64;
  status = host->output_alloc(ctx, 1, kIndices, 1, &begin[rows], &indices, err);
  if (status == TENON_OK)
    status = host->output_alloc(ctx, 2, values_x->dtype, 1, &begin[rows], &values, err);
  if (status != TENON_OK) return status;
  const T *left = data_of<T>(values_x), *right = data_of<T>(values_y);
  Y* to_columns = data_of<Y>(indices);
  T* to_values = data_of<T>(values);
  // A row is written beside the results first, because what is written behind its end may be another thread's row.
  const int64_t room = (needs.elements + kRowMargin + 63) / 64 * 64;
  const int64_t bytes = room * static_cast<int64_t>(sizeof(Y) + sizeof(T));
  return for_sums(ctx, x, y, needs, rows, bytes, err, [&](int64_t row, auto& sums, void* memory) {
    for_products(x, y, row, [&](int64_t column, int64_t k, int64_t l) {
      sums.add(column, left[k], right[l]);
    });
    Y* own_columns = static_cast<Y*>(memory);
    T* own_values = reinterpret_cast<T*>(own_columns + room);
    const int64_t count = sums.write(own_columns, own_values);
    std::copy_n(own_columns, count, to_columns + begin[row]);
    std::copy_n(own_values, count, to_values + begin[row]);
  });
}

tenon_status expect_vectors(std::initializer_list<std::pair<const char*, const tenon_tensor*>> all,
                            tenon_err* err) {
  for (const auto& [name, vector] : all) {
    if (vector->ndim != 1)
      return fail_format(err, TENON_INVALID_ARGUMENT, "[%s] expected a vector for %s, got %d axes",
                         kOp, name, vector->ndim);
  }
  return TENON_OK;
}

tenon_status csr_product(tenon_ctx* ctx, const tenon_tensor* indptr_x,
                         const tenon_tensor* indices_x, const tenon_tensor* values_x,
                         const tenon_tensor* indptr_y, const tenon_tensor* indices_y,
                         const tenon_tensor* values_y, int64_t count, tenon_err* err) {
  const tenon_status status = expect_vectors({{"indptr_x", indptr_x},
                                              {"indices_x", indices_x},
                                              {"values_x", values_x},
                                              {"indptr_y", indptr_y},
                                              {"indices_y", indices_y},
                                              {"values_y", values_y}},
                                             err);
  if (status != TENON_OK) return status;
  if (indptr_x->numel < 1 || indptr_y->numel < 1 || count < 0)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "[%s] expected an indptr of one number more than there are rows, and a count "
        "of at least 0",
        kOp);
  if (values_x->numel != indices_x->numel || values_y->numel != indices_y->numel)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "[%s] expected as many values as indices, got %lld for %lld and %lld for "
        "%lld",
        kOp, static_cast<long long>(values_x->numel), static_cast<long long>(indices_x->numel),
        static_cast<long long>(values_y->numel), static_cast<long long>(indices_y->numel));
  const int64_t rows = indptr_x->numel - 1;
  return with_structure(
      ctx, kOp, indptr_x, indices_x, indptr_y->numel - 1, err, [&](const auto& x) {
        return with_structure(ctx, kOp, indptr_y, indices_y, count, err, [&](const auto& y) {
          if (values_x->dtype == TENON_DTYPE_F32)
            return multiply<float>(ctx, x, y, values_x, values_y, rows, count, err);
          return multiply<double>(ctx, x, y, values_x, values_y, rows, count, err);
        });
      });
}
TENON_BOX_csr_product(csr_product_boxed, csr_product);

constexpr uint64_t kWide = dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);
const tenon_kernel_def kKernels[] = {TENON_KERNEL_csr_product(csr_product, nullptr, kWide, 0, 0)};

}  // namespace

KernelList product_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
