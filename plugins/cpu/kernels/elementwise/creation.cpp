// SPDX-License-Identifier: Apache-2.0
// full, arange, linspace and eye: one pass of stores over the result, with non-temporal stores
// where it exceeds the caches.
#include "elementwise/strided.hpp"
#include "kernel.hpp"
#include "simd/non_temporal.hpp"

#include <tenon/signatures/creation.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Writes one element of `dtype`.
void store_scalar(const tenon_value& value, int dtype, void* to) {
  if (is_low_precision(dtype)) {
    narrow_one(dtype, scalar_as<float>(value), to);
    return;
  }
  with_type(dtype, [&]<class T>(Type<T>) { *static_cast<T*>(to) = scalar_as<T>(value); });
}

tenon_status full(tenon_ctx*, const int64_t*, uint64_t, const tenon_value* value, int32_t, int32_t,
                  tenon_tensor* out, tenon_err*) {
  if (out->numel == 1) {  // a constant, and many of them
    store_scalar(*value, out->dtype, out->data);
    return TENON_OK;
  }
  alignas(16) char element[16];
  store_scalar(*value, out->dtype, element);
  const int size = kDtypeSize[out->dtype];
  const bool non_temporal = out->numel * size >= kNonTemporalBytes;
  parallel(out->numel, 1, [&](int64_t begin, int64_t end) {
    char* to = data_of<char>(out) + begin * size;
    static constexpr char zeros[16] = {};
    if (std::memcmp(element, zeros, static_cast<size_t>(size)) == 0) {
      std::memset(to, 0, static_cast<size_t>((end - begin) * size));
    } else if (non_temporal) {
      alignas(64) char block[kNonTemporalBlock];
      copy_row(block, size, element, 0, kNonTemporalBlock / size, size);
      for (int64_t bytes = (end - begin) * size; bytes > 0;
           bytes -= kNonTemporalBlock, to += kNonTemporalBlock) {
        non_temporal_copy(to, block, std::min(bytes, kNonTemporalBlock));
      }
      non_temporal_fence();
    } else {
      copy_row(to, size, element, 0, end - begin, size);
    }
  });
  return TENON_OK;
}
TENON_BOX_full(full_boxed, full);

// out[i] = f(i), where f returns double, or an integer for integer dtypes. Each thread has a
// copy of f: compilers have to assume that a store changes what a reference points to.
template <class F>
void generate(const tenon_tensor* out, const F& function) {
  parallel(out->numel, 2, [&, out](int64_t begin, int64_t end) {
    const F f = function;
    if (is_low_precision(out->dtype)) {
      const int size = kDtypeSize[out->dtype];
      for (int64_t i = begin; i < end; ++i) {
        narrow_one(out->dtype, static_cast<float>(f(i)), data_of<char>(out) + i * size);
      }
      return;
    }
    with_type(out->dtype, [=]<class T>(Type<T>) {
      T* to = data_of<T>(out);
      for (int64_t i = begin, last = end; i < last; ++i) to[i] = static_cast<T>(f(i));
    });
  });
}

tenon_status arange(tenon_ctx*, const tenon_value* start, const tenon_value* stop,
                    const tenon_value* step, int32_t, int32_t, tenon_tensor* out, tenon_err*) {
  // arange(5): the only number is the end.
  static constexpr tenon_value zero = {TENON_VALUE_INT, 0, {.i = 0}};
  const tenon_value& first = stop && stop->tag != TENON_VALUE_NONE ? *start : zero;
  if (first.tag != TENON_VALUE_FLOAT && step->tag != TENON_VALUE_FLOAT) {
    const int64_t a = first.v.i, d = step->v.i;
    if (d == 1) {  // no 64-bit multiplication, which few processors have for vectors
      generate(out, [=](int64_t i) { return a + i; });
    } else {
      generate(out, [=](int64_t i) { return a + i * d; });
    }
  } else {
    generate(out, [a = scalar_as<double>(first), d = scalar_as<double>(*step)](int64_t i) {
      return a + static_cast<double>(i) * d;
    });
  }
  return TENON_OK;
}
TENON_BOX_arange(arange_boxed, arange);

tenon_status linspace(tenon_ctx*, double start, double stop, int64_t num, int32_t endpoint, int32_t,
                      int32_t, tenon_tensor* out, tenon_err*) {
  const int64_t intervals = endpoint ? num - 1 : num;
  const double step = intervals > 0 ? (stop - start) / static_cast<double>(intervals) : 0.0;
  // The last number exactly.
  generate(out, [=, last = endpoint && num > 1 ? num - 1 : int64_t{-1}](int64_t i) {
    return i == last ? stop : start + static_cast<double>(i) * step;
  });
  return TENON_OK;
}
TENON_BOX_linspace(linspace_boxed, linspace);

tenon_status eye(tenon_ctx*, int64_t, const tenon_value*, int64_t offset, int32_t, int32_t,
                 tenon_tensor* out, tenon_err*) {
  const int size = kDtypeSize[out->dtype];
  const int64_t rows = out->shape[0], columns = out->shape[1];
  offset = std::clamp(offset, -rows, columns);
  alignas(16) char one[16];
  store_scalar({TENON_VALUE_INT, 0, {.i = 1}}, out->dtype, one);
  if (out->numel > 0) std::memset(out->data, 0, static_cast<size_t>(out->numel * size));
  for (int64_t i = std::max<int64_t>(0, -offset); i < rows && i + offset < columns; ++i) {
    std::memcpy(data_of<char>(out) + (i * columns + i + offset) * size, one,
                static_cast<size_t>(size));
  }
  return TENON_OK;
}
TENON_BOX_eye(eye_boxed, eye);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_full(full, nullptr, kAllDtypes, 0, 0),
    TENON_KERNEL_arange(arange, nullptr, kReals | kComplexes, 0, 0),
    TENON_KERNEL_linspace(linspace, nullptr, kReals | kComplexes, 0, 0),
    TENON_KERNEL_eye(eye, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList creation_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
