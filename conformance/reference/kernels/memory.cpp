// SPDX-License-Identifier: Apache-2.0
// cast and clone: the two kernels that the host itself leans on.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bodies.hpp"
#include "kernels.hpp"
#include "launch.hpp"

namespace reference {
namespace {

// Every element passes through one of three types, which hold all of its values exactly.
template <class T>
using Wide = std::conditional_t<is_floating<T>, double,
                                std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;

// Out of range and NaN give some integer, but nothing undefined.
template <class T, class W>
T convert(W value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (is_half<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<W>) {
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= low)) return std::numeric_limits<T>::min();
    return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

auto strided_copy(const tenon_tensor* x, const tenon_tensor* out) {
  return [source = View(x), target = View(out),
          size = static_cast<int64_t>(tenon::host->dtype_size(x->dtype))] {
    Walk from, to;
    for (int64_t i = 0; i < target.numel; ++i) {
      std::memcpy(static_cast<char*>(target.data) + to.offset * size,
                  static_cast<const char*>(source.data) + from.offset * size,
                  static_cast<size_t>(size));
      from.step(source.ndim, source.shape.data(), source.strides.data());
      to.step(target.ndim, target.shape.data(), target.strides.data());
    }
  };
}

}  // namespace

tenon_status cast(tenon_ctx* ctx, const tenon_tensor* x, int32_t, tenon_tensor* out,
                  tenon_err* err) {
  return launch(
      ctx, "cast", err,
      [from = x->data, to = out->data, n = out->numel, source = x->dtype, target = out->dtype] {
        with_type(source, [&]<class S>(Type<S>) {
          constexpr int64_t kBlock = 256;  // two short loops instead of one for every pair of types
          Wide<S> block[kBlock];
          for (int64_t begin = 0; begin < n; begin += kBlock) {
            const int64_t count = std::min(kBlock, n - begin);
            const S* in = static_cast<const S*>(from) + begin;
            for (int64_t i = 0; i < count; ++i)
              block[i] = static_cast<Wide<S>>(static_cast<Compute<S>>(in[i]));
            with_type(target, [&]<class T>(Type<T>) {
              T* result = static_cast<T*>(to) + begin;
              for (int64_t i = 0; i < count; ++i) result[i] = convert<T>(block[i]);
            });
          }
        });
      });
}

Body copy_body(const tenon_tensor* x, const tenon_tensor* out) { return strided_copy(x, out); }

// Reads and writes any strides: with this one kernel the host makes any tensor dense on the device,
// and writes into any view. It moves bytes, so it takes any dtype.
tenon_status clone(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  return launch(ctx, "clone", err, strided_copy(x, out));
}

}  // namespace reference
