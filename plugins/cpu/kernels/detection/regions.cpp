// SPDX-License-Identifier: Apache-2.0
// roi_align, its adjoint, and roi_argmax. Samples of a region are products of rows and columns, so
// that their positions and weights are computed once for each axis of a box, not for each channel.
#include "index/indices.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/detection.h>

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// A sample along one axis: two elements and their weights.
template <class T>
struct Sample {
  int64_t low, high;
  T low_weight, high_weight;
};

struct Geometry {
  int64_t images, channels, extent[2], bins[2];
  double scale;
  int64_t ratio;
  bool aligned;

  int64_t pixels() const { return extent[0] * extent[1]; }
  int64_t results() const { return bins[0] * bins[1]; }
  // An upper bound of the samples inside the image along one axis. Without a ratio they are at
  // least half an element apart, or one to a bin.
  int64_t max_samples(int axis) const {
    return ratio > 0 ? bins[axis] * ratio : bins[axis] + 2 * extent[axis] + 8;
  }
  // Bytes of the tables of one box.
  template <class T>
  int64_t table_bytes() const {
    int64_t bytes = 0;
    for (int axis = 0; axis < 2; ++axis) {
      bytes += max_samples(axis) * static_cast<int64_t>(sizeof(Sample<T>)) +
               (bins[axis] + 1) * static_cast<int64_t>(sizeof(int64_t));
    }
    return bytes;
  }
};

// The samples of all bins along one axis of a box: those of bin b are from starts[b] to
// starts[b + 1]. Samples outside of the image are left out.
template <class T>
struct AxisTable {
  Sample<T>* samples;
  int64_t* starts;
  T grid;  // samples of a bin, with those left out

  void fill(const Geometry& geometry, int axis, T first, T last) {
    const T offset = geometry.aligned ? T(0.5) : T(0), scale = static_cast<T>(geometry.scale);
    const T begin = first * scale - offset;
    T length = last * scale - offset - begin;
    if (!geometry.aligned) length = length < T(1) ? T(1) : length;
    const T size = length / static_cast<T>(geometry.bins[axis]);
    grid = geometry.ratio > 0 ? static_cast<T>(geometry.ratio) : std::ceil(size);
    if (!std::isfinite(grid) || !std::isfinite(begin)) grid = 0;
    const int64_t limit = geometry.max_samples(axis);
    int64_t count = 0;
    for (int64_t bin = 0; bin < geometry.bins[axis]; ++bin) {
      starts[bin] = count;
      const T start = static_cast<T>(bin);
      for (T i = first_inside(begin, start, size); i < grid && count < limit; i += 1) {
        const T at = begin + ((i + T(0.5)) / grid + start) * size;
        if (at > static_cast<T>(geometry.extent[axis])) break;
        if (at >= T(-1)) samples[count++] = sample(at, geometry.extent[axis]);
      }
    }
    starts[geometry.bins[axis]] = count;
  }

 private:
  // A sample of the bin from which on they are inside, or some before it.
  T first_inside(T begin, T bin, T size) const {
    if (!(size > 0)) return 0;
    return std::max(std::floor(((T(-1) - begin) / size - bin) * grid) - T(2), T(0));
  }
  static Sample<T> sample(T at, int64_t extent) {
    at = std::clamp(at, T(0), static_cast<T>(extent - 1));
    const int64_t low = static_cast<int64_t>(at);
    const T rest = at - static_cast<T>(low);
    return {low, std::min(low + 1, extent - 1), T(1) - rest, rest};
  }
};

template <class T>
struct BoxTables {
  AxisTable<T> down, across;

  BoxTables(const Geometry& geometry, void* memory) {
    auto* samples = static_cast<Sample<T>*>(memory);
    down.samples = samples;
    across.samples = samples + geometry.max_samples(0);
    down.starts = reinterpret_cast<int64_t*>(across.samples + geometry.max_samples(1));
    across.starts = down.starts + geometry.bins[0] + 1;
  }
  void fill(const Geometry& geometry, const T* box) {
    down.fill(geometry, 0, box[1], box[3]);
    across.fill(geometry, 1, box[0], box[2]);
  }
  T divisor() const { return std::max(down.grid * across.grid, T(1)); }
};

// Calls f(row, column) for the samples of one bin.
template <class T, class F>
void for_bin(const BoxTables<T>& tables, int64_t i, int64_t j, F&& f) {
  for (int64_t r = tables.down.starts[i]; r < tables.down.starts[i + 1]; ++r) {
    for (int64_t c = tables.across.starts[j]; c < tables.across.starts[j + 1]; ++c)
      f(tables.down.samples[r], tables.across.samples[c]);
  }
}

// weight * x, where 0 leaves out an element that is not finite.
template <class T>
T times(T weight, T x) {
  return weight == 0 ? T(0) : weight * x;
}

template <class T>
T sample_at(const T* plane, int64_t width, const Sample<T>& row, const Sample<T>& column) {
  const T *low = plane + row.low * width, *high = plane + row.high * width;
  return times(row.low_weight * column.low_weight, low[column.low]) +
         times(row.low_weight * column.high_weight, low[column.high]) +
         times(row.high_weight * column.low_weight, high[column.low]) +
         times(row.high_weight * column.high_weight, high[column.high]);
}

template <class T>
void add_at(T* plane, int64_t width, const Sample<T>& row, const Sample<T>& column, T value) {
  T *low = plane + row.low * width, *high = plane + row.high * width;
  low[column.low] += times(row.low_weight * column.low_weight, value);
  low[column.high] += times(row.low_weight * column.high_weight, value);
  high[column.low] += times(row.high_weight * column.low_weight, value);
  high[column.high] += times(row.high_weight * column.high_weight, value);
}

Geometry geometry_of(const int64_t* image, const int64_t* result, double scale, int64_t ratio,
                     bool aligned) {
  return {image[0], image[1], {image[2], image[3]}, {result[2], result[3]}, scale, ratio, aligned};
}

tenon_status roi_align(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* boxes,
                       const tenon_tensor* image_index, const int64_t* output_size,
                       uint64_t output_size_count, double spatial_scale, int64_t sampling_ratio,
                       int32_t aligned, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(roi_align, ctx, err, x, boxes, image_index, output_size,
                          output_size_count, spatial_scale, sampling_ratio, aligned, out);
  const Geometry geometry =
      geometry_of(x->shape, out->shape, spatial_scale, sampling_ratio, aligned != 0);
  const int64_t* images;
  const tenon_status status =
      read_indices(ctx, "roi_align", image_index, geometry.images, &images, err);
  if (status != TENON_OK || out->numel == 0) return status;
  const auto run = [&]<class T>(Type<T>) {
    const int64_t of_box = geometry.channels * geometry.results();
    return parallel_for_with_scratch(
        ctx, boxes->shape[0], 16 * of_box, geometry.table_bytes<T>(), err,
        [&](int64_t k, void* memory) {
          BoxTables<T> tables(geometry, memory);
          tables.fill(geometry, data_of<T>(boxes) + 4 * k);
          const T divisor = tables.divisor();
          const T* plane = data_of<T>(x) + images[k] * geometry.channels * geometry.pixels();
          T* to = data_of<T>(out) + k * of_box;
          for (int64_t c = 0; c < geometry.channels; ++c, plane += geometry.pixels()) {
            for (int64_t i = 0; i < geometry.bins[0]; ++i) {
              for (int64_t j = 0; j < geometry.bins[1]; ++j) {
                T total = 0;
                for_bin(tables, i, j, [&](const Sample<T>& row, const Sample<T>& column) {
                  total += sample_at(plane, geometry.extent[1], row, column);
                });
                *to++ = total / divisor;
              }
            }
          }
        });
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_roi_align(roi_align_boxed, roi_align);

// Threads divide the channels: boxes of one image add to the same elements.
tenon_status roi_align_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* boxes,
                            const tenon_tensor* image_index, const int64_t* shape,
                            uint64_t shape_count, double spatial_scale, int64_t sampling_ratio,
                            int32_t aligned, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(grad_out->dtype))
    return run_as_float32(roi_align_grad, ctx, err, grad_out, boxes, image_index, shape,
                          shape_count, spatial_scale, sampling_ratio, aligned, out);
  const Geometry geometry =
      geometry_of(out->shape, grad_out->shape, spatial_scale, sampling_ratio, aligned != 0);
  const int64_t* images;
  const tenon_status status =
      read_indices(ctx, "roi_align", image_index, geometry.images, &images, err);
  if (status != TENON_OK || out->numel == 0) return status;
  const auto run = [&]<class T>(Type<T>) {
    const int64_t count = boxes->shape[0];
    return parallel_for_with_scratch(
        ctx, geometry.channels, out->numel / geometry.channels + 16 * count * geometry.results(),
        geometry.table_bytes<T>(), err, [&](int64_t c, void* memory) {
          for (int64_t n = 0; n < geometry.images; ++n)
            std::fill_n(data_of<T>(out) + (n * geometry.channels + c) * geometry.pixels(),
                        geometry.pixels(), T(0));
          BoxTables<T> tables(geometry, memory);
          for (int64_t k = 0; k < count; ++k) {
            tables.fill(geometry, data_of<T>(boxes) + 4 * k);
            const T divisor = tables.divisor();
            const T* from = data_of<T>(grad_out) + (k * geometry.channels + c) * geometry.results();
            T* plane = data_of<T>(out) + (images[k] * geometry.channels + c) * geometry.pixels();
            for (int64_t i = 0; i < geometry.bins[0]; ++i) {
              for (int64_t j = 0; j < geometry.bins[1]; ++j) {
                const T value = *from++ / divisor;
                for_bin(tables, i, j, [&](const Sample<T>& row, const Sample<T>& column) {
                  add_at(plane, geometry.extent[1], row, column, value);
                });
              }
            }
          }
        });
  };
  return out->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_roi_align_grad(roi_align_grad_boxed, roi_align_grad);

// The elements of bin `i` along one axis of a box of roi_pool.
template <class T>
struct Range {
  int64_t begin, end;
  Range(T first, T last, T scale, int64_t bins, int64_t i, int64_t extent) {
    const T origin = std::round(first * scale);
    const T length = std::max(std::round(last * scale) - origin + 1, T(1));
    const T size = length / static_cast<T>(bins);
    begin = inside(std::floor(static_cast<T>(i) * size) + origin, extent);
    end = inside(std::ceil(static_cast<T>(i + 1) * size) + origin, extent);
  }

 private:
  static int64_t inside(T at, int64_t extent) {
    if (!(at > 0)) return 0;  // NaN as well: an empty bin
    return at < static_cast<T>(extent) ? static_cast<int64_t>(at) : extent;
  }
};

template <class T>
int64_t argmax_in(const T* plane, int64_t width, const Range<T>& down, const Range<T>& across) {
  int64_t best = -1;
  for (int64_t y = down.begin; y < down.end; ++y) {
    for (int64_t at = y * width + across.begin; at < y * width + across.end; ++at) {
      if (best < 0 || plane[at] > plane[best] ||
          (plane[at] != plane[at] && plane[best] == plane[best]))
        best = at;
    }
  }
  return best;
}

tenon_status roi_argmax(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* boxes,
                        const tenon_tensor* image_index, const int64_t* output_size,
                        uint64_t output_size_count, double spatial_scale, tenon_tensor* out,
                        tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(roi_argmax, ctx, err, x, boxes, image_index, output_size,
                          output_size_count, spatial_scale, out);
  const Geometry geometry = geometry_of(x->shape, out->shape, spatial_scale, 0, false);
  const int64_t* images;
  const tenon_status status =
      read_indices(ctx, "roi_pool", image_index, geometry.images, &images, err);
  if (status != TENON_OK || out->numel == 0) return status;
  const auto run = [&]<class T>(Type<T>) {
    const T scale = static_cast<T>(spatial_scale);
    const int64_t planes = boxes->shape[0] * geometry.channels;
    parallel(planes, geometry.pixels(), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t box = k / geometry.channels, c = k % geometry.channels;
        const T* corner = data_of<T>(boxes) + 4 * box;
        const T* plane = data_of<T>(x) + (images[box] * geometry.channels + c) * geometry.pixels();
        int64_t* to = data_of<int64_t>(out) + k * geometry.results();
        for (int64_t i = 0; i < geometry.bins[0]; ++i) {
          const Range<T> down(corner[1], corner[3], scale, geometry.bins[0], i, geometry.extent[0]);
          for (int64_t j = 0; j < geometry.bins[1]; ++j)
            *to++ = argmax_in(
                plane, geometry.extent[1], down,
                Range<T>(corner[0], corner[2], scale, geometry.bins[1], j, geometry.extent[1]));
        }
      }
    });
    return TENON_OK;
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_roi_argmax(roi_argmax_boxed, roi_argmax);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_roi_align(roi_align, nullptr, kFloats, 0, 0),
    TENON_KERNEL_roi_align_grad(roi_align_grad, nullptr, kFloats, 0, 0),
    TENON_KERNEL_roi_argmax(roi_argmax, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList regions_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
