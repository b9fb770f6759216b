// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include <cmath>
#include <cstring>

#include "bodies.hpp"
#include "kernels.hpp"

namespace reference {

namespace {

// Integers wrap, in the unsigned type of 64 bits; booleans add as `or` and multiply as `and`.
constexpr auto kAdd = []<class T>(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(a) + static_cast<uint64_t>(b);
  else
    return a + b;
};
constexpr auto kMultiply = []<class T>(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
  else
    return a * b;
};
// NaN if either is.
constexpr auto kMaximum = []<class T>(T a, T b) { return a > b || a != a ? a : b; };

auto exponentials(const tenon_tensor* x, const tenon_tensor* out) {
  return [from = x->data, to = out->data, n = out->numel, dtype = out->dtype] {
    with_type(dtype, [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        for (int64_t i = 0; i < n; ++i)
          static_cast<T*>(to)[i] =
              static_cast<T>(std::exp(static_cast<Compute<T>>(static_cast<const T*>(from)[i])));
      }
    });
  };
}

}  // namespace

Body add_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out) {
  return binary(x, y, out, kAdd);
}
Body multiply_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out) {
  return binary(x, y, out, kMultiply);
}
Body maximum_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out) {
  return binary(x, y, out, kMaximum);
}
Body exponential_body(const tenon_tensor* x, const tenon_tensor* out) {
  return exponentials(x, out);
}

tenon_status add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                 tenon_err* err) {
  return binary(ctx, "add", x, y, out, err, kAdd);
}
tenon_status multiply(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                      tenon_tensor* out, tenon_err* err) {
  return binary(ctx, "multiply", x, y, out, err, kMultiply);
}
tenon_status maximum(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                     tenon_tensor* out, tenon_err* err) {
  return binary(ctx, "maximum", x, y, out, err, kMaximum);
}
tenon_status exponential(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  return launch(ctx, "exp", err, exponentials(x, out));
}

// Moves elements, whatever they are.
tenon_status where(tenon_ctx* ctx, const tenon_tensor* condition, const tenon_tensor* x,
                   const tenon_tensor* y, tenon_tensor* out, tenon_err* err) {
  return launch(ctx, "where", err,
                [c = condition->data, a = x->data, b = y->data, o = out->data, n = out->numel,
                 size = static_cast<int64_t>(tenon::host->dtype_size(out->dtype))] {
                  for (int64_t i = 0; i < n; ++i) {
                    const void* from = static_cast<const uint8_t*>(c)[i] ? a : b;
                    std::memmove(static_cast<char*>(o) + i * size,
                                 static_cast<const char*>(from) + i * size,
                                 static_cast<size_t>(size));
                  }
                });
}

}  // namespace reference
