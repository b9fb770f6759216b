// SPDX-License-Identifier: Apache-2.0
// gather, scatter, scatter_add and scatter_extreme: one element per index. gather runs in parallel over the elements
// of the index tensor, and so do the scatters where these cannot meet in one element.
#include "host_number.hpp"
#include "index/indices.hpp"
#include "kernel.hpp"

#include <tenon/signatures/indexing.h>
#include <tenon/signatures/scatter.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Calls f(n, offset) for the elements n of `index` in [begin, end), in row-major order. `offset` is
// that of the element of the contiguous `x` with the same coordinates, except for offsets[n -
// begin] along `axis`.
template <class F>
void for_each_indexed(const tenon_tensor* x, const tenon_tensor* index, int64_t axis,
                      const int64_t* offsets, int64_t begin, int64_t end, F&& f) {
  if (begin == end) return;  // extents may be 0
  const int last = index->ndim - 1;
  if (last < 0) return f(begin, int64_t{0});
  int64_t at[TENON_MAX_NDIM] = {}, stride[TENON_MAX_NDIM] = {};
  int64_t offset = 0, rest = begin;
  for (int i = last; i >= 0; --i) {
    stride[i] = i == axis ? 0 : x->strides[i];
    at[i] = rest % index->shape[i];
    rest /= index->shape[i];
    offset += at[i] * stride[i];
  }
  const int64_t along = x->strides[axis], step = stride[last];
  for (int64_t n = begin; n < end;) {
    const int64_t row = std::min(end - n, index->shape[last] - at[last]);
    for (int64_t j = 0; j < row; ++j) f(n + j, offset + j * step + offsets[n + j - begin] * along);
    n += row;
    // On to the start of the next row.
    offset -= at[last] * step;
    at[last] = 0;
    for (int i = last - 1; i >= 0; --i) {
      offset += stride[i];
      if (++at[i] < index->shape[i]) break;
      offset -= stride[i] * index->shape[i];
      at[i] = 0;
    }
  }
}

int64_t length_of(const tenon_tensor* x, int64_t axis) { return x->ndim > 0 ? x->shape[axis] : 1; }

tenon_status gather(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* index, int64_t axis,
                    tenon_tensor* out, tenon_err* err) {
  axis = normalize_axis(axis, x->ndim);
  std::atomic<bool> outside = false;
  const int64_t length = length_of(x, axis);
  with_index_type(index, [&]<class P>(const P* offsets) {
    with_size(kDtypeSize[x->dtype], [&]<class T>(Type<T>) {
      parallel(index->numel, 4, [&](int64_t begin, int64_t end) {
        // The indices are checked block by block while they are in cache, since there are as many
        // as elements.
        int64_t buffer[kIndexBlock];
        for (int64_t at = begin; at < end; at += kIndexBlock) {
          const int64_t count = std::min(kIndexBlock, end - at);
          const int64_t* block = checked_indices(offsets + at, count, length, buffer);
          if (!block) {
            outside = true;
            return;
          }
          for_each_indexed(x, index, axis, block, at, at + count,
                           [to = data_of<T>(out), from = data_of<T>(x)](int64_t n, int64_t offset) {
                             to[n] = from[offset];
                           });
        }
      });
    });
  });
  return outside ? fail_indices("gather", index, length, err) : TENON_OK;
}
TENON_BOX_gather(gather_boxed, gather);

// The number given as the source, as an element of `dtype`.
void read_number(const tenon_tensor* source, int dtype, char* to) {
  if (is_low_precision(dtype)) return narrow_one(dtype, host_number<float>(source), to);
  with_type(dtype, [&]<class T>(Type<T>) {
    const T number = host_number<T>(source);
    std::memcpy(to, &number, sizeof(T));
  });
}

// out[index] = combine(out[index], source), where out holds x. Indices may repeat, so one thread does this in order
// for all that have the same place along the first axis, unless this is the indexed one.
template <class T, class Combine>
void scatter_elements(const tenon_tensor* index, const int64_t* offsets, const T* from,
                      int64_t step, int64_t axis, tenon_tensor* out, Combine combine) {
  const int64_t slabs = axis > 0 ? index->shape[0] : 1, slab = index->numel / slabs;
  parallel(slabs, slab * 2, [&, to = data_of<T>(out)](int64_t begin, int64_t end) {
    for_each_indexed(out, index, axis, offsets + begin * slab, begin * slab, end * slab,
                     [&](int64_t n, int64_t offset) { combine(to[offset], from[n * step]); });
  });
}

// Checks all indices before the first write: where the result is `x` itself, of any strides, nothing else is touched.
// Apart from `x` the result is dense, and so is `x` then.
tenon_status begin_scatter(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                           const tenon_tensor* index, int64_t axis, const int64_t** offsets,
                           tenon_tensor* out, tenon_err* err) {
  const tenon_status status = read_indices(ctx, op, index, length_of(x, axis), offsets, err);
  if (status == TENON_OK && out->numel > 0 && out->data != x->data)
    std::memcpy(out->data, x->data, static_cast<size_t>(x->numel) * kDtypeSize[x->dtype]);
  return status;
}

// With arithmetic of the elements.
template <class Combine>
tenon_status scatter_with(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                          const tenon_tensor* index, const tenon_tensor* source, int64_t axis,
                          tenon_tensor* out, tenon_err* err, Combine combine) {
  axis = normalize_axis(axis, x->ndim);
  const int64_t* offsets;
  const tenon_status status = begin_scatter(ctx, op, x, index, axis, &offsets, out, err);
  if (status != TENON_OK || index->numel == 0) return status;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    const bool is_number = source->dtype != x->dtype;
    const T number = is_number ? host_number<T>(source) : T{};
    const int64_t step = source->ndim == 0 && index->ndim != 0 ? 0 : 1;
    scatter_elements(index, offsets, is_number ? &number : data_of<T>(source), step, axis, out,
                     combine);
  });
  return TENON_OK;
}

tenon_status scatter(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                     const tenon_tensor* source, int64_t axis, tenon_tensor* out, tenon_err* err) {
  axis = normalize_axis(axis, x->ndim);
  const int64_t* offsets;
  const tenon_status status = begin_scatter(ctx, "scatter", x, index, axis, &offsets, out, err);
  if (status != TENON_OK || index->numel == 0) return status;
  const bool is_number = source->dtype != x->dtype;
  alignas(16) char number[16];
  if (is_number) read_number(source, x->dtype, number);
  with_size(kDtypeSize[x->dtype], [&]<class T>(Type<T>) {
    const T* from = is_number ? reinterpret_cast<const T*>(number) : data_of<T>(source);
    const int64_t step = source->ndim == 0 && index->ndim != 0 ? 0 : 1;
    scatter_elements(index, offsets, from, step, axis, out, [](T& to, const T& x) { to = x; });
  });
  return TENON_OK;
}
TENON_BOX_scatter(scatter_boxed, scatter);

tenon_status scatter_add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                         const tenon_tensor* source, int64_t axis, tenon_tensor* out,
                         tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(scatter_add, ctx, err, x, index, source, axis, out);
  return scatter_with(ctx, "scatter_add", x, index, source, axis, out, err,
                      []<class T>(T& to, const T& from) { to = static_cast<T>(to + from); });
}
TENON_BOX_scatter_add(scatter_add_boxed, scatter_add);

tenon_status scatter_extreme(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                             const tenon_tensor* source, int64_t axis, int32_t largest,
                             tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(scatter_extreme, ctx, err, x, index, source, axis, largest, out);
  return scatter_with(ctx, "scatter_reduce", x, index, source, axis, out, err,
                      [largest]<class T>(T& to, const T& from) {
                        if constexpr (std::is_arithmetic_v<T>) {
                          const bool is_nan = from != from, wins = largest ? from > to : from < to;
                          if (is_nan || wins) to = from;  // NaN stays, as it is not exceeded
                        }
                      });
}
TENON_BOX_scatter_extreme(scatter_extreme_boxed, scatter_extreme);

// For low precision dtypes arithmetic goes through float32, so that a sum is rounded once; the result is a copy.
constexpr uint32_t kScatter = TENON_KERNEL_HOST_SCALARS | TENON_KERNEL_IN_PLACE;
const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_gather(gather, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_scatter(scatter, nullptr, kAllDtypes, kScatter, 0),
    TENON_KERNEL_scatter_add(scatter_add, nullptr, (kReals | kComplexes) & ~kLowPrecision, kScatter,
                             0),
    TENON_KERNEL_scatter_add(scatter_add, nullptr, kLowPrecision, TENON_KERNEL_HOST_SCALARS, 0),
    TENON_KERNEL_scatter_extreme(scatter_extreme, nullptr, kReals & ~kLowPrecision, kScatter, 0),
    TENON_KERNEL_scatter_extreme(scatter_extreme, nullptr, kLowPrecision, TENON_KERNEL_HOST_SCALARS,
                                 0)};

}  // namespace

KernelList gather_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
