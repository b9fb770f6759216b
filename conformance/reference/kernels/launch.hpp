// SPDX-License-Identifier: Apache-2.0
// How a kernel gets onto the stream that it was called with. By the time it runs, the host's
// tensors are gone: what it needs of them is copied into the closure. Their memory stays, in stream
// order.
#pragma once

#include <array>
#include <utility>

#include "../runtime/device.hpp"
#include "numbers.hpp"

namespace reference {

template <class F>
tenon_status launch(tenon_ctx* ctx, const char* name, tenon_err* err, F&& body) {
  return enqueue(tenon::host->ctx_device(ctx), tenon::host->ctx_stream(ctx),
                 {TENON_PROFILE_KERNEL, name, 0,
                  [body = std::forward<F>(body)] {
                    body();
                    return Result{};
                  }},
                 err);
}

// A tensor by value.
struct View {
  void* data;
  uint8_t dtype;
  int32_t ndim;
  int64_t numel;
  std::array<int64_t, TENON_MAX_NDIM> shape, strides;

  explicit View(const tenon_tensor* t)
      : data(t->data), dtype(t->dtype), ndim(t->ndim), numel(t->numel) {
    for (int32_t d = 0; d < ndim; ++d) {
      const auto axis = static_cast<size_t>(d);
      shape[axis] = t->shape[d];
      strides[axis] = t->strides[d];
    }
  }
};

// A walk over `shape` in row-major order; `offset` follows `strides`, which may be 0 or negative.
struct Walk {
  int64_t offset = 0;
  std::array<int64_t, TENON_MAX_NDIM> index{};

  void step(int32_t ndim, const int64_t* shape, const int64_t* strides) {
    for (int32_t d = ndim; d-- > 0;) {
      const auto axis = static_cast<size_t>(d);
      offset += strides[d];
      if (++index[axis] < shape[d]) return;
      offset -= strides[d] * shape[d];
      index[axis] = 0;
    }
  }
};

}  // namespace reference
