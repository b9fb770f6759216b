// SPDX-License-Identifier: Apache-2.0
// From a path to an attached plugin. Every refusal says why, and leaves the process as it was but
// for the library, which stays mapped: its code has run.
#include <dlfcn.h>
#include <tenon/compat/paddle.h>

#include <cstdlib>
#include <memory>

#include "core/library.hpp"
#include "device/plugin.hpp"

namespace tenon::paddle {
namespace {

struct Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<DevicePlugin>> plugins;
  // What a library registered while it was loaded, which happens once, by its handle.
  std::unordered_map<void*, std::vector<Registration>> registrations;
};
Loaded& loaded() {
  static auto* state = new Loaded;  // outlives the plugins, which stay to the end
  return *state;
}

std::string explain(const std::string& text) {
  if (text.find("undefined symbol") == std::string::npos) return text;
  if (text.find("_ZN3phi") != std::string::npos || text.find("_ZN6paddle") != std::string::npos ||
      text.find("_ZNK") != std::string::npos)
    return text +
           "; it uses PaddlePaddle's C++ interface (PD_REGISTER_PLUGIN_KERNEL, "
           "phi::CustomContext), of which "
           "only the C interface of paddle/phi/capi is supported";
  return text + "; libpaddle.so has no such function";
}

// The library's handle; its registrations are remembered by it. Throws what the dynamic linker
// says.
void* open_device_library(const std::string& path, uint32_t flags) {
  RegistrationScope scope;
  tenon_library library;
  try {
    library = open_library(path, flags);
  } catch (const Error& error) {
    if (error.code() != TENON_UNAVAILABLE) throw;
    throw Error(TENON_UNAVAILABLE, "the library cannot be opened: " + explain(error.what()));
  }
  if (std::string failure = take_failure(); !failure.empty()) throw Error(TENON_INTERNAL, failure);
  auto collected = scope.take();
  if (!collected.empty()) loaded().registrations[library.handle] = std::move(collected);
  return library.handle;
}

void load_device(const std::string& path, uint32_t flags) {
  std::lock_guard lock(loaded().mutex);
  for (const auto& plugin : loaded().plugins)
    if (plugin->path() == path) return;
  const auto slot = static_cast<uint32_t>(loaded().plugins.size());
  if (slot == kMaxPlugins)
    throw Error(TENON_OUT_OF_RANGE,
                "expected at most " + std::to_string(kMaxPlugins) + " device plugins of Paddle");
  void* handle = open_device_library(path, flags);
  const auto init = reinterpret_cast<InitPluginFn>(dlsym(handle, "InitPlugin"));
  if (!init)
    throw Error(TENON_NOT_FOUND,
                "it exports no InitPlugin, so it is no device plugin; kernels for devices of "
                "others and custom operators are loaded otherwise");
  auto plugin =
      std::make_unique<DevicePlugin>(run_init_plugin(init), path, loaded().registrations[handle]);
  for (const auto& other : loaded().plugins)
    if (other->kind() == plugin->kind())
      throw Error(TENON_ALREADY_EXISTS,
                  "device type '" + plugin->kind() + "' is already provided by " + other->path());
  plugin->start();
  plugin->attach(slot);
  loaded().plugins.push_back(std::move(plugin));
}

}  // namespace
}  // namespace tenon::paddle

using namespace tenon::paddle;

namespace {

tenon_status load(const char* path, uint32_t flags, tenon_err* err) {
  const tenon_status status = tenon::guarded(err, [&] {
    char* resolved = path ? realpath(path, nullptr) : nullptr;
    if (!resolved) throw Error(TENON_NOT_FOUND, "there is no such file");
    const std::string absolute = resolved;
    std::free(resolved);
    load_device(absolute, flags);
  });
  if (status != TENON_OK) {
    const std::string context =
        std::string("load Paddle device plugin ") + (path ? path : "(NULL)");
    tenon::host->err_context(err, context.data(), context.size());
  }
  return status;
}

tenon_status load_text(const char* path, uint32_t flags, tenon_sink_fn sink, void* user) {
  ErrorSink err;
  const tenon_status status = load(path, flags, err);
  if (status != TENON_OK) {
    const std::string_view text = tenon::host->err_text(err);
    sink(user, text.data(), text.size());
  }
  return status;
}

}  // namespace

tenon_status tenon_paddle_load_device(const char* path, tenon_err* err) {
  return load(path, 0, err);
}

tenon_status tenon_paddle_load_device_text(const char* path, tenon_sink_fn sink, void* user) {
  return load_text(path, 0, sink, user);
}

tenon_status tenon_paddle_load_found_device_text(const char* path, tenon_sink_fn sink, void* user) {
  return load_text(path, TENON_LIBRARY_FOUND, sink, user);
}

void tenon_paddle_describe(tenon_sink_fn sink, void* user) {
  std::lock_guard lock(loaded().mutex);
  tenon::JsonWriter json;
  json.array("", [&] {
    for (const auto& plugin : loaded().plugins) plugin->describe(json);
  });
  sink(user, json.text().data(), json.text().size());
}

void tenon_paddle_describe_kernel_table(tenon_sink_fn sink, void* user) {
  tenon::JsonWriter json;
  json.array("", [&] {
    for (const Row& row : kernel_rows())
      json.object("", [&] {
        json.string("kernel", row.kernel);
        json.string("operator", row.op->name);
        json.string("signature", row.op->signature);
        json.array("dtypes", [&] {
          for (int32_t dtype = 0; dtype < TENON_DTYPE_COUNT; ++dtype)
            if (row.dtypes >> dtype & 1) json.string("", tenon::host->dtype_name(dtype));
        });
      });
  });
  sink(user, json.text().data(), json.text().size());
}

extern "C" {
// What the events are is C++ of another build, so they are not read; see docs/paddle_compat.md.
PADDLE_API void profiler_add_runtime_trace_event(C_Profiler, void*) {}
PADDLE_API void profiler_add_device_trace_event(C_Profiler, void*) {}
}
