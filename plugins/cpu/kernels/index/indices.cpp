// SPDX-License-Identifier: Apache-2.0
#include "index/indices.hpp"

#include <atomic>

namespace tenon::cpu::TENON_CPU_ISA {

namespace {

template <class T>
tenon_status fail_outside(const char* op, const T* from, int64_t count, int64_t length,
                          tenon_err* err) {
  int64_t i = 0;
  while (i < count - 1 && signed_index(from[i]) >= -length && signed_index(from[i]) < length) ++i;
  return fail_format(err, TENON_OUT_OF_RANGE, "[%s] expected positions from %lld to %lld, got %lld",
                     op, static_cast<long long>(-length), static_cast<long long>(length - 1),
                     static_cast<long long>(from[i]));
}

}  // namespace

tenon_status fail_indices(const char* op, const tenon_tensor* index, int64_t length,
                          tenon_err* err) {
  tenon_status status = TENON_OK;
  with_index_type(index, [&]<class P>(const P* from) {
    status = fail_outside(op, from, index->numel, length, err);
  });
  return status;
}

tenon_status read_indices(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                          const int64_t** out, tenon_err* err) {
  tenon_status status = TENON_OK;
  with_type(index->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* from = data_of<T>(index);
      const int64_t count = index->numel;
      std::atomic<bool> outside = false, negative = false;
      parallel(count, 1, [&](int64_t begin, int64_t end) {
        int64_t min_index = 0, max_index = -1;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t offset = signed_index(from[i]);
          min_index = std::min(min_index, offset);
          max_index = std::max(max_index, offset);
        }
        if (min_index < -length || max_index >= length) outside = true;
        if (min_index < 0) negative = true;
      });
      if (outside) {
        status = fail_outside(op, from, count, length, err);
        return;
      }
      if constexpr (std::is_same_v<T, int64_t>) {
        if (!negative) {
          *out = from;
          return;
        }
      }
      void* memory;
      status = host->scratch(ctx, static_cast<uint64_t>(count) * sizeof(int64_t), &memory, err);
      if (status != TENON_OK) return;
      auto* offsets = static_cast<int64_t*>(memory);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t offset = signed_index(from[i]);
        offsets[i] = offset < 0 ? offset + length : offset;
      }
      *out = offsets;
    } else {
      status =
          fail_format(err, TENON_OUT_OF_RANGE, "[%s] expected positions of an integer dtype", op);
    }
  });
  return status;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
