// SPDX-License-Identifier: Apache-2.0
// Conversion between any two dtypes, from and to any strides.
#include "kernel.hpp"
#include "stream.hpp"
#include "strided.hpp"

#include <bit>
#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kBlock = 512;

template <class T>
constexpr bool is_complex_type = requires { typename T::value_type; };

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
    const To high = static_cast<To>(static_cast<int64_t>(x - limit)) + (To{1} << (sizeof(To) * 8 - 1));
    return sizeof(To) == 8 && x >= limit ? high : static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

// float32 on the way to a smaller float: cut off, with a sticky last bit, so that the second rounding
// gives what one rounding would have given.
template <class From>
inline float convert_to_odd(From x) {
  const double wide = convert<double>(x);
  const float nearest = static_cast<float>(wide);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool rounded_up = std::fabs(static_cast<double>(nearest)) > std::fabs(wide);
  const bool inexact = static_cast<double>(nearest) != wide && wide == wide;
  return std::bit_cast<float>(inexact ? (bits - rounded_up) | 1u : bits);
}

// n dense elements; reduced floats on either side are float32 here.
void convert_block(int from_dtype, const char* from, int to_dtype, bool to_reduced, char* to,
                   int64_t n) {
  // A boolean is the byte 0 or 1, which converts in vectors.
  if (from_dtype == TENON_DTYPE_BOOL) from_dtype = TENON_DTYPE_U8;
  with_type(from_dtype, [&]<class From>(Type<From>) {
    const From* x = reinterpret_cast<const From*>(from);
    if (to_reduced) {
      float* y = reinterpret_cast<float*>(to);
      for (int64_t i = 0; i < n; ++i) y[i] = convert_to_odd(x[i]);
      return;
    }
    with_type(to_dtype, [&]<class To>(Type<To>) {
      To* y = reinterpret_cast<To*>(to);
      for (int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
    });
  });
}

// The rows of x and out, one after the other, each in blocks.
class Cast {
 public:
  Cast(const tenon_tensor* x, const tenon_tensor* out)
      : axes_(broadcast_axes(&x, 1, out)), x_(data_of<char>(x)), out_(data_of<char>(out)),
        from_(x->dtype), to_(out->dtype) {
    const int64_t from_size = kDtypeSize[from_], to_size = kDtypeSize[to_];
    streams_ = out->numel * (from_size + to_size) >= kStreamBytes && axes_.inner_stride(1) == to_size &&
               axes_.inner_extent() * to_size >= kStreamBlock && !is_reduced_float(to_);
  }

  void run(int64_t begin, int64_t end) const {
    Position position(axes_, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min({end - at, kBlock, position.left_in_row(axes_)});
      block(x_ + position.offset(axes_, 0), axes_.inner_stride(0),
            out_ + position.offset(axes_, 1), axes_.inner_stride(1), n);
      position.advance(axes_, n);
      at += n;
    }
    if (streams_) stream_end();
  }

 private:
  void block(const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n) const {
    alignas(64) char source[kBlock * 16], target[kBlock * 16];
    const int from_size = kDtypeSize[from_], to_size = kDtypeSize[to_];
    const bool from_reduced = is_reduced_float(from_), to_reduced = is_reduced_float(to_);
    const char* dense = x;
    if (from_reduced) {
      widen(from_, x, x_stride, reinterpret_cast<float*>(source), n);
      dense = source;
    } else if (x_stride != from_size) {
      copy_row(source, from_size, x, x_stride, n, from_size);
      dense = source;
    }
    if (from_reduced && to_reduced) {  // float32 holds all of them exactly
      narrow(to_, reinterpret_cast<const float*>(dense), out, out_stride, n);
      return;
    }
    const bool direct = !to_reduced && out_stride == to_size && !streams_;
    convert_block(from_reduced ? TENON_DTYPE_F32 : from_, dense, to_, to_reduced,
                  direct ? out : target, n);
    if (to_reduced) {
      narrow(to_, reinterpret_cast<const float*>(target), out, out_stride, n);
    } else if (streams_) {
      stream_copy(out, target, n * to_size);
    } else if (!direct) {
      copy_row(out, out_stride, target, to_size, n, to_size);
    }
  }

  Axes axes_;
  const char* x_;
  char* out_;
  int from_, to_;
  bool streams_;
};

tenon_status cast(tenon_ctx*, const tenon_tensor* x, int32_t, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  const Cast work(x, out);
  parallel(out->numel, 2, [&](int64_t begin, int64_t end) { work.run(begin, end); });
  return TENON_OK;
}
TENON_BOX_cast(cast_boxed, cast)

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_cast(cast, nullptr, kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

KernelList cast_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
