// SPDX-License-Identifier: Apache-2.0
#include "following.hpp"

#include <tenon/tensor.hpp>

#include <string_view>

namespace tenon::cpu {
namespace {

constexpr uint32_t kMaxSteps = 8;

std::unordered_map<std::string_view, tenon_boxed_fn>& elementwise_kernels() {
  static std::unordered_map<std::string_view, tenon_boxed_fn> kernels;
  return kernels;
}

class Reader {
 public:
  Reader(SubgraphValues& values, const tenon_tensor* last) : values_(values), made_{last} {}

  // Whether a step belongs to those that follow; if so it is appended.
  bool read(const tenon_subgraph_step& step) {
    const tenon_boxed_fn kernel = elementwise_kernel(step);
    if (!kernel || step.nargs > FollowingSteps::kMaxOperands) return false;
    const tenon_tensor* out = step.outs[0];
    if (out->dtype != TENON_DTYPE_F32 || !have_one_shape(out, made_[0])) return false;
    FollowingStep following;
    following.run = kernel;
    const size_t others = others_.size();
    bool continues = false;
    for (uint32_t k = 0; k < step.nargs; ++k) {
      FollowingStep::Operand operand;
      if (!read_operand(step, k, operand)) {
        others_.resize(others);
        return false;
      }
      continues |= operand.kind == FollowingStep::Operand::kPlace;
      following.operands.push_back(operand);
    }
    if (!continues) {
      others_.resize(others);
      return false;
    }
    for (uint32_t k = 0; k < step.nargs; ++k)
      if (const tenon_tensor* tensor = tenon_arg_tensor(&step.args[k])) ++inside_[tensor];
    steps_.push_back(std::move(following));
    made_.push_back(out);
    others_after_.push_back(others_.size());
    return true;
  }

  // Whether nothing else reads what is made so far, but the last value.
  bool is_closed() {
    for (size_t i = 0; i + 1 < made_.size(); ++i)
      if (values_.uses(made_[i]) != inside_[made_[i]]) return false;
    return true;
  }

  size_t count() const { return steps_.size(); }

  // The first `count` steps, and where their values go. Nothing, if there are too few buffers.
  Following take(size_t count) {
    std::vector<uint32_t> place_of(count + 1, 0);
    std::vector<size_t> last_use(count + 1, 0);
    for (size_t k = 0; k < count; ++k)
      for (const FollowingStep::Operand& operand : steps_[k].operands)
        if (operand.kind == FollowingStep::Operand::kPlace) last_use[operand.index] = k;
    for (size_t k = 0; k < count; ++k) {
      uint32_t place = 0;
      const auto is_taken = [&](uint32_t at) {
        for (size_t i = 0; i <= k; ++i)
          if (place_of[i] == at && last_use[i] > k) return true;
        return false;
      };
      while (is_taken(place)) ++place;
      if (place > FollowingSteps::kMaxBuffers) return {};
      place_of[k + 1] = place;
    }
    Following following;
    if (count == 0 || place_of[count] != 0) return following;
    following.count = static_cast<uint32_t>(count);
    following.result = made_[count];
    following.others.assign(others_.begin(), others_.begin() + others_after_[count - 1]);
    following.steps.assign(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(count));
    for (size_t k = 0; k < count; ++k) {
      following.steps[k].to = place_of[k + 1];
      for (FollowingStep::Operand& operand : following.steps[k].operands)
        if (operand.kind == FollowingStep::Operand::kPlace) operand.index = place_of[operand.index];
    }
    return following;
  }

 private:
  bool read_operand(const tenon_subgraph_step& step, uint32_t index,
                    FollowingStep::Operand& operand) {
    const tenon_value& value = step.args[index];
    const tenon_tensor* tensor = tenon_arg_tensor(&value);
    if (!tensor) {
      operand.kind = FollowingStep::Operand::kAttribute;
      operand.attribute = value;
      return is_plain_attribute(step, index);
    }
    const auto made = std::find(made_.begin(), made_.end(), tensor);
    if (made != made_.end()) {
      operand.kind = FollowingStep::Operand::kPlace;
      operand.index = static_cast<uint32_t>(made - made_.begin());
      return true;
    }
    const tenon_tensor* constant =
        tensor->flags & TENON_TENSOR_HOST_SCALAR ? tensor : values_.constant(tensor);
    if (constant) {
      if (const std::optional<float> number = number_in(*constant)) {
        operand.kind = FollowingStep::Operand::kNumber;
        operand.number = *number;
        return true;
      }
    }
    if (tensor->dtype != TENON_DTYPE_F32 || !have_one_shape(tensor, made_[0])) return false;
    operand.kind = FollowingStep::Operand::kOther;
    const auto known = std::find(others_.begin(), others_.end(), tensor);
    operand.index = static_cast<uint32_t>(known - others_.begin());
    if (known == others_.end()) others_.push_back(tensor);
    return others_.size() <= kMaxOthers;
  }

  SubgraphValues& values_;
  std::vector<const tenon_tensor*> made_;  // What they begin with, and the result of each step.
  std::vector<FollowingStep> steps_;       // Operands of the kind kPlace are indices of `made_`.
  std::vector<const tenon_tensor*> others_;
  std::vector<size_t> others_after_;
  std::unordered_map<const tenon_tensor*, uint32_t> inside_;
};

}  // namespace

void set_elementwise_kernels(const std::vector<tenon_kernel_def>& kernels) {
  constexpr uint32_t kElementwise = TENON_KERNEL_BROADCAST | TENON_KERNEL_HOST_SCALARS;
  auto& known = elementwise_kernels();
  known.clear();
  for (const tenon_kernel_def& kernel : kernels)
    if ((kernel.traits & kElementwise) == kElementwise && kernel.dtype_mask >> TENON_DTYPE_F32 & 1)
      known.emplace(kernel.op, kernel.boxed);
}

tenon_boxed_fn elementwise_kernel(const tenon_subgraph_step& step) {
  const tenon_op_def* def = host->op_def(step.op);
  constexpr uint32_t kOthers = TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_VIEW;
  if (!(def->flags & TENON_OP_ELEMENTWISE) || def->flags & kOthers || step.nouts != 1)
    return nullptr;
  const auto found = elementwise_kernels().find(def->name);
  return found == elementwise_kernels().end() ? nullptr : found->second;
}

std::optional<float> number_in(const tenon_tensor& tensor) {
  const bool is_scalar = tensor.flags & TENON_TENSOR_HOST_SCALAR;
  if (tensor.numel != 1 || !tensor.data || (!is_scalar && tensor.dtype != TENON_DTYPE_F32))
    return std::nullopt;
  switch (tensor.dtype) {
    case TENON_DTYPE_F32:
      return *static_cast<const float*>(tensor.data);
    case TENON_DTYPE_F64:
      return static_cast<float>(*static_cast<const double*>(tensor.data));
    case TENON_DTYPE_I64:
      return static_cast<float>(*static_cast<const int64_t*>(tensor.data));
    default:
      return std::nullopt;
  }
}

bool is_plain_attribute(const tenon_subgraph_step& step, uint32_t index) {
  const tenon_op_def* def = host->op_def(step.op);
  const auto* parameter = reinterpret_cast<const tenon_param_def*>(
      reinterpret_cast<const char*>(def->params) + size_t{index} * def->param_size);
  const tenon_value& value = step.args[index];
  const bool is_plain = value.tag == TENON_VALUE_NONE || value.tag == TENON_VALUE_BOOL ||
                        value.tag == TENON_VALUE_INT || value.tag == TENON_VALUE_FLOAT;
  return is_plain && parameter->kind != TENON_PARAM_TENSOR;
}

Following find_following(SubgraphValues& values, uint32_t first, const tenon_tensor* last) {
  Reader reader(values, last);
  size_t closed = 0;
  const tenon_subgraph& graph = values.graph();
  for (uint32_t i = first; i < graph.nsteps && i - first < kMaxSteps; ++i) {
    if (!reader.read(step_at(graph, i))) break;
    if (reader.is_closed()) closed = reader.count();
  }
  return reader.take(closed);
}

}  // namespace tenon::cpu
