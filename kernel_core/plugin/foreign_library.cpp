// SPDX-License-Identifier: Apache-2.0
// The service "libraries": libraries of code that are no plugins, tenon/services/libraries.h.
#include "kernel_core/plugin/foreign_library.hpp"

#include <tenon/services/libraries.h>

#include <algorithm>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/loader.hpp"

namespace tenon::core {
namespace {

tenon_status open(const char* path, uint32_t flags, tenon_library* out, tenon_err* err) {
  constexpr uint32_t kKnown = TENON_LIBRARY_LAZY | TENON_LIBRARY_FOUND;
  if (!path || !out || flags & ~kKnown)
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "libraries.open: expected a path, a place for the result and flags of %u, got flags "
        "%u",
        kKnown, flags);
  return guarded(path, err, [&]() -> tenon_status {
    const Library* library = nullptr;
    Refusal refusal = Loader::instance().open_foreign(
        path, !(flags & TENON_LIBRARY_FOUND),
        flags & TENON_LIBRARY_LAZY ? Library::Binding::kLazily : Library::Binding::kNow, library);
    if (refusal) return report(refusal, err);
    *out = {.handle = library->handle(), .opened_as = library->opened_as().c_str()};
    return TENON_OK;
  });
}

constexpr tenon_libraries_api kService = {
    .struct_size = sizeof(tenon_libraries_api), .version = TENON_LIBRARIES_VERSION, .open = open};

}  // namespace

void register_libraries_service() {
  slots::service_register(TENON_LIBRARIES_SERVICE, TENON_LIBRARIES_VERSION, &kService, nullptr);
}

Refusal Loader::open_foreign(const std::string& path, bool is_named, Library::Binding binding,
                             const Library*& opened) {
  std::lock_guard lock(mutex_);
  Attempt attempt{.path = path};
  Library library;
  attempt.outcome = [&]() -> Refusal {
    FileIdentity file;
    if (Refusal refusal = identify(path, file)) return refusal;
    attempt.path = file.path;
    const Trust trust = is_named ? explicit_path_trust() : Trust::kStrict;
    if (Refusal refusal = check_trust(file, trust)) return refusal;
    SealedCopy copy;
    if (Refusal refusal = check_policy(file, copy)) return refusal;
    auto known = [&](auto&& is_same) {
      auto at = std::find_if(foreign_.begin(), foreign_.end(), is_same);
      if (at != foreign_.end()) opened = &at->second;
      return at != foreign_.end();
    };
    // The system knows a file that it has mapped by its name; copies have names of their own.
    if (copy && known([&](const auto& other) {
          return other.first == file.path && other.second.copy().bytes() == copy.bytes();
        }))
      return accepted();
    std::vector<Library> companions;
    if (Refusal refusal = open_companions(file.path, copy, companions)) return refusal;
    if (std::string problem; !library.open(file.path, std::move(copy), problem, binding))
      return {Stage::kOpen, Reason::kOpenFailed, problem, ""};
    if (known([&](const auto& other) { return other.second.handle() == library.handle(); }))
      return accepted();
    for (Library& companion : companions) foreign_.emplace_back("", std::move(companion));
    opened = &foreign_.emplace_back(file.path, std::move(library)).second;
    return accepted();
  }();
  return attempt.outcome ? record(std::move(attempt)) : accepted();
}

}  // namespace tenon::core
