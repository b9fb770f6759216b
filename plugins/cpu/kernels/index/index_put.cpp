// SPDX-License-Identifier: Apache-2.0
// index_put and index_add: blocks of the inner axes are written or added, one block per index. Where the result is `x`
// itself, of any strides, nothing else is touched: all indices are checked before the first write.
#include "host_number.hpp"
#include "index/indexed_blocks.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/indexing.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

#define TRY(expression) \
  if (tenon_status status_ = (expression); status_ != TENON_OK) return status_

// What the dispatcher gives apart from `x` is contiguous, and so is `x` then.
void copy_unless_in_place(const tenon_tensor* x, tenon_tensor* out) {
  if (out->numel > 0 && out->data != x->data)
    std::memcpy(out->data, x->data, static_cast<size_t>(x->numel) * kDtypeSize[x->dtype]);
}

// The values of one call: a contiguous tensor that broadcasts to [outer axes, indices, inner axes].
struct Values {
  Axes outer, count;
  // Element i of a block: i if the values have all inner axes, the same for all if they have none, else in a table.
  enum Inner { kDense, kSingle, kTable } inner = kDense;
  const int64_t* table = nullptr;
};

tenon_status read_values(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* value,
                         const IndexedBlocks& indexed, int axis, int last, Values* out,
                         tenon_err* err) {
  int32_t before = axis + indexed.ndim + (x->ndim - last) - value->ndim;
  const auto stride_of = [&](int at) -> int64_t {
    return at < before || value->shape[at - before] == 1 ? 0 : value->strides[at - before];
  };
  for (int i = 0; i < axis; ++i) out->outer.add(x->shape[i], stride_of(i));
  for (int i = 0; i < indexed.ndim; ++i) out->count.add(indexed.shape[i], stride_of(axis + i));
  Axes inner;
  bool is_single = true;
  for (int i = last; i < x->ndim; ++i) {
    const int64_t stride = stride_of(axis + indexed.ndim + i - last);
    inner.add(x->shape[i], stride);
    is_single &= stride == 0 || x->shape[i] == 1;
  }
  if (is_single) {
    out->inner = Values::kSingle;
  } else if (inner.count() > 1 || inner.stride() != 1) {
    void* memory;
    TRY(host->scratch(ctx, static_cast<uint64_t>(indexed.inner) * sizeof(int64_t), &memory, err));
    auto* table = static_cast<int64_t*>(memory);
    for (int64_t i = 0; i < indexed.inner; ++i) table[i] = inner.offset(i);
    out->inner = Values::kTable;
    out->table = table;
  }
  return TENON_OK;
}

// Where the blocks of the result lie.
struct BlockLayout {
  Axes outer, inner;
  int64_t run = 1, runs = 1;  // a block is `runs` runs of `run` neighbouring elements
  int64_t step = 1;           // of one block to the next along the indexed axes
  BlockLayout(const tenon_tensor* out, int axis, int last, const IndexedBlocks& indexed)
      : step(last - axis == 1 ? out->strides[axis] : 1) {
    for (int i = 0; i < axis; ++i) outer.add(out->shape[i], out->strides[i]);
    for (int i = last; i < out->ndim; ++i) inner.add(out->shape[i], out->strides[i]);
    run = inner.take_run();
    runs = indexed.inner / run;
  }
};

struct Write {
  template <class T>
  static void one(T& to, T from) {
    to = from;
  }
};
struct Add {
  template <class T>
  static void one(T& to, T from) {
    to = static_cast<T>(to + from);
  }
};

template <class Combine, class T>
void put_run(T* to, const T* from, const Values& values, int64_t at, int64_t run) {
  switch (values.inner) {
    case Values::kDense:
      if constexpr (std::is_same_v<Combine, Write>)
        std::memcpy(to, from + at, static_cast<size_t>(run) * sizeof(T));
      else
        for (int64_t i = 0; i < run; ++i) Combine::one(to[i], from[at + i]);
      return;
    case Values::kSingle:
      for (int64_t i = 0; i < run; ++i) Combine::one(to[i], *from);
      return;
    case Values::kTable:
      for (int64_t i = 0; i < run; ++i) Combine::one(to[i], from[values.table[at + i]]);
      return;
  }
}

template <class Combine, class T>
void put_blocks(const IndexedBlocks& indexed, const BlockLayout& layout, const Values& values,
                const T* from, T* to) {
  const auto put_block = [&](T* block, const T* value) {
    for (int64_t r = 0; r < layout.runs; ++r)
      put_run<Combine>(block + layout.inner.offset(r), value, values, r * layout.run, layout.run);
  };
  // All blocks of one index of the outer axes.
  const bool is_elements = indexed.inner == 1 && values.count.count() <= 1;
  const auto put_all = [&](T* outer, const T* value) {
    const int64_t step = layout.step, value_step = values.count.stride();
    for (int64_t n = 0; n < indexed.count; ++n)
      if (is_elements)
        Combine::one(outer[indexed.blocks[n] * step], value[n * value_step]);
      else
        put_block(outer + indexed.blocks[n] * step, value + values.count.offset(n));
  };
  if (indexed.outer > 1) {
    parallel(indexed.outer, indexed.count * indexed.inner, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        put_all(to + layout.outer.offset(o), from + values.outer.offset(o));
    });
    return;
  }
  // A thread that passes over the blocks of others pays where these are long.
  constexpr int64_t kPassedWork = 16;
  const int64_t parts =
      indexed.inner >= kPassedWork ? workers_for(indexed.count, indexed.inner) : 1;
  if (parts == 1) return put_all(to, from);
  parallel(parts, indexed.count * indexed.inner / parts, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < indexed.count; ++n) {
      const int64_t block = indexed.blocks[n], part = part_of(block, parts);
      if (part >= begin && part < end)
        put_block(to + block * layout.step, from + values.count.offset(n));
    }
  });
}

tenon_status write_blocks(tenon_ctx* ctx, const char* op, const tenon_tensor* x,
                          const tenon_tensor* const* indices, uint64_t count,
                          const tenon_tensor* value, int64_t axis, bool accumulate,
                          tenon_tensor* out, tenon_err* err) {
  const int first = static_cast<int>(normalize_axis(axis, x->ndim));
  const int last = first + static_cast<int>(count);
  IndexedBlocks indexed;
  TRY(resolve_indices(ctx, op, out, indices, count, axis, out->strides + first, &indexed, err));
  copy_unless_in_place(x, out);
  if (indexed.outer * indexed.count * indexed.inner == 0) return TENON_OK;
  Values values;
  TRY(read_values(ctx, x, value, indexed, first, last, &values, err));
  const BlockLayout layout(out, first, last, indexed);
  const bool is_number = value->dtype != x->dtype;
  if (accumulate) {
    with_type(x->dtype, [&]<class T>(Type<T>) {
      const T number = is_number ? host_number<T>(value) : T{};
      put_blocks<Add>(indexed, layout, values, is_number ? &number : data_of<T>(value),
                      data_of<T>(out));
    });
    return TENON_OK;
  }
  alignas(16) char number[16];
  if (is_number && is_low_precision(x->dtype))
    narrow_one(x->dtype, host_number<float>(value), number);
  else if (is_number)
    with_type(x->dtype, [&]<class T>(Type<T>) {
      const T converted = host_number<T>(value);
      std::memcpy(number, &converted, sizeof(T));
    });
  with_size(kDtypeSize[x->dtype], [&]<class T>(Type<T>) {
    const T* from = is_number ? reinterpret_cast<const T*>(number) : data_of<T>(value);
    put_blocks<Write>(indexed, layout, values, from, data_of<T>(out));
  });
  return TENON_OK;
}
tenon_status index_put(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* const* indices,
                       uint64_t count, const tenon_tensor* value, int64_t axis, int32_t accumulate,
                       tenon_tensor* out, tenon_err* err) {
  if (accumulate && is_low_precision(x->dtype))
    return run_as_float32(index_put, ctx, err, x, indices, count, value, axis, accumulate, out);
  return write_blocks(ctx, "index_put", x, indices, count, value, axis, accumulate != 0, out, err);
}
TENON_BOX_index_put(index_put_boxed, index_put);

tenon_status index_add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                       const tenon_tensor* source, int64_t axis, tenon_tensor* out,
                       tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(index_add, ctx, err, x, index, source, axis, out);
  return write_blocks(ctx, "index_add", x, &index, 1, source, axis, true, out, err);
}
TENON_BOX_index_add(index_add_boxed, index_add);

// Kernels of sums go through float32 for low precision dtypes, so that a sum is rounded once; these are of dense
// tensors, and the result is a copy.
int32_t is_written(const tenon_value* args, uint32_t) { return args[4].v.i == 0; }

constexpr uint32_t kPut = TENON_KERNEL_HOST_SCALARS | TENON_KERNEL_IN_PLACE;
const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_index_add(index_add, nullptr, (kReals | kComplexes) & ~kLowPrecision,
                           TENON_KERNEL_IN_PLACE, 0),
    TENON_KERNEL_index_add(index_add, nullptr, kLowPrecision, 0, 0),
    TENON_KERNEL_index_put(index_put, nullptr, kAllDtypes & ~kLowPrecision, kPut, 0),
    with_can_run(TENON_KERNEL_index_put(index_put, nullptr, kLowPrecision, kPut, 1), is_written),
    TENON_KERNEL_index_put(index_put, nullptr, kLowPrecision, TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

KernelList index_put_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
