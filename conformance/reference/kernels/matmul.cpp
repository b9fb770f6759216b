// SPDX-License-Identifier: Apache-2.0
// The matrix product in its whole generality: vectors on either side, batches that broadcast.
#include <algorithm>
#include <vector>

#include "bodies.hpp"
#include "kernels.hpp"
#include "launch.hpp"

namespace reference {
namespace {

template <class T>
using Product =
    std::conditional_t<is_floating<T>, std::conditional_t<std::is_same_v<T, double>, double, float>,
                       uint64_t>;

// How far apart an operand's matrices lie, seen from the axes of the batch: 0 where it broadcasts.
std::array<int64_t, TENON_MAX_NDIM> batch_strides(const tenon_tensor* t, int32_t batch_ndim,
                                                  int64_t matrix) {
  std::array<int64_t, TENON_MAX_NDIM> strides{};
  int64_t step = matrix;
  for (int32_t d = t->ndim - 2, at = batch_ndim - 1; d-- > 0; --at) {
    strides[static_cast<size_t>(at)] = t->shape[d] == 1 ? 0 : step;
    step *= t->shape[d];
  }
  return strides;
}

auto product(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out) {
  const int64_t inner = x->shape[x->ndim - 1];
  const int64_t rows = x->ndim == 1 ? 1 : x->shape[x->ndim - 2];
  const int64_t columns = y->ndim == 1 ? 1 : y->shape[y->ndim - 1];
  const int32_t batch_ndim = std::max({x->ndim, y->ndim, 2}) - 2;  // leading axes of `out`
  return [=, x_data = x->data, y_data = y->data, result = View(out),
          x_step = batch_strides(x, batch_ndim, rows * inner),
          y_step = batch_strides(y, batch_ndim, inner * columns)] {
    with_type(result.dtype, [&]<class T>(Type<T>) {
      std::vector<Product<T>> line(static_cast<size_t>(columns));
      Walk left, right;
      for (int64_t done = 0; done < result.numel; done += rows * columns) {
        const T* a = static_cast<const T*>(x_data) + left.offset;
        const T* b = static_cast<const T*>(y_data) + right.offset;
        T* o = static_cast<T*>(result.data) + done;
        for (int64_t r = 0; r < rows; ++r, a += inner, o += columns) {
          std::fill(line.begin(), line.end(), Product<T>{});
          for (int64_t k = 0; k < inner; ++k) {
            const auto factor = static_cast<Product<T>>(static_cast<Compute<T>>(a[k]));
            for (int64_t c = 0; c < columns; ++c)
              line[static_cast<size_t>(c)] +=
                  factor * static_cast<Product<T>>(static_cast<Compute<T>>(b[k * columns + c]));
          }
          for (int64_t c = 0; c < columns; ++c)
            o[c] = static_cast<T>(static_cast<Compute<T>>(line[static_cast<size_t>(c)]));
        }
        left.step(batch_ndim, result.shape.data(), x_step.data());
        right.step(batch_ndim, result.shape.data(), y_step.data());
      }
    });
  };
}

}  // namespace

Body matmul_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out) {
  return product(x, y, out);
}

tenon_status matmul(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                    tenon_err* err) {
  return launch(ctx, "matmul", err, product(x, y, out));
}

}  // namespace reference
