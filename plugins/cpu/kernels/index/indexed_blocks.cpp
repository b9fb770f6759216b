// SPDX-License-Identifier: Apache-2.0
#include "index/indexed_blocks.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// blocks[n] += scale * (the index of element n), of an index tensor that broadcasts to the shape of `to`.
void add_broadcast(const tenon_tensor* index, const int64_t* offsets, int64_t scale,
                   const IndexedBlocks& to, int64_t* blocks) {
  if (index->numel == to.count) {
    for (int64_t n = 0; n < to.count; ++n) blocks[n] += offsets[n] * scale;
    return;
  }
  // Iterates over the broadcast shape with the strides of this tensor, 0 where it is broadcast.
  int64_t at[TENON_MAX_NDIM] = {}, stride[TENON_MAX_NDIM] = {};
  for (int32_t i = 0; i < index->ndim; ++i)
    stride[to.ndim - index->ndim + i] = index->shape[i] == 1 ? 0 : index->strides[i];
  int64_t offset = 0;
  for (int64_t n = 0; n < to.count; ++n) {
    blocks[n] += offsets[offset] * scale;
    for (int32_t i = to.ndim - 1; i >= 0; --i) {
      offset += stride[i];
      if (++at[i] < to.shape[i]) break;
      offset -= stride[i] * to.shape[i];
      at[i] = 0;
    }
  }
}

}  // namespace

tenon_status resolve_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                             const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                             const int64_t* scale, IndexedBlocks* out, tenon_err* err) {
  axis = normalize_axis(axis, x->ndim);
  const int64_t last = axis + static_cast<int64_t>(count);
  for (int64_t i = 0; i < axis; ++i) out->outer *= x->shape[i];
  for (int64_t i = last; i < x->ndim; ++i) out->inner *= x->shape[i];
  for (uint64_t k = 0; k < count; ++k) out->ndim = std::max(out->ndim, indices[k]->ndim);
  std::fill_n(out->shape, out->ndim, int64_t{1});
  for (uint64_t k = 0; k < count; ++k)
    for (int32_t i = 0; i < indices[k]->ndim; ++i)
      if (indices[k]->shape[i] != 1)
        out->shape[out->ndim - indices[k]->ndim + i] = indices[k]->shape[i];
  for (int32_t i = 0; i < out->ndim; ++i) out->count *= out->shape[i];
  if (count == 1) return read_indices(ctx, op, indices[0], x->shape[axis], &out->blocks, err);

  void* memory;
  tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(out->count) * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  auto* blocks = static_cast<int64_t*>(memory);
  out->blocks = blocks;
  std::fill_n(blocks, out->count, int64_t{0});
  for (uint64_t k = 0; k < count; ++k) {
    const int64_t* offsets;
    const int64_t extent = x->shape[axis + static_cast<int64_t>(k)];
    status = read_indices(ctx, op, indices[k], extent, &offsets, err);
    if (status != TENON_OK) return status;
    add_broadcast(indices[k], offsets, scale[k], *out, blocks);
  }
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
