// SPDX-License-Identifier: Apache-2.0
// embedding_bag: the rows of a bag are added up as they are read, and those that come later are requested meanwhile, as
// most lie in no cache. Threads divide the bags.
#include "index/indices.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/indexing.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

struct Bags {
  const int64_t *indices, *offsets;
  int64_t count, features;
  int64_t padding = -1;  // a row that does not count
  bool is_mean, is_max;
};

// Offsets ascend from 0 to at most `length`.
tenon_status check_offsets(const tenon_tensor* offsets, int64_t length, tenon_err* err) {
  tenon_status status = TENON_OK;
  with_index_type(offsets, [&]<class P>(const P* from) {
    int64_t least = 0, most = 0;  // the first is 0
    for (int64_t at = 0; at < offsets->numel && status == TENON_OK; ++at, most = length) {
      const int64_t offset = signed_index(from[at]);
      if (offset < least || offset > most)
        status = fail_format(err, TENON_INVALID_ARGUMENT,
                             "[embedding_bag] expected ascending offsets from 0 to at most the "
                             "%lld indices, got %lld at position %lld",
                             static_cast<long long>(length), static_cast<long long>(offset),
                             static_cast<long long>(at));
      least = offset;
    }
  });
  return status;
}

// Rows as they are stored, of elements that are added up as they are.
template <class T>
struct PlainRows {
  using Sum = T;
  const T* table;
  int64_t features;
  const T* row(int64_t i, Sum*) const { return table + i * features; }
  const char* address(int64_t i) const {
    return reinterpret_cast<const char*>(table + i * features);
  }
  int64_t bytes() const { return features * static_cast<int64_t>(sizeof(T)); }
};

// Rows of a low precision dtype, widened into a buffer.
struct WidenedRows {
  using Sum = float;
  const char* table;
  int64_t features;
  int dtype;
  const float* row(int64_t i, float* buffer) const {
    widen(dtype, address(i), kDtypeSize[dtype], buffer, features);
    return buffer;
  }
  const char* address(int64_t i) const { return table + i * bytes(); }
  int64_t bytes() const { return features * kDtypeSize[dtype]; }
};

template <class Rows>
void prefetch_row(const Rows& rows, int64_t i) {
  constexpr int64_t kLine = 64, kMaxLines = 8;
  const int64_t bytes = std::min(rows.bytes(), kMaxLines * kLine);
  for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(rows.address(i) + at);
}

// The larger one; NaN exceeds everything.
template <class T>
T larger(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}

// One bag, added up in `sum`. `scale`: of each index, or NULL.
template <class Rows, class T = typename Rows::Sum>
void reduce_bag(const Bags& bags, const Rows& rows, const T* scale, int64_t bag, T* buffer,
                T* sum) {
  constexpr int64_t kAhead = 8;
  const int64_t first = bags.offsets[bag], last = bags.offsets[bag + 1];
  const int64_t end = bags.offsets[bags.count], features = bags.features;
  int64_t counted = 0;
  for (int64_t k = first; k < last; ++k) {
    if (k + kAhead < end) prefetch_row(rows, bags.indices[k + kAhead]);
    if (bags.indices[k] == bags.padding) continue;
    const T* row = rows.row(bags.indices[k], buffer);
    const T by = scale ? scale[k] : T{1};
    if (counted++ == 0) {
      for (int64_t j = 0; j < features; ++j) sum[j] = scale ? row[j] * by : row[j];
    } else if (bags.is_max) {
      for (int64_t j = 0; j < features; ++j) sum[j] = larger(row[j], sum[j]);
    } else if (scale) {
      for (int64_t j = 0; j < features; ++j) sum[j] += row[j] * by;
    } else {
      for (int64_t j = 0; j < features; ++j) sum[j] += row[j];
    }
  }
  if (counted == 0) std::fill_n(sum, features, T{});
  if (bags.is_mean && counted > 1) {
    const T rows_of_bag = static_cast<T>(counted);
    for (int64_t j = 0; j < features; ++j) sum[j] /= rows_of_bag;
  }
}

int64_t work_of(const Bags& bags) {
  const int64_t length = bags.count > 0 ? bags.offsets[bags.count] / bags.count : 0;
  return bags.features * (length + 1);
}

template <class T>
void reduce_plain(const Bags& bags, const tenon_tensor* weight, const tenon_tensor* scale,
                  tenon_tensor* out) {
  const PlainRows<T> rows{data_of<T>(weight), bags.features};
  const T* scales = scale ? data_of<T>(scale) : nullptr;
  parallel(bags.count, work_of(bags), [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag)
      reduce_bag(bags, rows, scales, bag, static_cast<T*>(nullptr),
                 data_of<T>(out) + bag * bags.features);
  });
}

// In float32, rounded once.
tenon_status reduce_low_precision(tenon_ctx* ctx, const Bags& bags, const tenon_tensor* weight,
                                  const tenon_tensor* scale, int64_t length, tenon_tensor* out,
                                  tenon_err* err) {
  const WidenedRows rows{data_of<char>(weight), bags.features, weight->dtype};
  const int size = kDtypeSize[weight->dtype];
  float* scales = nullptr;
  if (scale) {
    void* memory;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(length) * sizeof(float), &memory, err);
    if (status != TENON_OK) return status;
    scales = static_cast<float*>(memory);
    widen(scale->dtype, data_of<char>(scale), size, scales, length);
  }
  const int64_t bytes = 2 * bags.features * static_cast<int64_t>(sizeof(float));
  return parallel_for_with_scratch(
      ctx, bags.count, work_of(bags), bytes, err, [&](int64_t bag, void* memory) {
        float *sum = static_cast<float*>(memory), *buffer = sum + bags.features;
        reduce_bag(bags, rows, scales, bag, buffer, sum);
        narrow(out->dtype, sum, data_of<char>(out) + bag * bags.features * size, size,
               bags.features);
      });
}

tenon_status embedding_bag(tenon_ctx* ctx, const tenon_tensor* weight, const tenon_tensor* indices,
                           const tenon_tensor* offsets, const tenon_tensor* scale,
                           const char* reduce, uint64_t reduce_length,
                           const tenon_value* padding_index, tenon_tensor* out, tenon_err* err) {
  const std::string_view how(reduce, reduce_length);
  Bags bags{.count = out->shape[0],
            .features = out->shape[1],
            .is_mean = how == "mean",
            .is_max = how == "max"};
  const int64_t rows = weight->shape[0];
  tenon_status status = read_indices(ctx, "embedding_bag", indices, rows, &bags.indices, err);
  if (status == TENON_OK) status = check_offsets(offsets, indices->numel, err);
  if (status == TENON_OK)
    status = read_indices(ctx, "embedding_bag", offsets, indices->numel + 1, &bags.offsets, err);
  if (status != TENON_OK || out->numel == 0) return status;
  if (padding_index->tag != TENON_VALUE_NONE)
    bags.padding = padding_index->v.i < 0 ? padding_index->v.i + rows : padding_index->v.i;
  if (is_low_precision(weight->dtype))
    return reduce_low_precision(ctx, bags, weight, scale, indices->numel, out, err);
  if (weight->dtype == TENON_DTYPE_F32)
    reduce_plain<float>(bags, weight, scale, out);
  else
    reduce_plain<double>(bags, weight, scale, out);
  return TENON_OK;
}
TENON_BOX_embedding_bag(embedding_bag_boxed, embedding_bag);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_embedding_bag(embedding_bag, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList embedding_bag_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
