// SPDX-License-Identifier: Apache-2.0
// pack and unpack: between numbers and dtypes of two numbers in a byte, the first one in the low half. Dense memory, in
// blocks of kBlock numbers; float16 and smaller floats are converted by way of float32.
#include "elementwise/low_precision.hpp"
#include "kernel.hpp"

#include <tenon/signatures/conversion.h>

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kBlock = 512;  // numbers

// The pattern of OCP FP4 E2M1 of the nearest number; halfway, the even one. A magnitude's pattern is how many of the
// borders between two magnitudes are below. NaN is above none of them.
template <class T>
inline uint8_t float4_pattern(T x) {
  bool is_negative = x < T(0);
  if constexpr (std::is_floating_point_v<T>) is_negative = std::signbit(x) && x == x;
  const double magnitude = std::fabs(static_cast<double>(x));
  const int above = (magnitude > 0.25) + (magnitude >= 0.75) + (magnitude > 1.25) +
                    (magnitude >= 1.75) + (magnitude > 2.5) + (magnitude >= 3.5) +
                    (magnitude > 5.0);
  return static_cast<uint8_t>(above + 8 * is_negative);
}

template <int low, int high, class T>
inline uint8_t int4_pattern(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    const T whole = std::nearbyint(x == x ? x : T(0));
    return static_cast<uint8_t>(static_cast<int>(std::min(std::max(whole, T(low)), T(high))) & 15);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<uint8_t>(x > T(high) ? T(high) : x);
  } else {
    return static_cast<uint8_t>(static_cast<int>(x < T(low)    ? T(low)
                                                 : x > T(high) ? T(high)
                                                               : x) &
                                15);
  }
}

template <class T, class Pattern>
inline void pack_pairs(const T* from, uint8_t* to, int64_t bytes, Pattern pattern) {
  for (int64_t i = 0; i < bytes; ++i)
    to[i] = static_cast<uint8_t>(pattern(from[2 * i]) | pattern(from[2 * i + 1]) << 4);
}

template <class T>
void pack_dense(int dtype, const T* from, uint8_t* to, int64_t bytes) {
  if (dtype == TENON_DTYPE_F4E2M1X2)
    pack_pairs(from, to, bytes, float4_pattern<T>);
  else if (dtype == TENON_DTYPE_I4X2)
    pack_pairs(from, to, bytes, int4_pattern<-8, 7, T>);
  else
    pack_pairs(from, to, bytes, int4_pattern<0, 15, T>);
}

tenon_status pack(tenon_ctx*, const tenon_tensor* x, int32_t dtype, tenon_tensor* out, tenon_err*) {
  uint8_t* to = data_of<uint8_t>(out);
  parallel(out->numel, 8, [&](int64_t begin, int64_t end) {
    if (is_low_precision(x->dtype)) {
      const int64_t size = kDtypeSize[x->dtype];
      float floats[kBlock];
      for (int64_t at = begin; at < end; at += kBlock / 2) {
        const int64_t bytes = std::min(end - at, kBlock / 2);
        widen(x->dtype, data_of<char>(x) + 2 * at * size, size, floats, 2 * bytes);
        pack_dense(dtype, floats, to + at, bytes);
      }
      return;
    }
    with_type(x->dtype, [&]<class T>(Type<T>) {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        pack_dense(dtype, data_of<T>(x) + 2 * begin, to + begin, end - begin);
    });
  });
  return TENON_OK;
}
TENON_BOX_pack(pack_boxed, pack);

// The values of patterns 0 to 15.
constexpr float kFloat4[16] = {0.f,  .5f,  1.f,  1.5f,  2.f,  3.f,  4.f,  6.f,
                               -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
constexpr float kInt4[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
constexpr float kUint4[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

template <class T>
void unpack_dense(const float* values, const uint8_t* from, T* to, int64_t bytes) {
  T table[16];
  for (int i = 0; i < 16; ++i) table[i] = static_cast<T>(values[i]);
  for (int64_t i = 0; i < bytes; ++i) {
    to[2 * i] = table[from[i] & 15];
    to[2 * i + 1] = table[from[i] >> 4];
  }
}

tenon_status unpack(tenon_ctx*, const tenon_tensor* x, int32_t, tenon_tensor* out, tenon_err*) {
  const float* values = x->dtype == TENON_DTYPE_F4E2M1X2 ? kFloat4
                        : x->dtype == TENON_DTYPE_I4X2   ? kInt4
                                                         : kUint4;
  const uint8_t* from = data_of<uint8_t>(x);
  parallel(x->numel, 4, [&](int64_t begin, int64_t end) {
    if (is_low_precision(out->dtype)) {
      const int64_t size = kDtypeSize[out->dtype];
      float floats[kBlock];
      for (int64_t at = begin; at < end; at += kBlock / 2) {
        const int64_t bytes = std::min(end - at, kBlock / 2);
        unpack_dense(values, from + at, floats, bytes);
        narrow(out->dtype, floats, data_of<char>(out) + 2 * at * size, size, 2 * bytes);
      }
      return;
    }
    with_type(out->dtype, [&]<class T>(Type<T>) {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        unpack_dense(values, from + begin, data_of<T>(out) + 2 * begin, end - begin);
    });
  });
  return TENON_OK;
}
TENON_BOX_unpack(unpack_boxed, unpack);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_pack(pack, nullptr, kReals, 0, 0),
                                     TENON_KERNEL_unpack(unpack, nullptr, kReals, 0, 0)};

}  // namespace

KernelList packed_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
