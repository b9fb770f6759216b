// SPDX-License-Identifier: Apache-2.0
#include "conv_steps.hpp"

#include <algorithm>

namespace tenon::cpu {
namespace {

// A vector of the filters' constants, or nothing.
bool read_constant(const SubgraphValues& values, const tenon_value& value, int64_t filters,
                   const tenon_tensor** out) {
  *out = nullptr;
  if (value.tag == TENON_VALUE_NONE) return true;
  const tenon_tensor* tensor = tenon_arg_tensor(&value);
  if (!is_float32(tensor, 1) || tensor->shape[0] != filters || !values.constant(tensor))
    return false;
  *out = tensor;
  return true;
}

const float* data_of(const SubgraphValues& values, const tenon_tensor* value) {
  return value ? static_cast<const float*>(values.constant(value)->data) : nullptr;
}

uint32_t version_of(const SubgraphValues& values, const tenon_tensor* value) {
  return value ? host->tensor_version(values.constant(value)) : 0;
}

}  // namespace

bool read_pair(const tenon_value& value, int64_t (&pair)[2]) {
  if (value.tag != TENON_VALUE_INTS || value.aux < 1 || value.aux > 2) return false;
  const auto* numbers = static_cast<const int64_t*>(value.v.p);
  pair[0] = numbers[0];
  pair[1] = numbers[value.aux - 1];
  return true;
}

bool read_conv(const SubgraphValues& values, const KnownOperators& known,
               const tenon_subgraph_step& step, ConvDescription& d, ConvTensors& tensors) {
  if (step.op != known.conv2d || step.nargs < 7 || step.nouts != 1) return false;
  const tenon_tensor *x = tenon_arg_tensor(&step.args[0]),
                     *weight = tenon_arg_tensor(&step.args[1]);
  const tenon_tensor* out = step.outs[0];
  if (!is_float32(x, 4) || !is_float32(weight, 4) || !is_float32(out, 4) ||
      !values.constant(weight))
    return false;
  std::copy_n(x->shape, 4, d.image);
  std::copy_n(weight->shape, 4, d.weight);
  std::copy_n(out->shape, 4, d.result);
  tensors.x = x;
  tensors.weight = weight;
  d.groups = step.args[6].v.i;
  return step.args[6].tag == TENON_VALUE_INT &&
         read_constant(values, step.args[2], d.weight[0], &tensors.bias) &&
         read_pair(step.args[3], d.stride) && read_pair(step.args[4], d.padding) &&
         read_pair(step.args[5], d.dilation);
}

bool read_norm(const SubgraphValues& values, const KnownOperators& known,
               const tenon_subgraph_step& step, const tenon_tensor* x, int64_t channels,
               ConvTensors& tensors) {
  if (step.op != known.norm || step.nargs < 6 || tenon_arg_tensor(&step.args[0]) != x) return false;
  if (!read_constant(values, step.args[1], channels, &tensors.mean) || !tensors.mean ||
      !read_constant(values, step.args[2], channels, &tensors.var) || !tensors.var ||
      !read_constant(values, step.args[3], channels, &tensors.factor) ||
      !read_constant(values, step.args[4], channels, &tensors.shift) ||
      step.args[5].tag != TENON_VALUE_FLOAT)
    return false;
  tensors.eps = step.args[5].v.f;
  return true;
}

ConvConstants constants_of(const SubgraphValues& values, const ConvTensors& tensors) {
  return {.weight = data_of(values, tensors.weight),
          .bias = data_of(values, tensors.bias),
          .mean = data_of(values, tensors.mean),
          .var = data_of(values, tensors.var),
          .factor = data_of(values, tensors.factor),
          .shift = data_of(values, tensors.shift),
          .eps = static_cast<float>(tensors.eps),
          .weight_version = version_of(values, tensors.weight),
          .bias_version = version_of(values, tensors.bias)};
}

}  // namespace tenon::cpu
