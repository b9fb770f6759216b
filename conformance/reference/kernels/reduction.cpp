// SPDX-License-Identifier: Apache-2.0
// sum and cumsum. Booleans and integers add up in int64, floating types in double.
#include <vector>

#include "kernels.hpp"
#include "launch.hpp"

namespace reference {
namespace {

template <class T>
using Total = std::conditional_t<is_floating<T>, T, int64_t>;  // the result's type

template <class T>
Sum<T> widen(T value) {
  if constexpr (is_half<T>)
    return static_cast<float>(value);
  else
    return static_cast<Sum<T>>(value);
}
template <class T>
Total<T> narrow(Sum<T> value) {
  if constexpr (is_half<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<Total<T>>(value);
}

}  // namespace

tenon_status sum(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
                 int32_t, tenon_tensor* out, tenon_err* err) {
  View in(x);
  // Strides of the result as seen from the input's axes: 0 along those that are summed over.
  int64_t step = 1;
  for (int32_t d = in.ndim; d-- > 0;) {
    bool summed = axis == nullptr;
    for (uint64_t a = 0; a < axis_count; ++a) summed |= axis[a] == d || axis[a] + in.ndim == d;
    in.strides[static_cast<size_t>(d)] = summed ? 0 : step;
    if (!summed) step *= in.shape[static_cast<size_t>(d)];
  }
  return launch(ctx, "sum", err, [in, to = out->data, n = out->numel] {
    with_type(in.dtype, [&]<class T>(Type<T>) {
      std::vector<Sum<T>> totals(static_cast<size_t>(n));
      Walk walk;
      for (int64_t i = 0; i < in.numel; ++i) {
        totals[static_cast<size_t>(walk.offset)] += widen(static_cast<const T*>(in.data)[i]);
        walk.step(in.ndim, in.shape.data(), in.strides.data());
      }
      for (int64_t i = 0; i < n; ++i)
        static_cast<Total<T>*>(to)[i] = narrow<T>(totals[static_cast<size_t>(i)]);
    });
  });
}

tenon_status cumsum(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t reverse,
                    tenon_tensor* out, tenon_err* err) {
  int64_t length = 1, inner = 1;
  if (x->ndim > 0) {
    const int64_t at = axis < 0 ? axis + x->ndim : axis;
    length = x->shape[at];
    for (int64_t d = at + 1; d < x->ndim; ++d) inner *= x->shape[d];
  }
  return launch(
      ctx, "cumsum", err,
      [from = x->data, to = out->data, n = out->numel, dtype = x->dtype, length, inner, reverse] {
        with_type(dtype, [&]<class T>(Type<T>) {
          for (int64_t row = 0; row < n; row += length * inner)
            for (int64_t column = 0; column < inner; ++column) {
              Sum<T> total{};
              for (int64_t k = 0; k < length; ++k) {
                const int64_t i = row + column + (reverse ? length - 1 - k : k) * inner;
                total += widen(static_cast<const T*>(from)[i]);
                static_cast<Total<T>*>(to)[i] = narrow<T>(total);
              }
            }
        });
      });
}

}  // namespace reference
