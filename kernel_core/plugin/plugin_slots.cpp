// SPDX-License-Identifier: Apache-2.0
// The loader as plugins and programs call it.
#include <new>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/loader.hpp"
#include "kernel_core/runtime/device.hpp"

namespace tenon::core {
namespace {

// The end of the C++ world: answers with a status whatever happens.
template <class Call>
tenon_status answer(tenon_err* err, Call&& call) noexcept {
  try {
    return report(call(), err);
  } catch (...) {
    return fail_escaped(err, "the plugin loader");
  }
}

// What device_find does about a kind that it does not know.
tenon_status load_device_kind(const char* kind, tenon_err* err) {
  tenon_err local;
  tenon_status status = answer(&local, [&] { return Loader::instance().load_device(kind); });
  if (status == TENON_OK) return TENON_OK;
  return fail(err, status, "device kind '%s' cannot be loaded: %s", kind, local.text.c_str());
}

// device_find belongs to a lower layer and knows the loader only through this pointer.
[[maybe_unused]] const bool is_hooked = [] {
  device_kind_loader.store(&load_device_kind, std::memory_order_release);
  return true;
}();

}  // namespace

namespace slots {

tenon_status plugin_load(const char* path, tenon_err* err) {
  return answer(err, [&] { return Loader::instance().load(path ? path : ""); });
}

tenon_status plugin_attach(const tenon_plugin* table, const char* origin, tenon_err* err) {
  return answer(err,
                [&] { return Loader::instance().attach(table, origin ? origin : "(attached)"); });
}

tenon_status plugin_unload(const char* name, tenon_err* err) {
  return answer(err, [&] { return Loader::instance().unload(name ? name : ""); });
}

tenon_status plugin_add_folder(const char* path, tenon_err* err) {
  return answer(err, [&] { return Loader::instance().add_folder(path ? path : ""); });
}

tenon_status plugin_load_default(tenon_err* err) {
  Loader& loader = Loader::instance();
  if (loader.is_default_loaded()) return TENON_OK;
  return answer(err, [&] { return loader.load_default(), accepted(); });
}

void plugin_describe(tenon_sink_fn sink, void* user) {
  JsonWriter json;
  if (answer(nullptr, [&] { return Loader::instance().describe(json), accepted(); }) == TENON_OK)
    sink(user, json.text().data(), json.text().size());
}

tenon_status plugin_allow_overrides(const char* name, int32_t allowed, tenon_err* err) {
  return answer(err, [&] { return Loader::instance().consent(name ? name : "", allowed); });
}

}  // namespace slots
}  // namespace tenon::core
