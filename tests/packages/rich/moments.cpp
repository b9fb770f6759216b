// SPDX-License-Identifier: Apache-2.0
// A shape rule in C++, and a kernel that reads every kind of parameter, by strides.
#include <rich/moments_cpu.hpp>
#include <tenon/ops/shapes.hpp>

namespace rich::operators {

tenon_status infer_moments(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t,
                           tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->ndim == 0)
    return tenon::shapes::fail(err, TENON_INVALID_ARGUMENT, "moments",
                               "expected at least one axis");
  for (int i = 0; i < 2; ++i) {
    outs[i].ndim = x->ndim - 1;
    for (int axis = 0; axis < x->ndim - 1; ++axis) outs[i].shape[axis] = x->shape[axis];
  }
  outs[0].dtype = x->dtype;
  outs[1].dtype = TENON_DTYPE_I64;
  return TENON_OK;
}

}  // namespace rich::operators

template <class T>
void rich::moments_cpu(KernelContext&, View<const T> x, TensorView weight,
                       std::span<const int64_t> scale, std::string_view mode, int32_t dtype,
                       View<T> mean, View<int64_t> count) {
  if (x.ndim() != 2) throw std::invalid_argument("expected a matrix");
  if (dtype >= 0 && dtype != x.dtype()) throw std::invalid_argument("dtype: expected that of x");
  const View<const T> weights = weight;  // checks its dtype, if there is one
  for (int64_t row = 0; row < x.shape(0); ++row) {
    T sum = 0;
    for (int64_t i = 0; i < x.shape(-1); ++i) sum += x(row, i) * (weights ? weights(i) : T{1});
    for (int64_t factor : scale) sum *= static_cast<T>(factor);
    mean(row) = mode == "sum" ? sum : sum / static_cast<T>(x.shape(-1));
    count(row) = x.shape(-1);
  }
}
