// SPDX-License-Identifier: Apache-2.0
// The kernels: a transform along several axes is one pass along each of them. A pass is split along its
// longest other axis into parts that run in parallel. The parts follow from the shape alone, as lines
// that are transformed together, in the elements of a vector, are rounded otherwise than single ones:
// results do not depend on the number of threads.
#include "transforms.hpp"

#include <tenon/signatures/fft.h>
#include <tenon/unbox.h>

#include <tenon/parallel.hpp>
#include <tenon/status.hpp>
#include <tenon/tensor.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <string_view>

#include "passes.hpp"

namespace tenon::fft {
namespace {

// One side of a pass: memory, and strides in bytes.
struct Side {
  char* data = nullptr;
  int64_t strides[TENON_MAX_NDIM] = {};
};

struct PassesOfWidths {
  const Passes &single, &wide;
};

PassesOfWidths choose_passes() {
#ifdef TENON_FFT_HAS_AVX512
  // The levels x86-64-v3 and v4, which not every compiler knows by name here.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  // As for the kernels of plugins/cpu, which refuses other names.
  const char* const wanted = std::getenv("TENON_CPU_ISA");
  const std::string_view isa = wanted == nullptr ? "" : wanted;
  if (isa == "baseline") return {baseline::passes<float>(), baseline::passes<double>()};
  if (has_avx2 && isa != "avx2" && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return {avx512::passes<float>(), avx512::passes<double>()};
  if (has_avx2) return {avx2::passes<float>(), avx2::passes<double>()};
#endif
  return {baseline::passes<float>(), baseline::passes<double>()};
}

const Passes& passes(bool wide) {
  static const PassesOfWidths best = choose_passes();
  return wide ? best.wide : best.single;
}

Side side_of(const tenon_tensor* x) {
  const auto bytes = static_cast<int64_t>(host->dtype_size(x->dtype));
  Side side{.data = static_cast<char*>(x->data)};
  for (int32_t i = 0; i < x->ndim; ++i) side.strides[i] = x->strides[i] * bytes;
  return side;
}

Side packed(void* data, int32_t ndim, const int64_t* shape, int64_t bytes) {
  Side side{.data = static_cast<char*>(data)};
  for (int32_t i = ndim; i-- > 0; bytes *= shape[i]) side.strides[i] = bytes;
  return side;
}

int32_t axis_at(const tenon_tensor* x, int64_t axis) {
  return static_cast<int32_t>(axis < 0 ? axis + x->ndim : axis);
}

bool is_double(int dtype) { return dtype == TENON_DTYPE_F64 || dtype == TENON_DTYPE_C128; }

// How many indices along the split axis one part has. `lines`: those with one index there; `work`: what
// such an index costs. A part has whole vectors of lines, unless all lines together fill none.
int64_t extent_of_part(int64_t extent, int64_t lines, double work, bool wide) {
  const int64_t vector = wide ? 8 : 16;
  if (extent * lines < vector) return 1;
  const int64_t whole = lines % vector == 0 ? 1 : (vector + lines - 1) / lines;
  // Some ten microseconds, beside which the setting up of a part's memory does not count.
  const double enough = 4 * static_cast<double>(kSerialWork) / std::max(work, 1.0);
  const auto wanted = static_cast<int64_t>(std::min(enough, static_cast<double>(extent))) + 1;
  return (wanted + whole - 1) / whole * whole;
}

// The least for a pass over complex columns that are adjacent along the split axis: a panel of them, as rows
// of which a part reads two cache lines cost twice as much as those of which it reads four.
int64_t columns_of_panel(const Side& in, const Side& out, int32_t split, int64_t length,
                         int64_t bytes) {
  if (in.strides[split] != bytes || out.strides[split] != bytes) return 1;
  return kPanelBytes / (2 * length * bytes);
}

int32_t longest_other(int32_t ndim, const int64_t* shape, int32_t axis) {
  int32_t longest = -1;
  for (int32_t i = 0; i < ndim; ++i)
    if (i != axis && (longest < 0 || shape[i] > shape[longest])) longest = i;
  return longest;
}

double numel_of(int32_t ndim, const int64_t* shape) {
  double numel = 1;
  for (int32_t i = 0; i < ndim; ++i) numel *= static_cast<double>(shape[i]);
  return numel;
}

// A pass of kernel `op` over a tensor of shape `shape`, the longer one of both sides.
struct Job {
  PassFunction function;
  int32_t ndim;
  const int64_t* shape;
  Side in, out;
  int32_t axis;
  bool forward;
  double scale;
};

// The part of indices [first, first + count) along axis `split`, all of it if that is negative.
void run_part(const Job& job, int32_t split, int64_t first, int64_t count) {
  int64_t shape[TENON_MAX_NDIM];
  std::copy_n(job.shape, job.ndim, shape);
  int64_t from = 0, to = 0;
  if (split >= 0) {
    shape[split] = count;
    from = first * job.in.strides[split];
    to = first * job.out.strides[split];
  }
  job.function({job.in.data + from, job.out.data + to, job.ndim, shape, job.in.strides,
                job.out.strides, job.axis, job.forward, job.scale});
}

tenon_status run(const Job& job, bool wide, const char* op, tenon_err* err) {
  const int32_t split = longest_other(job.ndim, job.shape, job.axis);
  const auto length = static_cast<double>(job.shape[job.axis]);
  const int64_t extent = split < 0 ? 1 : job.shape[split];
  const auto lines =
      static_cast<int64_t>(numel_of(job.ndim, job.shape) / length / static_cast<double>(extent));
  const double work = 5 * length * std::log2(std::max(2.0, length)) * static_cast<double>(lines);
  int64_t step = extent_of_part(extent, lines, work, wide);
  if (split >= 0) {
    const int64_t panel =
        columns_of_panel(job.in, job.out, split, job.shape[job.axis], wide ? 16 : 8);
    const int64_t vector = wide ? 8 : 16;
    step = std::max(step, std::min(panel, extent) / vector * vector);
  }
  std::atomic<bool> failed = false;
  const auto run_parts = [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      try {
        run_part(job, split, part * step, std::min(step, extent - part * step));
      } catch (...) {  // which only want of memory can cause
        failed = true;
      }
    }
  };
  const double work_of_part = std::min(work * static_cast<double>(step), 1e9);
  parallel((extent + step - 1) / step, static_cast<int64_t>(work_of_part), run_parts);
  return failed ? fail_format(err, TENON_OUT_OF_MEMORY, "[%s] out of host memory", op) : TENON_OK;
}

// Passes over complex numbers along each axis: the first one from `in`, the others in place.
tenon_status run_complex(int dtype, int32_t ndim, const int64_t* shape, const Side& in,
                         const Side& out, std::span<const int32_t> axes, bool forward, double scale,
                         const char* op, tenon_err* err) {
  Job job = {.function = passes(is_double(dtype)).complex_to_complex,
             .ndim = ndim,
             .shape = shape,
             .in = in,
             .out = out,
             .axis = 0,
             .forward = forward,
             .scale = scale};
  for (const int32_t axis : axes) {
    job.axis = axis;
    if (const tenon_status status = run(job, is_double(dtype), op, err); status != TENON_OK)
      return status;
    job.in = job.out;
    job.scale = 1;
  }
  return TENON_OK;
}

struct Axes {
  Axes(const tenon_tensor* x, const int64_t* axes, uint64_t count) : count(count) {
    for (uint64_t i = 0; i < count; ++i) items[i] = axis_at(x, axes[i]);
  }
  std::span<const int32_t> all() const { return {items, count}; }
  std::span<const int32_t> all_but_last() const { return {items, count - 1}; }
  int32_t last() const { return items[count - 1]; }
  int32_t items[TENON_MAX_NDIM];
  uint64_t count;
};

tenon_status fft_c2c(tenon_ctx*, const tenon_tensor* x, const int64_t* axes, uint64_t axes_count,
                     int32_t forward, double scale, tenon_tensor* out, tenon_err* err) {
  if (x->numel == 0) return TENON_OK;
  return run_complex(x->dtype, x->ndim, x->shape, side_of(x), side_of(out),
                     Axes(x, axes, axes_count).all(), forward != 0, scale, "fft_c2c", err);
}
TENON_BOX_fft_c2c(fft_c2c_boxed, fft_c2c);

// The transform of real numbers at n - k is the conjugate of that at k.
template <class T>
void mirror(const tenon_tensor* out, int32_t axis) {
  const int64_t n = out->shape[axis], stride = out->strides[axis];
  const int64_t lines = out->numel / n;
  parallel(lines, n, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t offset = 0, rest = line;
      for (int32_t i = out->ndim; i-- > 0;) {
        if (i == axis) continue;
        offset += rest % out->shape[i] * out->strides[i];
        rest /= out->shape[i];
      }
      auto* data = static_cast<std::complex<T>*>(out->data) + offset;
      for (int64_t k = n / 2 + 1; k < n; ++k) data[k * stride] = std::conj(data[(n - k) * stride]);
    }
  });
}

tenon_status fft_r2c(tenon_ctx*, const tenon_tensor* x, const int64_t* axes, uint64_t axes_count,
                     int32_t onesided, double scale, tenon_tensor* out, tenon_err* err) {
  if (x->numel == 0) return TENON_OK;
  const Axes on(x, axes, axes_count);
  const bool wide = is_double(x->dtype);
  const Side to = side_of(out);
  Job job = {.function = passes(wide).real_to_complex,
             .ndim = x->ndim,
             .shape = x->shape,
             .in = side_of(x),
             .out = to,
             .axis = on.last(),
             .forward = true,
             .scale = scale};
  if (const tenon_status status = run(job, wide, "fft_r2c", err); status != TENON_OK) return status;
  if (!onesided) {
    if (wide)
      mirror<double>(out, on.last());
    else
      mirror<float>(out, on.last());
  }
  return run_complex(out->dtype, out->ndim, out->shape, to, to, on.all_but_last(), true, 1.0,
                     "fft_r2c", err);
}
TENON_BOX_fft_r2c(fft_r2c_boxed, fft_r2c);

tenon_status fft_c2r(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axes,
                     uint64_t axes_count, int64_t, double scale, tenon_tensor* out,
                     tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  const Axes on(x, axes, axes_count);
  Side from = side_of(x);
  if (axes_count > 1) {
    const auto bytes = static_cast<int64_t>(host->dtype_size(x->dtype));
    void* memory = nullptr;
    if (const tenon_status status =
            host->scratch(ctx, static_cast<uint64_t>(x->numel * bytes), &memory, err);
        status != TENON_OK)
      return status;
    const Side between = packed(memory, x->ndim, x->shape, bytes);
    if (const tenon_status status = run_complex(x->dtype, x->ndim, x->shape, from, between,
                                                on.all_but_last(), false, 1.0, "fft_c2r", err);
        status != TENON_OK)
      return status;
    from = between;
  }
  const bool wide = is_double(x->dtype);
  Job job = {.function = passes(wide).complex_to_real,
             .ndim = out->ndim,
             .shape = out->shape,
             .in = from,
             .out = side_of(out),
             .axis = on.last(),
             .forward = false,
             .scale = scale};
  return run(job, wide, "fft_c2r", err);
}
TENON_BOX_fft_c2r(fft_c2r_boxed, fft_c2r);

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kReal = bit(TENON_DTYPE_F32) | bit(TENON_DTYPE_F64);
constexpr uint64_t kComplex = bit(TENON_DTYPE_C64) | bit(TENON_DTYPE_C128);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_fft_c2c(fft_c2c, "cpu", kComplex, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_fft_r2c(fft_r2c, "cpu", kReal, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_fft_c2r(fft_c2r, "cpu", kComplex, TENON_KERNEL_STRIDED, 0)};

}  // namespace

std::span<const tenon_kernel_def> kernels() { return kKernels; }

}  // namespace tenon::fft
