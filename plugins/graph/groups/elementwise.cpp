// SPDX-License-Identifier: Apache-2.0
#include "groups/elementwise.hpp"

namespace tenon::graph {

bool is_elementwise(const Step& step) {
  constexpr uint32_t kPieces = TENON_OP_ELEMENTWISE | TENON_OP_CONVERT;
  constexpr uint32_t kWholes = TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_VIEW;
  if (step.kind != StepKind::kCall || step.given || step.results.empty()) return false;
  const uint32_t flags = host->op_def(step.op)->flags;
  return flags & kPieces && !(flags & kWholes);
}

bool is_elementwise_in_place(const Graph& graph, const Step& step) {
  if (step.kind != StepKind::kCall || step.results.size() != 1 || step.given != 1) return false;
  const tenon_op_def* def = host->op_def(step.op);
  constexpr uint32_t kOthers =
      TENON_OP_CONVERT | TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_VIEW;
  if (!(def->flags & TENON_OP_ELEMENTWISE) || def->flags & kOthers ||
      def->out_dtype != TENON_OUT_COMPUTE)
    return false;
  const Type& type = graph.values[step.results[0]];
  const bool is_float = type.dtype == TENON_DTYPE_F32 || type.dtype == TENON_DTYPE_F64 ||
                        type.dtype == TENON_DTYPE_F16 || type.dtype == TENON_DTYPE_BF16;
  int count = 0;
  bool fits = is_float;
  for_each_operand(step, [&](ValueId id) {
    count += id == step.results[0];
    fits = fits && graph.values[id].dtype == type.dtype;
  });
  return fits && count == 1;
}

bool is_host_memory(tenon_device_id device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  return host->device_info(device, &info, nullptr) == TENON_OK &&
         info.flags & TENON_DEVICE_HOST_MEMORY;
}

bool compiles_source(tenon_device_id device) {
  const void* table = nullptr;
  tenon_device handle = nullptr;
  if (host->device_group_borrow(device, TENON_GROUP_COMPILE, &table, &handle, nullptr) != TENON_OK)
    return false;
  host->device_group_return(device, TENON_GROUP_COMPILE);
  return true;
}

}  // namespace tenon::graph
