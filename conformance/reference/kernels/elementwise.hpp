// SPDX-License-Identifier: Apache-2.0
// The loops of elementwise kernels. The host has broadcast, converted and made dense all inputs.
#pragma once

#include "launch.hpp"

namespace reference {

// out[i] = f(x[i], y[i]), computed in Compute<T>.
template <class F>
auto binary(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out, F f) {
  return [a = x->data, b = y->data, o = out->data, n = out->numel, dtype = out->dtype, f] {
    with_type(dtype, [&]<class T>(Type<T>) {
      const T *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
      T* result = static_cast<T*>(o);
      for (int64_t i = 0; i < n; ++i)
        result[i] =
            static_cast<T>(f(static_cast<Compute<T>>(left[i]), static_cast<Compute<T>>(right[i])));
    });
  };
}
template <class F>
tenon_status binary(tenon_ctx* ctx, const char* name, const tenon_tensor* x, const tenon_tensor* y,
                    tenon_tensor* out, tenon_err* err, F f) {
  return launch(ctx, name, err, binary(x, y, out, f));
}

}  // namespace reference
