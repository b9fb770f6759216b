// SPDX-License-Identifier: Apache-2.0
// The structure of a transpose: a counting sort of the elements by column, in one pass behind the one that counts.
// A processor that has seen a count of a column wait for the one before it lets later ones wait for all stores whose
// addresses are not known yet. So slots are taken for some elements, with stores to the counts alone, before anything is
// written there. What is written in any order lies together, because each line that a store brings into the caches costs
// more than the pass that takes it apart.
#include "kernel.hpp"
#include "sparse/structure.hpp"

#include <tenon/signatures/sparse.h>

#include <algorithm>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr const char* kOp = "csr_transpose";

// An element of the transpose: its row, and where it is stored in the matrix.
template <class O>
struct Element {
  O row, at;
};

// `begins` becomes the offsets of the transpose; `next` is memory for a number of each column, as narrow as numbers of
// elements may be, because it is read and written in any order. `elements` is memory for all of them.
template <class I, class O>
void transpose(const int64_t* offsets, int64_t rows, const I* columns, int64_t count,
               int64_t* begins, O* next, Element<O>* elements, O* out, O* order) {
  const int64_t stored = rows > 0 ? offsets[rows] : 0;
  std::fill_n(next, count, O{0});
  for (int64_t k = 0; k < stored; ++k) ++next[columns[k]];
  O before = 0;
  for (int64_t column = 0; column < count; ++column) {
    begins[column] = before;
    before += std::exchange(next[column], before);
  }
  begins[count] = before;
  constexpr int64_t kTogether = 1024;
  O slots[kTogether];
  int64_t row = 0;
  for (int64_t begin = 0; begin < stored; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, stored);
    for (int64_t k = begin; k < end; ++k) slots[k - begin] = next[columns[k]]++;
    for (int64_t k = begin; k < end;) {
      while (offsets[row + 1] <= k) ++row;
      for (const int64_t last = std::min(offsets[row + 1], end); k < last; ++k)
        elements[slots[k - begin]] = {static_cast<O>(row), static_cast<O>(k)};
    }
  }
  for (int64_t k = 0; k < stored; ++k) out[k] = elements[k].row, order[k] = elements[k].at;
}

tenon_status csr_transpose(tenon_ctx* ctx, const tenon_tensor* indptr, const tenon_tensor* indices,
                           int64_t count, tenon_tensor* out_indptr, tenon_tensor* out_indices,
                           tenon_tensor* order, tenon_err* err) {
  const int64_t* offsets;
  tenon_status status = read_indptr(ctx, kOp, indptr, indices->numel, &offsets, err);
  if (status != TENON_OK) return status;
  const bool narrow = order->dtype == TENON_DTYPE_I32;
  const uint64_t element = narrow ? sizeof(Element<int32_t>) : sizeof(Element<int64_t>);
  void *numbers, *elements;
  status = host->scratch(ctx, static_cast<uint64_t>(count + 1) * sizeof(int64_t), &numbers, err);
  if (status != TENON_OK) return status;
  status = host->scratch(ctx, static_cast<uint64_t>(indices->numel) * element, &elements, err);
  if (status != TENON_OK) return status;
  return with_columns(ctx, kOp, indices, count, err, [&]<class I>(const I* columns) {
    const auto run = [&]<class O>(Type<O>) {
      transpose(offsets, indptr->numel - 1, columns, count, data_of<int64_t>(out_indptr),
                static_cast<O*>(numbers), static_cast<Element<O>*>(elements),
                data_of<O>(out_indices), data_of<O>(order));
    };
    narrow ? run(Type<int32_t>{}) : run(Type<int64_t>{});
  });
}
TENON_BOX_csr_transpose(csr_transpose_boxed, csr_transpose);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_csr_transpose(csr_transpose, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList transpose_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
