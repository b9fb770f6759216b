// SPDX-License-Identifier: Apache-2.0
#include "ir/describe_step.hpp"

#include <algorithm>
#include <optional>

namespace tenon::graph {
namespace {

// As the dispatcher finds the dtype of a call; numbers, which are weak, do not count.
int32_t compute_dtype(const Graph& graph, const Step& step) {
  std::optional<int32_t> dtype;
  const tenon_op_def* def = step.op ? host->op_def(step.op) : nullptr;
  const uint8_t rule = def ? def->compute : uint8_t{TENON_COMPUTE_FIRST};
  auto take = [&](ValueId id) {
    const int32_t other = graph.values[id].dtype;
    if (!dtype)
      dtype = other;
    else if (rule == TENON_COMPUTE_PROMOTE || rule == TENON_COMPUTE_PROMOTE_FLOAT)
      dtype = host->dtype_promote(*dtype, other);
  };
  if (rule != TENON_COMPUTE_OUTPUT)
    for (uint32_t i = 0; i < step.operands.size(); ++i) {
      const Operand& operand = step.operands[i];
      const bool takes_part = rule == TENON_COMPUTE_FIRST ||
                              (i < def->nparams && def->params[i].flags & TENON_PARAM_FLAG_PROMOTE);
      if (!takes_part) continue;
      if (operand.kind == Operand::kValue) take(operand.value);
      if (operand.kind == Operand::kList)
        std::for_each(operand.list.begin(), operand.list.end(), take);
    }
  if (!dtype && !step.results.empty()) dtype = graph.values[step.results[0]].dtype;
  if (!dtype) return TENON_DTYPE_F32;
  // Only bool and integers promote with float16 to that.
  const bool is_integer =
      *dtype != TENON_DTYPE_F16 && host->dtype_promote(*dtype, TENON_DTYPE_F16) == TENON_DTYPE_F16;
  return rule == TENON_COMPUTE_PROMOTE_FLOAT && is_integer ? int32_t{TENON_DTYPE_F32} : *dtype;
}

}  // namespace

tenon_graph_step describe_step(const Graph& graph, const Step& step, int32_t depth) {
  tenon_graph_step filled = {};
  filled.kind = static_cast<int32_t>(step.kind);
  filled.op = step.op;
  filled.name = step_name(step);
  filled.file = step.location.file.c_str();
  filled.line = step.location.line;
  filled.noperands = static_cast<uint32_t>(step.operands.size());
  filled.nresults = static_cast<uint32_t>(step.results.size());
  filled.given = step.given;
  filled.is_recorded = step.is_recorded;
  filled.depth = depth;
  filled.device = TENON_DEVICE_NONE;
  for (size_t i = step.results.size(); i-- > 0;)
    filled.device = graph.values[step.results[i]].device;
  bool has_operand = false;
  for_each_operand(step, [&](ValueId id) {
    if (!has_operand) filled.device = graph.values[id].device;
    has_operand = true;
  });
  filled.dtype = compute_dtype(graph, step);
  const bool makes_memory = step.kind != StepKind::kView && step.kind != StepKind::kDetach &&
                            !(step.op && host->op_def(step.op)->flags & TENON_OP_VIEW);
  for (size_t i = 0; makes_memory && i < step.results.size(); ++i) {
    if (is_given(step, i)) continue;
    const Type& type = graph.values[step.results[i]];
    uint64_t bytes = host->dtype_size(type.dtype);
    for (int64_t extent : type.shape) bytes *= static_cast<uint64_t>(extent);
    filled.bytes += bytes;
  }
  return filled;
}

void for_each_step(const Graph& graph, const std::function<void(const tenon_graph_step&)>& visit,
                   int32_t depth) {
  for (const Step& step : graph.steps) {
    visit(describe_step(graph, step, depth));
    for (const Graph& region : step.regions) for_each_step(region, visit, depth + 1);
  }
}

}  // namespace tenon::graph
