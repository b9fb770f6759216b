// SPDX-License-Identifier: Apache-2.0
// index_select, index_add, index, index_put and embedding: contiguous blocks of the inner axes are
// copied or added, one block per index.
#include "host_number.hpp"
#include "index/indices.hpp"
#include "kernel.hpp"

#include <tenon/signatures/indexing.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

#define TRY(expression) \
  if (tenon_status status_ = (expression); status_ != TENON_OK) return status_

void copy_all(const tenon_tensor* from, tenon_tensor* to) {
  if (to->numel > 0 && to->data != from->data)
    std::memcpy(to->data, from->data, static_cast<size_t>(to->numel) * kDtypeSize[to->dtype]);
}

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

tenon_status index_select(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                          int64_t axis, tenon_tensor* out, tenon_err* err) {
  const AxisView view(x, axis);
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

tenon_status index_add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                       const tenon_tensor* source, int64_t axis, tenon_tensor* out,
                       tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(index_add, ctx, err, x, index, source, axis, out);
  const AxisView view(x, axis);
  const int64_t* offsets;
  TRY(read_indices(ctx, "index_add", index, view.length, &offsets, err));
  copy_all(x, out);
  const int64_t count = index->numel;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    T* to = data_of<T>(out);
    const T* from = data_of<T>(source);
    // Indices may repeat, so one thread adds all slices of an outer index.
    parallel(view.outer, count * view.inner, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        for (int64_t j = 0; j < count; ++j) {
          T* slice = to + (o * view.length + offsets[j]) * view.inner;
          const T* added = from + (o * count + j) * view.inner;
          for (int64_t i = 0; i < view.inner; ++i) slice[i] = static_cast<T>(slice[i] + added[i]);
        }
    });
  });
  return TENON_OK;
}
TENON_BOX_index_add(index_add_boxed, index_add);

// The broadcast index tensors, combined into one offset, in blocks, into the indexed axes of x.
struct IndexedBlocks {
  int64_t outer = 1, length = 1,
          inner = 1;  // x as [outer, length, inner]; length: the indexed axes
  int64_t count = 1;  // elements of the broadcast index tensors
  int64_t ndim = 0;   // axes of their shape
  const int64_t* blocks = nullptr;
};

tenon_status resolve_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                             const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                             IndexedBlocks* out, tenon_err* err) {
  axis = normalize_axis(axis, x->ndim);
  const int64_t last = axis + static_cast<int64_t>(count);
  for (int64_t i = 0; i < x->ndim; ++i)
    (i < axis ? out->outer : i < last ? out->length : out->inner) *= x->shape[i];
  int64_t shape[TENON_MAX_NDIM];
  for (uint64_t k = 0; k < count; ++k) out->ndim = std::max<int64_t>(out->ndim, indices[k]->ndim);
  std::fill_n(shape, out->ndim, int64_t{1});
  for (uint64_t k = 0; k < count; ++k)
    for (int32_t i = 0; i < indices[k]->ndim; ++i) {
      int64_t& extent = shape[out->ndim - indices[k]->ndim + i];
      if (indices[k]->shape[i] != 1) extent = indices[k]->shape[i];
    }
  for (int64_t i = 0; i < out->ndim; ++i) out->count *= shape[i];
  if (count == 1) return read_indices(ctx, op, indices[0], out->length, &out->blocks, err);

  void* memory;
  TRY(host->scratch(ctx, static_cast<uint64_t>(out->count) * sizeof(int64_t), &memory, err));
  auto* blocks = static_cast<int64_t*>(memory);
  out->blocks = blocks;
  std::fill_n(blocks, out->count, int64_t{0});
  for (uint64_t k = 0; k < count; ++k) {
    const int64_t extent = x->shape[axis + static_cast<int64_t>(k)];
    const int64_t* offsets;
    TRY(read_indices(ctx, op, indices[k], extent, &offsets, err));
    const tenon_tensor* index = indices[k];
    if (index->numel == out->count) {
      for (int64_t n = 0; n < out->count; ++n) blocks[n] = blocks[n] * extent + offsets[n];
      continue;
    }
    // Iterates over the broadcast shape with the strides of this tensor, 0 where it is broadcast.
    int64_t at[TENON_MAX_NDIM] = {}, stride[TENON_MAX_NDIM] = {};
    for (int32_t i = 0; i < index->ndim; ++i)
      stride[out->ndim - index->ndim + i] = index->shape[i] == 1 ? 0 : index->strides[i];
    int64_t offset = 0;
    for (int64_t n = 0; n < out->count; ++n) {
      blocks[n] = blocks[n] * extent + offsets[offset];
      for (int64_t i = out->ndim - 1; i >= 0; --i) {
        offset += stride[i];
        if (++at[i] < shape[i]) break;
        offset -= stride[i] * shape[i];
        at[i] = 0;
      }
    }
  }
  return TENON_OK;
}

tenon_status index(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* const* indices,
                   uint64_t count, int64_t axis, tenon_tensor* out, tenon_err* err) {
  IndexedBlocks indexed;
  TRY(resolve_indices(ctx, "index", x, indices, count, axis, &indexed, err));
  if (out->numel > 0)
    pick_blocks(data_of<char>(x), data_of<char>(out), indexed.outer, indexed.length, indexed.count,
                indexed.inner * kDtypeSize[x->dtype], indexed.blocks);
  return TENON_OK;
}
TENON_BOX_index(index_boxed, index);

// Iterates over [outer..., index..., inner...] and gives the offsets into `value`, which
// broadcasts to this shape.
class BroadcastValue {
 public:
  BroadcastValue(const tenon_tensor* x, const tenon_tensor* value, const IndexedBlocks& indexed,
                 const tenon_tensor* const* indices, uint64_t count, int64_t axis) {
    axis = normalize_axis(axis, x->ndim);
    for (int64_t i = 0; i < axis; ++i) shape_[ndim_++] = x->shape[i];
    const int64_t joint = ndim_;
    for (int64_t i = 0; i < indexed.ndim; ++i) shape_[ndim_++] = 1;
    for (uint64_t k = 0; k < count; ++k)
      for (int32_t i = 0; i < indices[k]->ndim; ++i)
        if (indices[k]->shape[i] != 1)
          shape_[joint + indexed.ndim - indices[k]->ndim + i] = indices[k]->shape[i];
    for (int64_t i = axis + static_cast<int64_t>(count); i < x->ndim; ++i)
      shape_[ndim_++] = x->shape[i];
    for (int32_t i = 0; i < value->ndim; ++i)
      stride_[ndim_ - value->ndim + i] = value->shape[i] == 1 ? 0 : value->strides[i];
  }
  int64_t offset() const { return offset_; }
  void next() {
    for (int64_t i = ndim_ - 1; i >= 0; --i) {
      offset_ += stride_[i];
      if (++at_[i] < shape_[i]) return;
      offset_ -= stride_[i] * shape_[i];
      at_[i] = 0;
    }
  }

 private:
  int64_t ndim_ = 0, offset_ = 0;
  int64_t shape_[2 * TENON_MAX_NDIM] = {}, stride_[2 * TENON_MAX_NDIM] = {},
                     at_[2 * TENON_MAX_NDIM] = {};
};

template <class T>
void put(const tenon_tensor* x, const IndexedBlocks& indexed, BroadcastValue value, const T* from,
         bool accumulate, T* to) {
  // In order and on one thread: indices may repeat, and the last value written wins.
  for (int64_t o = 0; o < indexed.outer; ++o)
    for (int64_t n = 0; n < indexed.count; ++n) {
      T* block = to + (o * indexed.length + indexed.blocks[n]) * indexed.inner;
      for (int64_t i = 0; i < indexed.inner; ++i, value.next()) {
        if (accumulate)
          block[i] = static_cast<T>(block[i] + from[value.offset()]);
        else
          block[i] = from[value.offset()];
      }
    }
  (void)x;
}

tenon_status index_put(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* const* indices,
                       uint64_t count, const tenon_tensor* value, int64_t axis, int32_t accumulate,
                       tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(index_put, ctx, err, x, indices, count, value, axis, accumulate, out);
  IndexedBlocks indexed;
  TRY(resolve_indices(ctx, "index_put", x, indices, count, axis, &indexed, err));
  copy_all(x, out);
  if (indexed.outer * indexed.count * indexed.inner == 0) return TENON_OK;
  const BroadcastValue broadcast(x, value, indexed, indices, count, axis);
  with_type(moved_as(x->dtype), [&]<class T>(Type<T>) {
    if (value->dtype != x->dtype) {
      const T number = host_number<T>(value);
      put(x, indexed, broadcast, &number, accumulate, data_of<T>(out));
    } else {
      put(x, indexed, broadcast, data_of<T>(value), accumulate, data_of<T>(out));
    }
  });
  return TENON_OK;
}
TENON_BOX_index_put(index_put_boxed, index_put);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_index_select(index_select, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_embedding(embedding, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_index_add(index_add, nullptr, kReals | kComplexes, 0, 0),
    TENON_KERNEL_index(index, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_index_put(index_put, nullptr, kAllDtypes, TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

KernelList indexing_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
