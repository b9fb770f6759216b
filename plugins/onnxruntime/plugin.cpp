// SPDX-License-Identifier: Apache-2.0
// Plugin "onnxruntime": the claimer of this name (services/graph.h). It has no device, no operator and no kernel.
#include <tenon/services/graph.h>
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include "options.hpp"
#include "session.hpp"
#include "subgraph.hpp"

// What a program's user has chosen.
struct tenon_device_s {
  tenon::onnxruntime::Options options;
};

struct tenon_executable_s {
  tenon::onnxruntime::Executable session;
};

namespace tenon::onnxruntime {
namespace {

tenon_status open(const char* options, tenon_device* out, tenon_err* err) {
  return guarded(err, [&] {
    // Braces, as clang 14 makes no aggregate of arguments in parentheses.
    std::unique_ptr<tenon_device_s> made(new tenon_device_s{Options::parse(options)});
    check_providers(made->options);
    *out = made.release();
  });
}

void close(tenon_device claimer) { delete claimer; }

tenon_status claim(tenon_device claimer, const tenon_subgraph* offered, uint32_t* parts,
                   tenon_err* err) {
  return guarded(err, [&] { find_parts(*offered, claimer->options, parts); });
}

tenon_status executable_create(tenon_device claimer, const tenon_subgraph* graph,
                               tenon_executable* out, tenon_executable_info* info, tenon_err* err) {
  return guarded(err, [&] {
    *out = new tenon_executable_s{Executable(*graph, claimer->options)};
    info->flags = 0;
    info->workspace_bytes = 0;
  });
}

void executable_destroy(tenon_device, tenon_executable executable) { delete executable; }

tenon_status executable_run(tenon_device, const tenon_executable_request* request, tenon_err* err) {
  return guarded(err, [&] { request->executable->session.run(*request); });
}

constexpr tenon_subgraph_api kSubgraphs = {
    .struct_size = sizeof(tenon_subgraph_api),
    .reserved = 0,
    .claim = claim,
    .executable_create = executable_create,
    .executable_destroy = executable_destroy,
    .executable_run = executable_run,
};

constexpr tenon_graph_claimer_api kClaimer = {
    .struct_size = sizeof(tenon_graph_claimer_api),
    .version = TENON_GRAPH_CLAIMER_VERSION,
    .flags = 0,
    .reserved = 0,
    .open = open,
    .close = close,
    .subgraphs = &kSubgraphs,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register("onnxruntime" TENON_GRAPH_CLAIMER_SUFFIX,
                                TENON_GRAPH_CLAIMER_VERSION, &kClaimer, err);
}

// `stop` is absent: the library's threads may run until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "onnxruntime",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::onnxruntime

TENON_PLUGIN(tenon::onnxruntime::kPlugin)
