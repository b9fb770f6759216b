// SPDX-License-Identifier: Apache-2.0
// Products of two CSR matrices, row after row (Gustavson, 1978): where a result's row has elements, and what these are.
// Each worker slot has one element of scratch memory for each column, which is left empty behind every row.
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "sparse/structure.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The structure of a matrix whose offsets and columns were checked.
template <class I>
struct Structure {
  const int64_t* offsets;
  const I* columns;
};

// f(Structure) of a matrix of `columns` columns.
template <class F>
tenon_status with_structure(tenon_ctx* ctx, const char* op, const tenon_tensor* indptr,
                            const tenon_tensor* indices, int64_t columns, tenon_err* err, F&& f) {
  const int64_t* offsets;
  tenon_status status = read_indptr(ctx, op, indptr, indices->numel, &offsets, err);
  if (status != TENON_OK) return status;
  tenon_status inner = TENON_OK;
  status = with_columns(ctx, op, indices, columns, err, [&]<class I>(const I* from) {
    inner = f(Structure<I>{offsets, from});
  });
  return status != TENON_OK ? status : inner;
}

// f(column, k, l) for the products of a row: of the elements k of x and l of y.
template <class X, class Y, class F>
void for_products(const Structure<X>& x, const Structure<Y>& y, int64_t row, F&& f) {
  for (int64_t k = x.offsets[row]; k < x.offsets[row + 1]; ++k) {
    const auto through = static_cast<int64_t>(x.columns[k]);
    for (int64_t l = y.offsets[through]; l < y.offsets[through + 1]; ++l)
      f(static_cast<int64_t>(y.columns[l]), k, l);
  }
}

// Which columns the products of one row are in.
class Columns {
 public:
  Columns(void* memory, int64_t columns)
      : bits_(static_cast<uint64_t*>(memory)), words_((columns + 63) / 64) {
    std::fill_n(bits_, words_, uint64_t{0});
  }
  static int64_t bytes(int64_t columns) { return (columns + 63) / 64 * 8; }

  template <class X, class Y>
  int64_t count(const Structure<X>& x, const Structure<Y>& y, int64_t row) {
    int64_t found = 0;
    for_products(x, y, row, [&](int64_t column, int64_t, int64_t) {
      found += !(bits_[column >> 6] >> (column & 63) & 1);
      bits_[column >> 6] |= uint64_t{1} << (column & 63);
    });
    for_products(x, y, row, [&](int64_t column, int64_t, int64_t) { bits_[column >> 6] = 0; });
    return found;
  }

  // Ascending. Few of many columns are sorted; else all bits are looked through.
  template <class X, class Y>
  void write(const Structure<X>& x, const Structure<Y>& y, int64_t row, int64_t* out,
             int64_t count) {
    int64_t found = 0;
    for_products(x, y, row, [&](int64_t column, int64_t, int64_t) {
      const uint64_t bit = uint64_t{1} << (column & 63);
      if (bits_[column >> 6] & bit) return;
      bits_[column >> 6] |= bit;
      out[found++] = column;
    });
    if (count * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(count))) < words_) {
      std::sort(out, out + count);
      for (int64_t i = 0; i < count; ++i) bits_[out[i] >> 6] = 0;
      return;
    }
    for (int64_t word = 0; word < words_; ++word) {
      for (uint64_t bits = bits_[word]; bits != 0; bits &= bits - 1)
        *out++ = word * 64 + std::countr_zero(bits);
      bits_[word] = 0;
    }
  }

 private:
  uint64_t* bits_;
  int64_t words_;
};

constexpr const char* kStructure = "csr_product_structure";
constexpr const char* kProduct = "csr_masked_product";
constexpr int64_t kMaxColumns = int64_t{1} << 40;

// Rows that one thread takes at a time: not so few that filling the scratch memory would matter.
int64_t parts_of(int64_t rows) {
  constexpr int64_t kMinRows = 256, kPartsOfAThread = 8;
  return std::min((rows + kMinRows - 1) / kMinRows, host->thread_count() * kPartsOfAThread);
}

// f(first row, last row, scratch memory), with the products that rows have on average as the work.
template <class F>
tenon_status for_rows(tenon_ctx* ctx, const char* op, int64_t rows, int64_t columns, int64_t work,
                      int64_t bytes, tenon_err* err, F&& f) {
  const int64_t parts = parts_of(rows);
  if (parts == 0) return TENON_OK;
  if (columns > kMaxColumns)
    return fail_format(
        err, TENON_OUT_OF_MEMORY,
        "[%s] expected at most 2^40 columns, of which each thread has scratch memory, "
        "got %lld",
        op, static_cast<long long>(columns));
  return parallel_for_with_scratch(ctx, parts, work * (rows / parts), bytes, err,
                                   [&](int64_t part, void* memory) {
                                     f(rows * part / parts, rows * (part + 1) / parts, memory);
                                   });
}

template <class X, class Y>
tenon_status write_structure(tenon_ctx* ctx, const Structure<X>& x, const Structure<Y>& y,
                             int64_t rows, int64_t stored, int64_t columns, tenon_err* err) {
  tenon_tensor *indptr, *indices;
  const int64_t size = rows + 1;
  tenon_status status = host->output_alloc(ctx, 0, TENON_DTYPE_I64, 1, &size, &indptr, err);
  if (status != TENON_OK) return status;
  int64_t* begin = data_of<int64_t>(indptr);
  const int64_t work = 16 * (stored / std::max<int64_t>(rows, 1) + 1);
  begin[0] = 0;
  status = for_rows(ctx, kStructure, rows, columns, work, Columns::bytes(columns), err,
                    [&](int64_t first, int64_t last, void* memory) {
                      Columns found(memory, columns);
                      for (int64_t row = first; row < last; ++row)
                        begin[row + 1] = found.count(x, y, row);
                    });
  if (status != TENON_OK) return status;
  for (int64_t row = 0; row < rows; ++row) begin[row + 1] += begin[row];
  status = host->output_alloc(ctx, 1, TENON_DTYPE_I64, 1, &begin[rows], &indices, err);
  if (status != TENON_OK) return status;
  int64_t* out = data_of<int64_t>(indices);
  return for_rows(ctx, kStructure, rows, columns, work, Columns::bytes(columns), err,
                  [&](int64_t first, int64_t last, void* memory) {
                    Columns found(memory, columns);
                    for (int64_t row = first; row < last; ++row)
                      found.write(x, y, row, out + begin[row], begin[row + 1] - begin[row]);
                  });
}

tenon_status csr_product_structure(tenon_ctx* ctx, const tenon_tensor* indptr_x,
                                   const tenon_tensor* indices_x, const tenon_tensor* indptr_y,
                                   const tenon_tensor* indices_y, int64_t count, tenon_err* err) {
  const std::pair<const char*, const tenon_tensor*> vectors[] = {{"indptr_x", indptr_x},
                                                                 {"indices_x", indices_x},
                                                                 {"indptr_y", indptr_y},
                                                                 {"indices_y", indices_y}};
  for (const auto& [name, vector] : vectors) {
    if (vector->ndim != 1)
      return fail_format(err, TENON_INVALID_ARGUMENT, "[%s] expected a vector for %s, got %d axes",
                         kStructure, name, vector->ndim);
  }
  if (indptr_x->numel < 1 || indptr_y->numel < 1 || count < 0)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "[%s] expected an indptr of one number more than there are rows, and a count "
        "of at least 0",
        kStructure);
  return with_structure(
      ctx, kStructure, indptr_x, indices_x, indptr_y->numel - 1, err, [&](const auto& x) {
        return with_structure(ctx, kStructure, indptr_y, indices_y, count, err, [&](const auto& y) {
          return write_structure(ctx, x, y, indptr_x->numel - 1, indices_x->numel, count, err);
        });
      });
}
TENON_BOX_csr_product_structure(csr_product_structure_boxed, csr_product_structure);

template <class T, class P, class X, class Y>
tenon_status multiply(tenon_ctx* ctx, const Structure<P>& pattern, const Structure<X>& x,
                      const Structure<Y>& y, const tenon_tensor* values_x,
                      const tenon_tensor* values_y, int64_t rows, int64_t columns,
                      tenon_tensor* out, tenon_err* err) {
  const T *left = data_of<T>(values_x), *right = data_of<T>(values_y);
  T* to = data_of<T>(out);
  const int64_t work = 16 * (values_x->numel / std::max<int64_t>(rows, 1) + 1);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  return for_rows(ctx, kProduct, rows, columns, work, bytes, err,
                  [&](int64_t first, int64_t last, void* memory) {
                    T* sums = static_cast<T*>(memory);
                    std::fill_n(sums, columns, T{});
                    for (int64_t row = first; row < last; ++row) {
                      if (pattern.offsets[row] == pattern.offsets[row + 1]) continue;
                      for_products(x, y, row, [&](int64_t column, int64_t k, int64_t l) {
                        sums[column] += left[k] * right[l];
                      });
                      for (int64_t p = pattern.offsets[row]; p < pattern.offsets[row + 1]; ++p)
                        to[p] = sums[pattern.columns[p]];
                      for_products(x, y, row,
                                   [&](int64_t column, int64_t, int64_t) { sums[column] = T{}; });
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
  return with_structure(ctx, kProduct, indptr, indices, count, err, [&](const auto& pattern) {
    return with_structure(
        ctx, kProduct, indptr_x, indices_x, indptr_y->numel - 1, err, [&](const auto& x) {
          return with_structure(ctx, kProduct, indptr_y, indices_y, count, err, [&](const auto& y) {
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
    TENON_KERNEL_csr_product_structure(csr_product_structure, nullptr, kIntegers, 0, 0),
    TENON_KERNEL_csr_masked_product(csr_masked_product, nullptr, kFloats, 0, 0),
    TENON_KERNEL_csr_order(csr_order, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList product_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
