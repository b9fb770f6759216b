// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include <functional>
#include <numeric>

namespace tenon::graph {

bool is_elementwise(const Step& step) {
  constexpr uint32_t kPieces = TENON_OP_ELEMENTWISE | TENON_OP_CONVERT;
  constexpr uint32_t kWholes = TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_VIEW;
  if (step.kind != StepKind::kCall || step.given || step.results.empty()) return false;
  const uint32_t flags = host->op_def(step.op)->flags;
  return flags & kPieces && !(flags & kWholes);
}

int64_t element_count(const Type& type) {
  return std::accumulate(type.shape.begin(), type.shape.end(), int64_t{1}, std::multiplies<>());
}

bool is_host_memory(tenon_device_id device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  return host->device_info(device, &info, nullptr) == TENON_OK &&
         info.flags & TENON_DEVICE_HOST_MEMORY;
}

}  // namespace tenon::graph
