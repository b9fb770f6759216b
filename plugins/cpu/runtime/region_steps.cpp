// SPDX-License-Identifier: Apache-2.0
#include "region_steps.hpp"

#include "following.hpp"

#include <algorithm>

namespace tenon::cpu {
namespace {

const NhwcFunctions* nhwc_functions = nullptr;

// With fewer pixels mean() adds up channels side by side, in another order.
constexpr int64_t kMinMeanPixels = 32;

// Whether a list says the last two of four axes.
bool is_height_and_width(const tenon_value& axis) {
  if (axis.tag != TENON_VALUE_INTS || axis.aux != 2) return false;
  const auto* numbers = static_cast<const int64_t*>(axis.v.p);
  const int64_t a = numbers[0] < 0 ? numbers[0] + 4 : numbers[0];
  const int64_t b = numbers[1] < 0 ? numbers[1] + 4 : numbers[1];
  return std::min(a, b) == 2 && std::max(a, b) == 3;
}

// Whether a tensor has one element for each channel of [N, C, H, W].
bool is_by_channel(const tenon_tensor& tensor, int64_t channels) {
  if (tensor.numel != channels || tensor.ndim < 3 || tensor.ndim > 4) return false;
  return tensor.shape[tensor.ndim - 3] == channels;
}

}  // namespace

void set_nhwc_functions(const NhwcFunctions* functions) { nhwc_functions = functions; }
const NhwcFunctions& nhwc() { return *nhwc_functions; }

std::optional<uint32_t> RegionSteps::value_of(const tenon_tensor* tensor) const {
  const auto found = known_values_.find(tensor);
  return found == known_values_.end() ? std::nullopt : std::optional(found->second);
}

bool RegionSteps::add(const tenon_subgraph_step& step) {
  const size_t before = values_.size();
  RegionStep read_step;
  if (step.nouts == 1 && step.outs[0]->dtype == TENON_DTYPE_F32 && read(step, read_step)) {
    convolutions_ += read_step.kind == RegionStep::kConv;
    steps_.push_back(std::move(read_step));
    return true;
  }
  for (size_t i = before; i < values_.size(); ++i) known_values_.erase(values_[i].tensor);
  values_.resize(before);
  return false;
}

std::optional<uint32_t> RegionSteps::use(const tenon_tensor* tensor, RegionStep& step) {
  if (!tensor) return std::nullopt;
  std::optional<uint32_t> value = value_of(tensor);
  if (!value) {
    if (!is_float32(tensor, 4) || tensor->numel == 0 || constants_.constant(tensor) ||
        tensor->flags & TENON_TENSOR_HOST_SCALAR)
      return std::nullopt;
    value = static_cast<uint32_t>(values_.size());
    const int64_t* shape = tensor->shape;
    values_.push_back({tensor, shape[0], shape[1], shape[2], shape[3], true});
    known_values_.emplace(tensor, *value);
  }
  step.inputs.push_back(*value);
  return value;
}

bool RegionSteps::make(const tenon_tensor* tensor, int64_t batch, int64_t channels, int64_t height,
                       int64_t width, RegionStep& step) {
  step.out = static_cast<uint32_t>(values_.size());
  values_.push_back({tensor, batch, channels, height, width, false});
  return known_values_.emplace(tensor, step.out).second;
}

bool RegionSteps::read(const tenon_subgraph_step& step, RegionStep& out) {
  const tenon_tensor* made = step.outs[0];
  const tenon_tensor* first = step.nargs > 0 ? tenon_arg_tensor(&step.args[0]) : nullptr;
  if (step.op == known_.mean) return read_mean(step, out);
  if (step.op == known_.max_pool || step.op == known_.avg_pool) return read_pool(step, out);
  if (step.op == known_.concat) return read_concat(step, out);
  if (read_conv(constants_, known_, step, out.conv, out.tensors)) {
    out.kind = RegionStep::kConv;
    if (nhwc().input(out.conv) == NhwcInput::kNone || !use(out.tensors.x, out)) return false;
  } else if (is_float32(first, 4) &&
             read_norm(constants_, known_, step, first, first->shape[1], out.tensors)) {
    out.kind = RegionStep::kNorm;
    if (!use(first, out)) return false;
  } else {
    return read_kernel(step, out);
  }
  return make(made, made->shape[0], made->shape[1], made->shape[2], made->shape[3], out);
}

bool RegionSteps::read_mean(const tenon_subgraph_step& step, RegionStep& out) {
  out.kind = RegionStep::kMean;
  if (step.nargs < 3 || !is_height_and_width(step.args[1])) return false;
  const std::optional<uint32_t> x = use(tenon_arg_tensor(&step.args[0]), out);
  if (!x) return false;
  const RegionValue of = values_[*x];
  if (of.pixels() < kMinMeanPixels || of.pixels() > kMaxMeanPixels || of.batch * of.channels == 1)
    return false;
  return make(step.outs[0], of.batch, of.channels, 1, 1, out);
}

// The arguments of max_pool2d and avg_pool2d differ behind the padding.
bool RegionSteps::read_pool(const tenon_subgraph_step& step, RegionStep& out) {
  const bool is_average = step.op == known_.avg_pool;
  out.kind = is_average ? RegionStep::kAverage : RegionStep::kMaximum;
  const tenon_tensor *x = tenon_arg_tensor(&step.args[0]), *made = step.outs[0];
  PoolDescription& d = out.pool;
  if (step.nargs < (is_average ? 6 : 5) || !is_float32(x, 4) ||
      !read_pair(step.args[1], d.kernel) || !read_pair(step.args[3], d.padding))
    return false;
  if (is_average) {
    if (step.args[5].tag != TENON_VALUE_BOOL) return false;
    d.counts_padding = step.args[5].v.i != 0;
    d.dilation[0] = d.dilation[1] = 1;
  } else if (!read_pair(step.args[4], d.dilation)) {
    return false;
  }
  if (step.args[2].tag == TENON_VALUE_NONE)
    std::copy_n(d.kernel, 2, d.stride);
  else if (!read_pair(step.args[2], d.stride))
    return false;
  std::copy_n(x->shape + 2, 2, d.image);
  std::copy_n(made->shape + 2, 2, d.result);
  return use(x, out) &&
         make(made, made->shape[0], made->shape[1], made->shape[2], made->shape[3], out);
}

bool RegionSteps::read_concat(const tenon_subgraph_step& step, RegionStep& out) {
  out.kind = RegionStep::kConcat;
  const tenon_tensor* made = step.outs[0];
  const tenon_tensor* const* list = tenon_arg_tensors(&step.args[0]);
  if (!list || !is_float32(made, 4) || step.nargs < 2 || step.args[1].tag != TENON_VALUE_INT ||
      (step.args[1].v.i != 1 && step.args[1].v.i != -3))
    return false;
  for (uint64_t i = 0; i < step.args[0].aux; ++i)
    if (!use(list[i], out)) return false;
  return make(made, made->shape[0], made->shape[1], made->shape[2], made->shape[3], out);
}

bool RegionSteps::read_kernel(const tenon_subgraph_step& step, RegionStep& out) {
  out.kind = RegionStep::kKernel;
  out.kernel = elementwise_kernel(step);
  out.operation = step.op == known_.add        ? RegionStep::kAdd
                  : step.op == known_.multiply ? RegionStep::kMultiply
                  : step.op == known_.relu     ? RegionStep::kRelu
                                               : RegionStep::kOther;
  const tenon_tensor* made = step.outs[0];
  if (!out.kernel || made->ndim != 4 || step.nargs > kMaxKernelArguments) return false;
  bool has_image = false;
  for (uint32_t k = 0; k < step.nargs; ++k) {
    if (!read_operand(step, k, out)) return false;
    has_image |= out.operands.back().kind == RegionOperand::kValue;
  }
  return has_image &&
         make(made, made->shape[0], made->shape[1], made->shape[2], made->shape[3], out);
}

bool RegionSteps::read_operand(const tenon_subgraph_step& step, uint32_t index, RegionStep& out) {
  RegionOperand& operand = out.operands.emplace_back();
  const tenon_tensor* made = step.outs[0];
  const tenon_tensor* tensor = tenon_arg_tensor(&step.args[index]);
  if (!tensor) {
    operand.attribute = step.args[index];
    return is_plain_attribute(step, index);
  }
  const tenon_tensor* constant =
      tensor->flags & TENON_TENSOR_HOST_SCALAR ? tensor : constants_.constant(tensor);
  if (constant) {
    if (const std::optional<float> number = number_in(*constant)) {
      operand.kind = RegionOperand::kNumber;
      operand.number = *number;
      return true;
    }
    operand.kind = RegionOperand::kConstant;
    operand.constant = constant;
    return constant->dtype == TENON_DTYPE_F32 && is_by_channel(*constant, made->shape[1]);
  }
  // A mean without the axes of its pixels goes with the last axes of an image.
  if (!is_float32(tensor, 4)) return false;
  const std::optional<uint32_t> value = use(tensor, out);
  if (!value) return false;
  const RegionValue& of = values_[*value];
  const int64_t* shape = made->shape;
  if (of.batch != shape[0] || of.channels != shape[1]) return false;
  operand.value = *value;
  operand.kind =
      of.height == shape[2] && of.width == shape[3] ? RegionOperand::kValue : RegionOperand::kScale;
  return operand.kind == RegionOperand::kValue || of.pixels() == 1;
}

}  // namespace tenon::cpu
