// SPDX-License-Identifier: Apache-2.0
#include "subject/plugin.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <map>

#include "subject/device.hpp"
#include "subject/guarded.hpp"
#include "subject/process.hpp"
#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

// Loading runs code of the plugin, too: constructors of static objects, and what -ffast-math links.
WatchedFunction loading{"loading the library"}, asking{"tenon_plugin_query"},
    unloading{"unloading the library"};

}  // namespace

const tenon_host* real_host() {
  static const tenon_host* host = tenon_host_get(TENON_ABI_EPOCH);
  return host;
}

Error::Error() : err_(real_host()->err_create()) {}
Error::~Error() { real_host()->err_destroy(err_); }
std::string Error::text() const {
  const char* text = real_host()->err_text(err_);
  return text ? text : "";
}
void Error::clear() { real_host()->err_clear(err_); }

const char* status_name(tenon_status status) {
  static const char* const kNames[] = {"OK",
                                       "CANCELLED",
                                       "UNKNOWN",
                                       "INVALID_ARGUMENT",
                                       "DEADLINE_EXCEEDED",
                                       "NOT_FOUND",
                                       "ALREADY_EXISTS",
                                       "PERMISSION_DENIED",
                                       "OUT_OF_MEMORY",
                                       "FAILED_PRECONDITION",
                                       "ABORTED",
                                       "OUT_OF_RANGE",
                                       "UNSUPPORTED",
                                       "INTERNAL",
                                       "UNAVAILABLE",
                                       "DATA_LOSS",
                                       "UNAUTHENTICATED",
                                       "TYPE_MISMATCH"};
  return status >= 0 && status <= TENON_TYPE_MISMATCH ? kNames[status] : "no code of Tenon's";
}

std::string describe(tenon_status status, const Error& error) {
  std::string said = error.text();
  return text("code ", status, " (", status_name(status), ")", said.empty() ? "" : ": ", said);
}

void* Plugin::map(Session& session, const std::string& path) {
  session.step("dlopen");
  void* library = nullptr;
  {
    Watch watch(loading);
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    const char* reason = ::dlerror();
    session.require(false, "the system can load the library", reason ? reason : "no reason",
                    "link everything it needs, with -Wl,--no-undefined");
  }
  return library;
}

Plugin::Known& Plugin::known(const tenon_host* host) {
  static std::map<const tenon_host*, Known> known;
  return known[host];
}

Plugin::Plugin(Session& session, const tenon_host* host) : session_(session) {
  if (const Known& before = known(host); before.table) {
    library_ = before.library;
    table_ = before.table;
    devices_ = before.devices;
    return;
  }
  library_ = map(session, session.path());
  auto query = reinterpret_cast<tenon_plugin_query_fn>(::dlsym(library_, "tenon_plugin_query"));
  session.require(query, "the library exports tenon_plugin_query", "no such symbol",
                  "build it with tenon_add_plugin(), and mark the function TENON_EXPORT");
  session.step("tenon_plugin_query");
  Error error;
  const tenon_plugin* table = nullptr;
  const double start = now();
  {
    Watch watch(asking);
    table = query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, host, error);
  }
  session.opened(now() - start);
  session.require(table, "tenon_plugin_query returns a table", "NULL: " + error.text());
  table_ = guarded(*table);
  if (now() - start > kSlow || are_devices_shared()) known(host) = {library_, table_, devices_};
}

void Plugin::close() {
  session_.step("dlclose");
  {
    Watch watch(unloading);
    ::dlclose(library_);
  }
  for (const tenon_host* host : {real_host()})
    if (known(host).library == library_) known(host) = {};
  library_ = nullptr;
  table_ = nullptr;
}

bool Plugin::has_device() const {
  return table_->struct_size >= offsetof(tenon_plugin, device) + sizeof(void*) && table_->device;
}

const tenon_device_api& Plugin::api() const {
  if (!has_device())
    session_.absent("the plugin provides no device; operators are checked by tenon.testing");
  return *table_->device;
}

const char* Plugin::group_name(int number) {
  static const char* const kNames[] = {
#define TENON_KIT_GROUP_NAME(number, NAME, member, type) #member,
      TENON_DEVICE_GROUPS(TENON_KIT_GROUP_NAME)
#undef TENON_KIT_GROUP_NAME
  };
  return kNames[number];
}

const void* Plugin::find_group(int number) const {
  static const size_t kOffsets[] = {
#define TENON_KIT_GROUP_OFFSET(number, NAME, member, type) offsetof(tenon_device_api, member),
      TENON_DEVICE_GROUPS(TENON_KIT_GROUP_OFFSET)
#undef TENON_KIT_GROUP_OFFSET
  };
  const tenon_device_api& device = api();
  if (device.struct_size < kOffsets[number] + sizeof(void*)) return nullptr;
  const void* table;
  std::memcpy(&table, reinterpret_cast<const char*>(&device) + kOffsets[number], sizeof table);
  return table;
}

}  // namespace tenon::kit
