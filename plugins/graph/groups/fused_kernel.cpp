// SPDX-License-Identifier: Apache-2.0
#include "groups/fused_kernel.hpp"

#include <tenon/services/candidates.h>
#include <tenon/services/fusion.h>

#include <algorithm>

#include "groups/elementwise.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

// What one launch walks together (plugins/kernel_c), and the results that its operators have.
constexpr size_t kMaxTensors = 8, kMaxFusedResults = 4;
// Longer kernels gain little more, and finding out what they read takes time that grows with the square.
constexpr uint32_t kMaxSteps = 32;

template <class Api>
const Api* find_service(const char* name, uint32_t version) {
  return static_cast<const Api*>(host->service_find(name, version));
}
const tenon_fusion_api* fusion() {
  return find_service<tenon_fusion_api>(TENON_FUSION_SERVICE, TENON_FUSION_VERSION);
}
const tenon_candidates_api* candidates() {
  return find_service<tenon_candidates_api>(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION);
}

bool contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Types of arithmetic that one kernel has: float32 and what is computed as float32, or one other dtype. -1: any.
int32_t arithmetic_of(const Graph& graph, const Step& step) {
  int32_t dtype = -1;
  if (host->op_def(step.op)->flags & TENON_OP_CONVERT) return -1;
  for_each_operand(step, [&](ValueId id) { dtype = graph.values[id].dtype; });
  const bool is_float32 = dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
  return is_float32 ? int32_t{TENON_DTYPE_F32} : dtype;
}

}  // namespace

std::vector<GroupPtr> FusedKernel::find(const GroupContext& context, uint32_t begin, uint32_t end) {
  std::vector<GroupPtr> found;
  for (uint32_t i = begin; i < end;) {
    std::unique_ptr<FusedKernel> group(new FusedKernel(context.graph, i, end));
    for (uint32_t step = i; group->may_add(step); ++step) group->extend(context, step + 1);
    if (group->end() < i + 2) {
      ++i;
      continue;
    }
    i = group->end();
    found.push_back(std::move(group));
  }
  return found;
}

// The group ends there, if one kernel can have what it then reads and writes.
void FusedKernel::extend(const GroupContext& context, uint32_t end) {
  Interface seen;
  seen.operands = read_by(end);
  for (ValueId value : made_by(end))
    if (context.is_needed_after(value, end - 1)) seen.results.push_back(value);
  if (!fits(seen)) return;
  interface_ = std::move(seen);
  end_ = end;
}

bool FusedKernel::may_add(uint32_t index) {
  if (index >= limit_ || index - begin_ == kMaxSteps) return false;
  const Step& step = graph_->steps[index];
  if (!is_elementwise(step) || step.results.size() != 1) return false;
  const Type& type = graph_->values[step.results[0]];
  const Type& first = graph_->values[graph_->steps[begin_].results[0]];
  if (type.shape != first.shape || type.device != first.device) return false;
  if (index == begin_ && (element_count(type) == 0 || type.device == TENON_DEVICE_META ||
                          is_host_memory(type.device) || !compiles_source(type.device)))
    return false;
  for (const Operand& operand : step.operands)
    if (operand.kind == Operand::kList ||
        (operand.kind == Operand::kValue && graph_->values[operand.value].device != type.device))
      return false;
  const int32_t kind = arithmetic_of(*graph_, step);
  if (kind >= 0 && kind_ >= 0 && kind != kind_) return false;
  if (kind >= 0) kind_ = kind;
  return read_by(index + 1).size() < kMaxTensors;
}

std::vector<ValueId> FusedKernel::made_by(uint32_t end) const {
  std::vector<ValueId> made;
  for (uint32_t i = begin_; i < end; ++i) made.push_back(graph_->steps[i].results[0]);
  return made;
}

std::vector<ValueId> FusedKernel::read_by(uint32_t end) const {
  const std::vector<ValueId> made = made_by(end);
  std::vector<ValueId> read;
  for (uint32_t i = begin_; i < end; ++i)
    for_each_operand(graph_->steps[i], [&](ValueId value) {
      if (!contains(made, value) && !contains(read, value)) read.push_back(value);
    });
  return read;
}

bool FusedKernel::fits(const Interface& seen) const {
  if (seen.operands.empty() || seen.results.empty() || seen.results.size() > kMaxFusedResults ||
      seen.operands.size() + seen.results.size() > kMaxTensors)
    return false;
  return std::all_of(seen.results.begin(), seen.results.end(), [&](ValueId value) {
    return graph_->values[value].dtype == graph_->values[seen.results[0]].dtype;
  });
}

bool FusedKernel::makes_tensor(ValueId value) const { return contains(interface_.results, value); }

std::string FusedKernel::describe() const {
  const Type& type = graph_->values[graph_->steps[begin_].results[0]];
  int64_t bytes = 0;
  for (ValueId value : made_by(end_))
    if (!contains(interface_.results, value))
      bytes += element_count(type) * int64_t{host->dtype_size(graph_->values[value].dtype)};
  const size_t made = end_ - begin_;
  const std::string steps = steps_text() + ": ";
  const std::shared_ptr<const Decision> decision = decide();
  if (decision->program == 0)
    return steps + "one by one over " + type_text(type) + ": " + decision->reason;
  return steps + "one kernel over " + type_text(type) + "; " +
         std::to_string(made - interface_.results.size()) + " of " + std::to_string(made) +
         " results stay in registers (" + std::to_string(bytes >> 10) + " KiB)";
}

void FusedKernel::prepare(Decision& out) const {
  const tenon_calls_api* api = calls_with_pieces();
  if (!api || !fusion()) {
    out.reason = "the plugin kernel_c, which joins kernels, is not loaded";
    return;
  }
  const auto refuse = [&](tenon_status status, tenon_err* err) {
    out.reason = host->err_text(err);
    out.is_for_now = status == TENON_OUT_OF_MEMORY;
  };
  // Elementwise kernels are chosen by dtypes: 0-d tensors stand for all that is read and made.
  std::vector<tenon_tensor*> known(graph_->values.size());
  std::vector<Tensor> operands;
  const auto placeholder = [&](ValueId value, std::vector<Tensor>& owners) {
    const Type& type = graph_->values[value];
    ErrorSink err;
    if (const tenon_status status =
            host->tensor_create(type.device, type.dtype, 0, nullptr, &known[value], err);
        status != TENON_OK) {
      refuse(status, err);
      return false;
    }
    owners.push_back(Tensor::adopt(known[value]));
    return true;
  };
  for (ValueId value : interface_.operands)
    if (!placeholder(value, operands)) return;
  std::vector<Piecewise> decided;
  std::vector<std::vector<tenon_value>> arguments;
  std::vector<std::vector<int32_t>> sources;
  std::vector<tenon_fusion_step> steps;
  const std::vector<ValueId> made = made_by(end_);
  auto index_in = [](const std::vector<ValueId>& list, ValueId value) {
    return static_cast<int32_t>(std::find(list.begin(), list.end(), value) - list.begin());
  };
  for (uint32_t i = begin_; i < end_; ++i) {
    const Step& step = graph_->steps[i];
    const ValueId result = step.results[0];
    auto& args = arguments.emplace_back();
    auto& from = sources.emplace_back();
    for (const Operand& operand : step.operands) {
      args.push_back(operand.kind == Operand::kValue ? boxed(known[operand.value])
                                                     : operand.attribute.value());
      if (operand.kind != Operand::kValue) continue;
      from.push_back(contains(made, operand.value) ? -1 - index_in(made, operand.value)
                                                   : index_in(interface_.operands, operand.value));
    }
    decided.emplace_back(api->piecewise(step.op, args.data()));
    if (!decided.back()) {
      out.reason = "no kernel of `" + step.name.text() +
                   "` can be joined with others, or a layer wants to see its calls";
      return;
    }
    tenon_fusion_step fused = {
        .args = nullptr,
        .sources = from.data(),
        .nargs = static_cast<uint32_t>(args.size()),
        .dtype = graph_->values[result].dtype,
        .result = contains(interface_.results, result) ? index_in(interface_.results, result) : -1};
    fused.kernel = api->piecewise_kernel(decided.back().get(), &fused.args);
    steps.push_back(fused);
    if (!placeholder(result, out.placeholders)) return;
  }
  const auto nresults = static_cast<uint32_t>(interface_.results.size());
  int64_t program = 0;
  ErrorSink err;
  out.reason = "these calls do not fit into one kernel";
  if (const tenon_status status = fusion()->prepare(
          steps.data(), static_cast<uint32_t>(steps.size()),
          static_cast<uint32_t>(interface_.operands.size()), nresults, &program, err);
      status != TENON_OK)
    return refuse(status, err);
  out.op = fusion()->fused(nresults);
  out.program = out.op ? program : 0;
}

std::shared_ptr<const FusedKernel::Decision> FusedKernel::decide() const {
  const std::lock_guard lock(mutex_);
  const uint64_t generation = candidates() ? candidates()->generation() : 0;
  // Layers that want every call keep the placeholders' calls from being joined; no others do.
  const uint32_t layers = host->layers_every_call();
  if (decision_ && decision_->generation == generation && !decision_->is_for_now &&
      (decision_->program != 0 || decision_->layers == layers))
    return decision_;
  auto decision = std::make_shared<Decision>();
  decision->generation = generation;
  decision->layers = layers;
  prepare(*decision);
  return decision_ = std::move(decision);
}

bool FusedKernel::runs_as_one() const { return decide()->program != 0; }

bool FusedKernel::is_watched(const std::vector<tenon_tensor*>& values,
                             const Decision& decision) const {
  const bool has_bits = std::any_of(interface_.operands.begin(), interface_.operands.end(),
                                    [&](ValueId value) { return values[value]->layers != 0; });
  const uint32_t end = has_bits ? end_ : begin_ + 1;
  const auto tensor_of = [&](ValueId value, uint32_t step) {
    for (uint32_t i = begin_; i < step; ++i)
      if (graph_->steps[i].results[0] == value) return decision.placeholders[i - begin_].get();
    return values[value];
  };
  std::vector<tenon_value> args;
  for (uint32_t i = begin_; i < end; ++i) {
    const Step& step = graph_->steps[i];
    bool is_asked = i == begin_;  // a layer that wants every call wants this one
    args.clear();
    for (const Operand& operand : step.operands) {
      if (operand.kind != Operand::kValue) {
        args.push_back(operand.attribute.value());
        continue;
      }
      tenon_tensor* tensor = tensor_of(operand.value, i);
      args.push_back(boxed(tensor));
      is_asked |= tensor->layers != 0;
    }
    if (is_asked && !Piecewise(calls_with_pieces()->piecewise(step.op, args.data()))) return true;
  }
  return false;
}

Group::Outcome FusedKernel::run(std::vector<tenon_tensor*>& values) const {
  std::vector<tenon_tensor*> operands;
  for (ValueId value : interface_.operands) {
    if (!(values[value]->flags & TENON_TENSOR_CONTIGUOUS)) return Outcome::kDeclined;
    operands.push_back(values[value]);
  }
  const std::shared_ptr<const Decision> decision = decide();
  if (decision->program == 0 || is_watched(values, *decision)) return Outcome::kDeclined;
  tenon_value given[] = {boxed(operands.data(), operands.size()), boxed(decision->program)};
  tenon_value outs[kMaxFusedResults] = {};
  if (host->op_call(decision->op, given, 2, outs, static_cast<uint32_t>(interface_.results.size()),
                    nullptr) != TENON_OK)
    return Outcome::kDeclined;
  for (size_t i = 0; i < interface_.results.size(); ++i)
    values[interface_.results[i]] = static_cast<tenon_tensor*>(outs[i].v.p);
  return Outcome::kDone;
}

}  // namespace tenon::graph
