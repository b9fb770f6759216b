// SPDX-License-Identifier: Apache-2.0
#include "graph_service.hpp"

#include <tenon/error.hpp>

#include <cstddef>

namespace tenon::predictor {

const tenon_graph_service_api& graph_service() {
  static const auto* const service = [] {
    const auto* found = static_cast<const tenon_graph_service_api*>(
        host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
    if (!found)
      throw Error(TENON_UNAVAILABLE,
                  "predictors need the plugin `graph`, which was not loaded; name its folder in "
                  "TENON_PLUGIN_PATH");
    if (found->struct_size < offsetof(tenon_graph_service_api, program_save) + sizeof(void*))
      throw Error(TENON_UNAVAILABLE,
                  "the plugin `graph` is older than libtenon_predictor; reinstall tenon");
    return found;
  }();
  return *service;
}

void append_to_string(void* user, const char* text, uint64_t bytes) {
  static_cast<std::string*>(user)->append(text, bytes);
}

}  // namespace tenon::predictor
