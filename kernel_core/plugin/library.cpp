// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/library.hpp"

#include <dlfcn.h>

namespace tenon::core {
namespace {

constexpr const char* kEntryPoint = "tenon_plugin_query";

Refusal refuse(Reason reason, std::string text, std::string fix) {
  return {Stage::kOpen, reason, std::move(text), std::move(fix)};
}

// Turn the dynamic loader's one line into a reason.
Refusal explain_failure(const std::string& path, const std::string& text) {
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

}  // namespace

Refusal Library::open(const std::string& path) {
  std::error_code error;
  ::dlerror();  // forget what others left
  library_.load(path, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (error || !library_.is_loaded()) {
    const char* text = ::dlerror();  // once: the second call returns NULL
    return explain_failure(path, text ? text : error.message());
  }
  if (!query_function())
    return refuse(Reason::kMissingSymbol, path + " does not export " + kEntryPoint,
                  "define it with TENON_PLUGIN(table) or TENON_EXPORT");
  return accepted();
}

tenon_plugin_query_fn Library::query_function() const {
  return reinterpret_cast<tenon_plugin_query_fn>(::dlsym(library_.native(), kEntryPoint));
}

bool Library::is_mapped(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}

}  // namespace tenon::core
