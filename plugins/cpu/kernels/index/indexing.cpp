// SPDX-License-Identifier: Apache-2.0
// index_select, index and embedding: contiguous blocks of the inner axes are copied, one block per index.
#include "index/indexed_blocks.hpp"
#include "kernel.hpp"

#include <tenon/signatures/indexing.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

#define TRY(expression) \
  if (tenon_status status_ = (expression); status_ != TENON_OK) return status_

// to[o, j] = from[o, offsets[j]] for blocks of `block` bytes, each one element or more.
void pick_blocks(const char* from, char* to, int64_t outer, int64_t length, int64_t count,
                 int64_t block, const int64_t* offsets) {
  // Calls pick(i, slice, run, n) for runs of blocks [i, i + n) of `to` that share an outer index;
  // `run` points to their offsets.
  const auto for_runs = [=](int64_t begin, int64_t end, auto pick) {
    int64_t o = begin / count, j = begin % count;
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min(end - i, count - j);
      pick(i, o * length, offsets + j, n);
      i += n;
      ++o;
      j = 0;
    }
  };
  if (block > 8 || (block & (block - 1)) != 0) {
    parallel(outer * count, block / 8 + 1, [=](int64_t begin, int64_t end) {
      for_runs(begin, end, [=](int64_t i, int64_t slice, const int64_t* run, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
          std::memcpy(to + (i + k) * block, from + (slice + run[k]) * block,
                      static_cast<size_t>(block));
        }
      });
    });
    return;
  }
  with_size(static_cast<int>(block), [&]<class T>(Type<T>) {
    parallel(outer * count, 2, [=](int64_t begin, int64_t end) {
      for_runs(begin, end, [=](int64_t i, int64_t slice, const int64_t* run, int64_t n) {
        const T* source = reinterpret_cast<const T*>(from) + slice;
        T* target = reinterpret_cast<T*>(to) + i;
        for (int64_t k = 0; k < n; ++k) target[k] = source[run[k]];
      });
    });
  });
}

// to[j] = from[index[j]] of `length` single elements. Indices of int32 are checked and widened block by block, in cache,
// where reading all of them before would take memory for twice as many bytes as there are elements. False: one is outside.
bool pick_elements(const tenon_tensor* x, const tenon_tensor* index, int64_t length,
                   tenon_tensor* out) {
  std::atomic<bool> outside = false;
  with_size(kDtypeSize[x->dtype], [&]<class T>(Type<T>) {
    parallel(index->numel, 3,
             [&, to = data_of<T>(out), from = data_of<T>(x)](int64_t begin, int64_t end) {
               int64_t buffer[kIndexBlock];
               for (int64_t at = begin; at < end; at += kIndexBlock) {
                 const int64_t count = std::min(kIndexBlock, end - at);
                 const int64_t* block =
                     checked_indices(data_of<int32_t>(index) + at, count, length, buffer);
                 if (!block) {
                   outside = true;
                   return;
                 }
                 for (int64_t k = 0; k < count; ++k) to[at + k] = from[block[k]];
               }
             });
  });
  return !outside;
}

tenon_status index_select(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                          int64_t axis, tenon_tensor* out, tenon_err* err) {
  const AxisView view(x, axis);
  if (index->dtype == TENON_DTYPE_I32 && view.outer == 1 && view.inner == 1)
    return pick_elements(x, index, view.length, out)
               ? TENON_OK
               : fail_indices("index_select", index, view.length, err);
  const int64_t* offsets;
  TRY(read_indices(ctx, "index_select", index, view.length, &offsets, err));
  if (out->numel > 0)
    pick_blocks(data_of<char>(x), data_of<char>(out), view.outer, view.length, index->numel,
                view.inner * kDtypeSize[x->dtype], offsets);
  return TENON_OK;
}
TENON_BOX_index_select(index_select_boxed, index_select);

tenon_status embedding(tenon_ctx* ctx, const tenon_tensor* weight, const tenon_tensor* indices,
                       const tenon_value*, tenon_tensor* out, tenon_err* err) {
  const int64_t* offsets;
  TRY(read_indices(ctx, "embedding", indices, weight->shape[0], &offsets, err));
  if (out->numel > 0)
    pick_blocks(data_of<char>(weight), data_of<char>(out), 1, weight->shape[0], indices->numel,
                AxisView(weight, 0).inner * kDtypeSize[weight->dtype], offsets);
  return TENON_OK;
}
TENON_BOX_embedding(embedding_boxed, embedding);

tenon_status index(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* const* indices,
                   uint64_t count, int64_t axis, tenon_tensor* out, tenon_err* err) {
  const int64_t first = normalize_axis(axis, x->ndim);
  int64_t scale[TENON_MAX_NDIM], length = 1;  // as numbers of blocks
  for (uint64_t k = count; k-- > 0; length *= x->shape[first + static_cast<int64_t>(k)])
    scale[k] = length;
  IndexedBlocks indexed;
  TRY(resolve_indices(ctx, "index", x, indices, count, axis, scale, &indexed, err));
  if (out->numel > 0)
    pick_blocks(data_of<char>(x), data_of<char>(out), indexed.outer, length, indexed.count,
                indexed.inner * kDtypeSize[x->dtype], indexed.blocks);
  return TENON_OK;
}
TENON_BOX_index(index_boxed, index);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_index_select(index_select, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_embedding(embedding, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_index(index, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList indexing_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
