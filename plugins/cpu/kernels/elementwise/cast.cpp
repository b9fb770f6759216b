// SPDX-License-Identifier: Apache-2.0
// cast: conversion between any two dtypes, with any strides. Loop order: rows of the result, in
// blocks of kBlock elements that pass through gather, widen, convert, narrow and scatter as needed.
#include "elementwise/strided.hpp"
#include "kernel.hpp"
#include "simd/non_temporal.hpp"

#include <tenon/dtypes.h>
#include <tenon/signatures/conversion.h>
#include <tenon/storage_float.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kBlock = 512;

template <class T>
constexpr bool is_complex_type = requires {
  typename T::value_type;
};

template <class To, class From>
inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      return To(static_cast<typename To::value_type>(x.real()),
                static_cast<typename To::value_type>(x.imag()));
    } else {
      return convert<To>(x.real());
    }
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To>) {
    // Through the signed type, so that negative numbers wrap with every instruction set.
    constexpr From limit = 9223372036854775808.0;
    const To high =
        static_cast<To>(static_cast<int64_t>(x - limit)) + (To{1} << (sizeof(To) * 8 - 1));
    return sizeof(To) == 8 && x >= limit ? high : static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

// Rounds to float32 by "round to odd": the result is truncated and its last bit set if the
// conversion was inexact. Rounding that to a narrower float gives the correctly rounded result
// (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
// rounding to odd", 2008).
template <class From>
inline float convert_to_odd(From x) {
  const double wide = convert<double>(x);
  const float nearest = static_cast<float>(wide);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool rounded_up = std::fabs(static_cast<double>(nearest)) > std::fabs(wide);
  const bool inexact = static_cast<double>(nearest) != wide && wide == wide;
  return std::bit_cast<float>(inexact ? (bits - rounded_up) | 1u : bits);
}

// `n` is passed by value: compilers have to assume that a store of bytes changes a captured
// reference.
template <class From, class To, class F>
inline void convert_each(const From* from, To* to, int64_t n, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]);
}

// Converts n dense elements; `to` must not overlap elements that are still to be read. Low
// precision floats are float32 here.
void convert_block(int from_dtype, const char* from, int to_dtype, bool to_low_precision, char* to,
                   int64_t n) {
  // A bool is the byte 0 or 1, and uint8 converts in vectors.
  if (from_dtype == TENON_DTYPE_BOOL) from_dtype = TENON_DTYPE_U8;
  with_type(from_dtype, [&]<class From>(Type<From>) {
    const From* x = reinterpret_cast<const From*>(from);
    if (to_low_precision) {
      convert_each(x, reinterpret_cast<float*>(to), n, convert_to_odd<From>);
      return;
    }
    with_type(to_dtype, [&]<class To>(Type<To>) {
      convert_each(x, reinterpret_cast<To*>(to), n, convert<To, From>);
    });
  });
}

// float16 and smaller floats, also those that are stored only, are converted by way of float32.
bool is_reduced(int dtype) {
#define TENON_BIT(id, type) | uint64_t{1} << TENON_DTYPE_##id
  constexpr uint64_t kSmallFloats = 0 TENON_SMALL_FLOATS(TENON_BIT);
#undef TENON_BIT
  return kSmallFloats >> dtype & 1;
}

// Elements of two numbers are cast to their own dtype alone: a copy of bytes.
int stored_as(int dtype) { return kDtypeTable[dtype].dl.lanes > 1 ? int{TENON_DTYPE_U8} : dtype; }

// One cast: the rows of x and out in order, each in blocks unless it can be converted directly.
class Cast {
 public:
  Cast(const tenon_tensor* x, const tenon_tensor* out)
      : axes_(broadcast_axes(&x, 1, out)),
        x_(data_of<char>(x)),
        out_(data_of<char>(out)),
        from_(stored_as(x->dtype)),
        to_(stored_as(out->dtype)),
        from_low_precision_(is_reduced(from_)),
        to_low_precision_(is_reduced(to_)),
        from_size_(kDtypeSize[from_]),
        to_size_(kDtypeSize[to_]) {
    const bool dense_out = axes_.inner_stride(1) == to_size_;
    const bool non_temporal =
        use_non_temporal(out->numel * to_size_, out->numel * (from_size_ + to_size_)) &&
        dense_out && axes_.inner_extent() * to_size_ >= kNonTemporalBlock;
    finish_ = non_temporal ? Finish::non_temporal : dense_out ? Finish::none : Finish::scatter;
    // Low precision floats are converted from and to float32, and their widening accepts any
    // stride.
    const bool one_step = from_low_precision_
                              ? to_ == TENON_DTYPE_F32
                              : axes_.inner_stride(0) == from_size_ &&
                                    (!to_low_precision_ || from_ == TENON_DTYPE_F32);
    max_run_ = one_step && finish_ == Finish::none ? std::numeric_limits<int64_t>::max() : kBlock;
  }

  void run(int64_t begin, int64_t end) const {
    StridedIterator position(axes_, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min({end - at, max_run_, position.left_in_row(axes_)});
      block(x_ + position.offset(axes_, 0), out_ + position.offset(axes_, 1), n);
      position.advance(axes_, n);
      at += n;
    }
    if (finish_ == Finish::non_temporal) non_temporal_fence();
  }

 private:
  // What happens to a converted block.
  enum class Finish { none, scatter, non_temporal };

  void block(const char* x, char* out, int64_t n) const {
    alignas(64) char source[kBlock * 16], floats[kBlock * 4], converted[kBlock * 16];
    char* const to = finish_ == Finish::none ? out : converted;
    if (from_low_precision_) {
      float* wide = reinterpret_cast<float*>(to_ == TENON_DTYPE_F32 ? to : floats);
      widen(from_, x, axes_.inner_stride(0), wide, n);
      x = reinterpret_cast<const char*>(wide);
    } else if (axes_.inner_stride(0) != from_size_) {
      copy_row(source, from_size_, x, axes_.inner_stride(0), n, from_size_);
      x = source;
    }
    const int from = from_low_precision_ ? TENON_DTYPE_F32 : from_;
    if (to_low_precision_ && from != TENON_DTYPE_F32) {
      convert_block(from, x, to_, true, floats, n);
      x = floats;
    }
    if (to_low_precision_) {
      narrow(to_, reinterpret_cast<const float*>(x), to, to_size_, n);
    } else if (x != to) {
      convert_block(from, x, to_, false, to, n);
    }
    if (finish_ == Finish::scatter) {
      copy_row(out, axes_.inner_stride(1), to, to_size_, n, to_size_);
    } else if (finish_ == Finish::non_temporal) {
      non_temporal_copy(out, to, n * to_size_);
    }
  }

  Axes axes_;
  const char* x_;
  char* out_;
  int from_, to_;
  bool from_low_precision_, to_low_precision_;
  int from_size_, to_size_;
  Finish finish_;
  int64_t max_run_;  // elements converted at a time
};

tenon_status cast(tenon_ctx*, const tenon_tensor* x, int32_t, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  const Cast work(x, out);
  parallel(out->numel, 2, [&](int64_t begin, int64_t end) { work.run(begin, end); });
  return TENON_OK;
}
TENON_BOX_cast(cast_boxed, cast);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_cast(cast, nullptr, kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

KernelList cast_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
