// SPDX-License-Identifier: Apache-2.0
// Elements of a product of two CSR matrices where a third one has some, and the order of a matrix by columns. Each worker
// slot has one element of scratch memory for each column, which is left empty behind every row.
#include "sparse/products.hpp"

#include <tenon/signatures/sparse.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr const char* kOp = "csr_masked_product";
constexpr int64_t kMaxColumns = int64_t{1} << 40;

template <class T, class P, class X, class Y>
tenon_status multiply(tenon_ctx* ctx, const Structure<P>& pattern, const Structure<X>& x,
                      const Structure<Y>& y, const tenon_tensor* values_x,
                      const tenon_tensor* values_y, int64_t rows, int64_t columns,
                      tenon_tensor* out, tenon_err* err) {
  const T *left = data_of<T>(values_x), *right = data_of<T>(values_y);
  T* to = data_of<T>(out);
  if (columns > kMaxColumns)
    return fail_format(err, TENON_OUT_OF_MEMORY,
                       "[%s] expected at most 2^40 columns, of which each thread has scratch "
                       "memory, got %lld",
                       kOp, static_cast<long long>(columns));
  const int64_t work = 16 * (values_x->numel / std::max<int64_t>(rows, 1) + 1);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  return for_rows(ctx, rows, work, bytes, err, [&](int64_t first, int64_t last, void* memory) {
    T* sums = static_cast<T*>(memory);
    std::fill_n(sums, columns, T{});
    for (int64_t row = first; row < last; ++row) {
      if (pattern.offsets[row] == pattern.offsets[row + 1]) continue;
      for_products(x, y, row, [&](int64_t column, int64_t k, int64_t l) {
        sums[column] += left[k] * right[l];
      });
      for (int64_t p = pattern.offsets[row]; p < pattern.offsets[row + 1]; ++p)
        to[p] = sums[pattern.columns[p]];
      for_products(x, y, row, [&](int64_t column, int64_t, int64_t) { sums[column] = T{}; });
    }
  });
}

tenon_status csr_masked_product(tenon_ctx* ctx, const tenon_tensor* indptr,
                                const tenon_tensor* indices, const tenon_tensor* indptr_x,
                                const tenon_tensor* indices_x, const tenon_tensor* values_x,
                                const tenon_tensor* indptr_y, const tenon_tensor* indices_y,
                                const tenon_tensor* values_y, int64_t count, tenon_tensor* out,
                                tenon_err* err) {
  if (is_low_precision(values_x->dtype))
    return run_as_float32(csr_masked_product, ctx, err, indptr, indices, indptr_x, indices_x,
                          values_x, indptr_y, indices_y, values_y, count, out);
  const int64_t rows = indptr->numel - 1;
  return with_structure(ctx, kOp, indptr, indices, count, err, [&](const auto& pattern) {
    return with_structure(
        ctx, kOp, indptr_x, indices_x, indptr_y->numel - 1, err, [&](const auto& x) {
          return with_structure(ctx, kOp, indptr_y, indices_y, count, err, [&](const auto& y) {
            if (values_x->dtype == TENON_DTYPE_F32)
              return multiply<float>(ctx, pattern, x, y, values_x, values_y, rows, count, out, err);
            return multiply<double>(ctx, pattern, x, y, values_x, values_y, rows, count, out, err);
          });
        });
  });
}
TENON_BOX_csr_masked_product(csr_masked_product_boxed, csr_masked_product);

// A counting sort.
tenon_status csr_order(tenon_ctx* ctx, const tenon_tensor* indices, int64_t count,
                       tenon_tensor* out, tenon_err* err) {
  if (count > kMaxColumns)
    return fail_format(err, TENON_OUT_OF_MEMORY,
                       "[csr_order] expected at most 2^40 columns, got %lld",
                       static_cast<long long>(count));
  tenon_status status = TENON_OK;
  const tenon_status checked =
      with_columns(ctx, "csr_order", indices, count, err, [&]<class I>(const I* columns) {
        void* memory;
        status =
            host->scratch(ctx, static_cast<uint64_t>(count + 1) * sizeof(int64_t), &memory, err);
        if (status != TENON_OK) return;
        auto* next = static_cast<int64_t*>(memory);
        std::fill_n(next, count + 1, int64_t{0});
        for (int64_t k = 0; k < indices->numel; ++k) ++next[columns[k] + 1];
        for (int64_t column = 0; column < count; ++column) next[column + 1] += next[column];
        for (int64_t k = 0; k < indices->numel; ++k) data_of<int64_t>(out)[next[columns[k]]++] = k;
      });
  return checked != TENON_OK ? checked : status;
}
TENON_BOX_csr_order(csr_order_boxed, csr_order);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_csr_masked_product(csr_masked_product, nullptr, kFloats, 0, 0),
    TENON_KERNEL_csr_order(csr_order, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList masked_product_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
