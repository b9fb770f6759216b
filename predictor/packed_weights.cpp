// SPDX-License-Identifier: Apache-2.0
#include "packed_weights.hpp"

#include <tenon/services/packed_constants.h>
#include <tenon/error.hpp>

#include <set>

#include "graph_service.hpp"
#include "steps.hpp"

namespace tenon::predictor {

std::vector<const tenon_tensor*> weights_of(const tenon_graph_program* program) {
  std::vector<const tenon_tensor*> weights;
  for (uint32_t i = 0; i < graph_service().program_leaves(program); ++i) {
    const char* name;
    tenon_tensor* tensor;
    int32_t is_constant;
    const ErrorSink err;
    err.check(graph_service().program_leaf(program, i, &name, &tensor, &is_constant, err));
    if (tensor) weights.push_back(tensor);
  }
  return weights;
}

std::string packed_weights_text(const tenon_graph_program* program) {
  const auto* service = static_cast<const tenon_packed_constants_api*>(
      host->service_find(TENON_PACKED_CONSTANTS_SERVICE, TENON_PACKED_CONSTANTS_VERSION));
  if (!service) return "";
  struct Packed {
    std::set<const void*> weights;
    size_t count = 0, in_file = 0;
    uint64_t bytes = 0;
  } packed;
  for (const tenon_tensor* weight : weights_of(program)) packed.weights.insert(weight->data);
  service->each(
      [](void* user, const tenon_packed_constant* each) {
        auto& all = *static_cast<Packed*>(user);
        if (!all.weights.contains(each->source)) return;
        ++all.count;
        all.bytes += each->bytes;
        all.in_file += each->flags & TENON_PACKED_CONSTANT_GIVEN ? 1 : 0;
      },
      &packed);
  if (packed.count == 0) return "";
  return "packed weights: " + std::to_string(packed.count) + ", " + bytes_text(packed.bytes) +
         ", of which the file holds " + std::to_string(packed.in_file) + "\n";
}

}  // namespace tenon::predictor
