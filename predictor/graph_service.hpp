// SPDX-License-Identifier: Apache-2.0
// The graph service as this library needs it.
#pragma once

#include <tenon/services/graph.h>

#include <string>

namespace tenon::predictor {

// Throws Error where the plugin is not loaded, or is older than this library.
const tenon_graph_service_api& graph_service();

// tenon_sink_fn: appends to the std::string that is `user`.
void append_to_string(void* user, const char* text, uint64_t bytes);

}  // namespace tenon::predictor
