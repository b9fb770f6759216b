// SPDX-License-Identifier: Apache-2.0
// segment_argmax: one pass over the rows. Threads divide the columns, since rows of one segment may
// be anywhere.
#include "index/indices.hpp"
#include "kernel.hpp"

#include <tenon/signatures/geometric.h>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

// Does `x` take the place of `best`? The first NaN stays.
template <class T>
bool exceeds(T x, T best, bool largest) {
  if constexpr (std::is_floating_point_v<T>) {
    if (best != best) return false;
    if (x != x) return true;
  }
  return largest ? x > best : x < best;
}

tenon_status segment_argmax(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                            int64_t count, int32_t largest, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(segment_argmax, ctx, err, x, index, count, largest, out);
  const int64_t* segments;
  const tenon_status status = read_indices(ctx, "segment_argmax", index, count, &segments, err);
  if (status != TENON_OK) return status;
  const int64_t rows = x->shape[0], columns = x->shape[1];
  int64_t* to = data_of<int64_t>(out);
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      const T* from = data_of<T>(x);
      parallel(columns, 2 * rows + count, [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < count; ++i)
          std::fill(to + i * columns + begin, to + i * columns + end, int64_t{-1});
        for (int64_t row = 0; row < rows; ++row) {
          int64_t* best = to + segments[row] * columns;
          for (int64_t j = begin; j < end; ++j) {
            if (best[j] < 0 ||
                exceeds(from[row * columns + j], from[best[j] * columns + j], largest != 0))
              best[j] = row;
          }
        }
      });
    }
  });
  return TENON_OK;
}
TENON_BOX_segment_argmax(segment_argmax_boxed, segment_argmax);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_segment_argmax(segment_argmax, nullptr, kBool | kReals, 0, 0)};

}  // namespace

KernelList segment_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
