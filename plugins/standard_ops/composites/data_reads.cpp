// SPDX-License-Identifier: Apache-2.0
#include "composites/data_reads.hpp"

#include <tenon/services/graph.h>

#include <atomic>
#include <cstddef>

namespace tenon::standard_ops {
namespace {

// NULL: no plugin records, or it is older than what is asked of it.
const tenon_graph_service_api* graph() {
  static constinit std::atomic<const tenon_graph_service_api*> known{nullptr};
  const auto* api = known.load(std::memory_order_acquire);
  if (api) return api;
  api = static_cast<const tenon_graph_service_api*>(
      host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
  constexpr size_t kNeeded = offsetof(tenon_graph_service_api, record_look) + sizeof(void*);
  if (!api || api->struct_size < kNeeded) return nullptr;
  known.store(api, std::memory_order_release);
  return api;
}

}  // namespace

bool is_recorded() { return graph() && graph()->is_recording(); }

tenon_status expect_readable(const char* op, const Tensor& x, const char* rest, tenon_err* err) {
  if (!x || !is_recorded()) return TENON_OK;
  return graph()->record_look(x.get(), ("`" + std::string(op) + "`").c_str(), rest, err);
}

bool has_elements(Scope& scope, const Tensor& x) {
  if (scope.ok() && x->flags & TENON_TENSOR_COMPOSED)
    scope.fail(TENON_UNSUPPORTED,
               "expected a tensor whose elements can be read, got one that is composed of others; "
               "use full_tensor() of a sharded one, to_dense() of a sparse one");
  return scope.ok();
}

}  // namespace tenon::standard_ops
