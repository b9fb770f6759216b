// SPDX-License-Identifier: Apache-2.0
// The whole plugin at a glance: one service.
#include <tenon/services/interpreter.h>
#include <tenon/plugin.hpp>

#include <exception>
#include <new>

#include "operator_file.hpp"

namespace tenon::interpreter {
namespace {

tenon_status load(const char* const* paths, uint32_t npaths, tenon_sink_fn defined, void* user,
                  tenon_err* err) try {
  std::vector<std::string> names;
  const tenon_status status = load_files({paths, paths + npaths}, names, err);
  if (status == TENON_OK && defined)
    for (const std::string& name : names) defined(user, name.data(), name.size());
  return status;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
} catch (const std::exception& error) {
  return fail(err, TENON_INTERNAL, error.what());
}

constexpr tenon_interpreter_api kService = {
    .struct_size = sizeof(tenon_interpreter_api),
    .version = TENON_INTERPRETER_VERSION,
    .load = load,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_INTERPRETER_SERVICE, TENON_INTERPRETER_VERSION, &kService,
                                err);
}

// `stop` is absent: operators that are defined, and recorded calls of them, run in here.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "interpreter",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::interpreter

TENON_PLUGIN(tenon::interpreter::kPlugin)
