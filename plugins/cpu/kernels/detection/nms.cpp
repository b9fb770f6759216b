// SPDX-License-Identifier: Apache-2.0
// nms_mask: each kept box strikes out those after it that it overlaps, in vectors.
#include "index/indices.hpp"
#include "kernel.hpp"

#include <tenon/signatures/detection.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Boxes as four arrays of coordinates and one of areas.
template <class T>
struct Columns {
  T *x0, *y0, *x1, *y1, *area;

  Columns(T* memory, int64_t n) : x0(memory), y0(x0 + n), x1(y0 + n), y1(x1 + n), area(y1 + n) {}

  void fill(const T* boxes, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      x0[i] = boxes[4 * i];
      y0[i] = boxes[4 * i + 1];
      x1[i] = boxes[4 * i + 2];
      y1[i] = boxes[4 * i + 3];
      area[i] = (x1[i] - x0[i]) * (y1[i] - y0[i]);
    }
  }

  // NaN, of boxes without area, is above no threshold.
  bool overlap(int64_t i, int64_t j, T threshold) const {
    const T width = std::max(std::min(x1[i], x1[j]) - std::max(x0[i], x0[j]), T(0));
    const T height = std::max(std::min(y1[i], y1[j]) - std::max(y0[i], y0[j]), T(0));
    const T shared = width * height;
    return shared / (area[i] + area[j] - shared) > threshold;
  }
};

tenon_status nms_mask(tenon_ctx* ctx, const tenon_tensor* boxes, const tenon_tensor* categories,
                      double threshold, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(boxes->dtype))
    return run_as_float32(nms_mask, ctx, err, boxes, categories, threshold, out);
  const int64_t n = boxes->shape[0];
  bool* keep = data_of<bool>(out);
  std::fill_n(keep, n, true);
  if (n == 0) return TENON_OK;
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    void* memory;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(5 * n) * sizeof(T), &memory, err);
    if (status != TENON_OK) return status;
    Columns<T> columns(static_cast<T*>(memory), n);
    columns.fill(data_of<T>(boxes), n);
    const T limit = static_cast<T>(threshold);
    const auto strike = [&](auto same) {
      for (int64_t i = 0; i < n; ++i) {
        if (!keep[i]) continue;
        parallel(n - i - 1, 8, [&](int64_t begin, int64_t end) {
          for (int64_t j = i + 1 + begin; j < i + 1 + end; ++j)
            keep[j] &= !(columns.overlap(i, j, limit) && same(i, j));
        });
      }
    };
    if (!categories) {
      strike([](int64_t, int64_t) { return true; });
    } else {
      with_index_type(categories, [&]<class P>(const P* category) {
        strike([=](int64_t i, int64_t j) { return category[i] == category[j]; });
      });
    }
    return TENON_OK;
  };
  return boxes->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_nms_mask(nms_mask_boxed, nms_mask);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_nms_mask(nms_mask, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList nms_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
