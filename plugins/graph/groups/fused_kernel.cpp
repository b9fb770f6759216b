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

// Bit i: layer i is on. One of them may have kept a call from being joined with others.
uint32_t layers_of_thread() {
  uint32_t layers = 0;
  for (int32_t layer = 0; layer < 32; ++layer)
    layers |= static_cast<uint32_t>(host->layer_enabled(layer) != 0) << layer;
  return layers;
}

}  // namespace

bool FusedGroup::may_add(uint32_t index) {
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

std::vector<ValueId> FusedGroup::made_by(uint32_t end) const {
  std::vector<ValueId> made;
  for (uint32_t i = begin_; i < end; ++i) made.push_back(graph_->steps[i].results[0]);
  return made;
}

std::vector<ValueId> FusedGroup::read_by(uint32_t end) const {
  const std::vector<ValueId> made = made_by(end);
  std::vector<ValueId> read;
  for (uint32_t i = begin_; i < end; ++i)
    for_each_operand(graph_->steps[i], [&](ValueId value) {
      if (!contains(made, value) && !contains(read, value)) read.push_back(value);
    });
  return read;
}

bool FusedGroup::fits(const Interface& seen) const {
  if (seen.operands.empty() || seen.results.empty() || seen.results.size() > kMaxFusedResults ||
      seen.operands.size() + seen.results.size() > kMaxTensors)
    return false;
  return std::all_of(seen.results.begin(), seen.results.end(), [&](ValueId value) {
    return graph_->values[value].dtype == graph_->values[seen.results[0]].dtype;
  });
}

bool FusedGroup::makes_tensor(ValueId value) const { return contains(best_.results, value); }

std::string FusedGroup::text() const {
  const Type& type = graph_->values[graph_->steps[begin_].results[0]];
  int64_t bytes = 0;
  for (ValueId value : made_by(end_))
    if (!contains(best_.results, value))
      bytes += element_count(type) * int64_t{host->dtype_size(graph_->values[value].dtype)};
  const size_t made = end_ - begin_;
  const std::string steps =
      "steps " + std::to_string(begin_) + " to " + std::to_string(end_ - 1) + ": ";
  const std::shared_ptr<const Decision> decision = decide();
  if (decision->program == 0)
    return steps + "one by one over " + type_text(type) + ": " + decision->reason;
  return steps + "one kernel over " + type_text(type) + "; " +
         std::to_string(made - best_.results.size()) + " of " + std::to_string(made) +
         " results stay in registers (" + std::to_string(bytes >> 10) + " KiB)";
}

void FusedGroup::prepare(Decision& out) const {
  const tenon_calls_api* api = calls_with_pieces();
  if (!api || !fusion()) {
    out.reason = "the plugin kernel_c, which joins kernels, is not loaded";
    return;
  }
  // Elementwise kernels are chosen by dtypes: 0-d tensors stand for all that is read and made.
  std::vector<tenon_tensor*> known(graph_->values.size());
  std::vector<Tensor> operands;
  const auto stand_in = [&](ValueId value, std::vector<Tensor>& owners) {
    const Type& type = graph_->values[value];
    ErrorSink err;
    if (host->tensor_create(type.device, type.dtype, 0, nullptr, &known[value], err) != TENON_OK) {
      out.reason = host->err_text(err);
      return false;
    }
    owners.push_back(Tensor::adopt(known[value]));
    return true;
  };
  for (ValueId value : best_.operands)
    if (!stand_in(value, operands)) return;
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
                                                   : index_in(best_.operands, operand.value));
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
        .result = contains(best_.results, result) ? index_in(best_.results, result) : -1};
    fused.kernel = api->piecewise_kernel(decided.back().get(), &fused.args);
    steps.push_back(fused);
    if (!stand_in(result, out.stand_ins)) return;
  }
  const auto nresults = static_cast<uint32_t>(best_.results.size());
  int64_t program = 0;
  ErrorSink err;
  out.reason = "these calls do not fit into one kernel";
  if (fusion()->prepare(steps.data(), static_cast<uint32_t>(steps.size()),
                        static_cast<uint32_t>(best_.operands.size()), nresults, &program,
                        err) != TENON_OK) {
    out.reason = host->err_text(err);
    return;
  }
  out.op = fusion()->fused(nresults);
  out.program = out.op ? program : 0;
}

std::shared_ptr<const FusedGroup::Decision> FusedGroup::decide() const {
  std::lock_guard lock(prepared_->mutex);
  const uint64_t generation = candidates() ? candidates()->generation() : 0;
  const std::shared_ptr<const Decision>& known = prepared_->decision;
  if (known && known->generation == generation &&
      (known->program != 0 || known->layers == layers_of_thread()))
    return known;
  auto decision = std::make_shared<Decision>();
  decision->generation = generation;
  decision->layers = layers_of_thread();
  prepare(*decision);
  return prepared_->decision = std::move(decision);
}

bool FusedGroup::runs_as_one() const { return decide()->program != 0; }

bool FusedGroup::is_watched(const std::vector<tenon_tensor*>& values,
                            const Decision& decision) const {
  const bool has_bits = std::any_of(best_.operands.begin(), best_.operands.end(),
                                    [&](ValueId value) { return values[value]->layers != 0; });
  const uint32_t end = has_bits ? end_ : begin_ + 1;
  std::vector<tenon_tensor*> known = values;
  for (uint32_t i = begin_; i < end; ++i) {
    const Step& step = graph_->steps[i];
    bool is_asked = i == begin_;  // a layer that wants every call wants this one
    std::vector<tenon_value> args;
    for (const Operand& operand : step.operands) {
      if (operand.kind != Operand::kValue) {
        args.push_back(operand.attribute.value());
        continue;
      }
      args.push_back(boxed(known[operand.value]));
      is_asked |= known[operand.value]->layers != 0;
    }
    if (is_asked && !Piecewise(calls_with_pieces()->piecewise(step.op, args.data()))) return true;
    known[step.results[0]] = decision.stand_ins[i - begin_].get();
  }
  return false;
}

bool FusedGroup::run(std::vector<tenon_tensor*>& values, bool* /*is_broken*/) const {
  std::vector<tenon_tensor*> operands;
  for (ValueId value : best_.operands) {
    if (!(values[value]->flags & TENON_TENSOR_CONTIGUOUS)) return false;
    operands.push_back(values[value]);
  }
  const std::shared_ptr<const Decision> decision = decide();
  if (decision->program == 0 || is_watched(values, *decision)) return false;
  const int64_t program = decision->program;
  const tenon_op* op = decision->op;
  tenon_value given[] = {boxed(operands.data(), operands.size()), boxed(program)};
  tenon_value outs[kMaxFusedResults] = {};
  if (host->op_call(op, given, 2, outs, static_cast<uint32_t>(best_.results.size()), nullptr) !=
      TENON_OK)
    return false;
  for (size_t i = 0; i < best_.results.size(); ++i)
    values[best_.results[i]] = static_cast<tenon_tensor*>(outs[i].v.p);
  return true;
}

}  // namespace tenon::graph
