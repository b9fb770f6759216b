// SPDX-License-Identifier: Apache-2.0
// concat: joins tensors along an axis. Loop order: bands of kStretch rows of the result, and within
// a band tensor by tensor, while the band is in cache.
#include "elementwise/strided.hpp"
#include "kernel.hpp"
#include "simd/non_temporal.hpp"

#include <tenon/signatures/shape.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Rows of a band: all tensors write them before the next band begins.
constexpr int64_t kStretch = 1024;

// Interleaves two tensors of one element per row.
void interleave(char* to, const char* first, const char* second, int64_t n, int64_t size) {
  with_size(static_cast<int>(size), [=]<class T>(Type<T>) {
    T* pairs = reinterpret_cast<T*>(to);
    const T *a = reinterpret_cast<const T*>(first), *b = reinterpret_cast<const T*>(second);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      pairs[2 * i] = a[i];
      pairs[2 * i + 1] = b[i];
    }
  });
}

// Copies whole tensors one after the other. Threads divide the result, not the tensors.
void append(const tenon_tensor* const* tensors, char* to, int64_t bytes, int64_t size) {
  constexpr int64_t kLine = 64;
  const bool non_temporal = use_non_temporal(bytes, 2 * bytes);
  parallel((bytes + kLine - 1) / kLine, kLine / 4, [=](int64_t first, int64_t last) {
    int64_t at = first * kLine, start = 0;
    const int64_t end = std::min(last * kLine, bytes);
    for (uint64_t t = 0; at < end; ++t) {
      const int64_t length = tensors[t]->numel * size;
      if (const int64_t n = std::min(end, start + length) - at; n > 0) {
        const char* from = data_of<char>(tensors[t]) + (at - start);
        if (non_temporal) {
          non_temporal_copy(to + at, from, n);
        } else {
          std::memcpy(to + at, from, static_cast<size_t>(n));
        }
        at += n;
      }
      start += length;
    }
    if (non_temporal) non_temporal_fence();
  });
}

tenon_status concat(tenon_ctx*, const tenon_tensor* const* tensors, uint64_t tensors_count,
                    int64_t axis, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  const AxisView view(out, axis);
  const int64_t size = kDtypeSize[out->dtype];
  if (view.outer == 1) {
    append(tensors, data_of<char>(out), out->numel * size, size);
    return TENON_OK;
  }
  const int64_t row_bytes = view.length * view.inner * size;
  if (tensors_count == 2 && row_bytes == 2 * size && tensors[0]->numel == tensors[1]->numel) {
    parallel(view.outer, 2, [=](int64_t begin, int64_t end) {
      interleave(data_of<char>(out) + begin * row_bytes, data_of<char>(tensors[0]) + begin * size,
                 data_of<char>(tensors[1]) + begin * size, end - begin, size);
    });
    return TENON_OK;
  }
  parallel(view.outer, row_bytes / 4 + 1, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kStretch) {
      const int64_t rows = std::min(kStretch, end - at);
      char* to = data_of<char>(out) + at * row_bytes;
      for (uint64_t t = 0; t < tensors_count; ++t) {
        if (tensors[t]->numel == 0) continue;
        const int64_t bytes = tensors[t]->numel / view.outer * size;
        const char* from = data_of<char>(tensors[t]) + at * bytes;
        if (bytes == size) {
          copy_row(to, row_bytes, from, size, rows, static_cast<int>(size));
        } else {
          for (int64_t i = 0; i < rows; ++i) {
            std::memcpy(to + i * row_bytes, from + i * bytes, static_cast<size_t>(bytes));
          }
        }
        to += bytes;
      }
    }
  });
  return TENON_OK;
}
TENON_BOX_concat(concat_boxed, concat);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_concat(concat, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList concat_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
