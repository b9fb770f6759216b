// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <utility>

namespace tenon::core {
namespace {

constexpr const char* kEntryPoint = "tenon_plugin_query";

Refusal refuse(Reason reason, std::string text, std::string fix) {
  return {Stage::kOpen, reason, std::move(text), std::move(fix)};
}

}  // namespace

Refusal explain_open_failure(const std::string& path, const std::string& text) {
  constexpr std::string_view kAbsent = ": cannot open shared object file: No such file";
  if (size_t at = text.find(kAbsent); at != text.npos)
    return refuse(Reason::kMissingDep,
                  path + " needs the library " + text.substr(0, at) + ", which is not found",
                  "install it, or put it beside the plugin and link that with RUNPATH $ORIGIN; "
                  "`tenon plugins doctor " +
                      path + "` lists all that are missing");
  constexpr std::string_view kUndefined = "undefined symbol: ";
  if (size_t at = text.find(kUndefined); at != text.npos) {
    std::string symbol = text.substr(at + kUndefined.size());
    symbol = symbol.substr(0, symbol.find_first_of(", ("));
    return refuse(Reason::kMissingSymbol,
                  path + " uses the symbol '" + symbol + "', which no library provides",
                  "link the plugin with -Wl,--no-undefined and the library that defines it");
  }
  return refuse(Reason::kOpenFailed, "the system cannot load " + path + ": " + text, "");
}

Library::Library(Library&& other) noexcept { *this = std::move(other); }

Library& Library::operator=(Library&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(copy_, other.copy_);
  std::swap(opened_as_, other.opened_as_);
  std::swap(shown_name_, other.shown_name_);
  std::swap(system_name_, other.system_name_);
  return *this;
}

bool Library::open(const std::string& path, SealedCopy copy, std::string& problem,
                   Binding binding) {
  copy_ = std::move(copy);
  opened_as_ = copy_ ? copy_.path() : path;
  ::dlerror();  // forget what others left
  handle_ =
      ::dlopen(opened_as_.c_str(), (binding == Binding::kNow ? RTLD_NOW : RTLD_LAZY) | RTLD_LOCAL);
  if (!handle_) {
    const char* text = ::dlerror();  // once: the second call returns NULL
    problem = text ? text : "no reason given";
    return false;
  }
  link_map* map = nullptr;
  if (copy_ && ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map) {
    shown_name_ = std::make_unique<std::string>(path);
    system_name_ = std::exchange(map->l_name, shown_name_->data());
  }
  return true;
}

Refusal Library::check_entry_point(const std::string& path) const {
  if (query_function()) return accepted();
  return refuse(Reason::kMissingSymbol, path + " does not export " + kEntryPoint,
                "define it with TENON_PLUGIN(table) or TENON_EXPORT");
}

void Library::close() {
  if (!handle_) return;
  link_map* map = nullptr;
  if (system_name_ && ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map)
    map->l_name = system_name_;
  ::dlclose(std::exchange(handle_, nullptr));
  system_name_ = nullptr;
  if (copy_ && is_mapped(opened_as_)) copy_.keep();
  copy_ = {};
}

tenon_plugin_query_fn Library::query_function() const {
  return reinterpret_cast<tenon_plugin_query_fn>(::dlsym(handle_, kEntryPoint));
}

bool Library::is_mapped(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}

}  // namespace tenon::core
