// SPDX-License-Identifier: Apache-2.0
// TENON_PLUGIN_POLICY: a question to a plugin beside the host, tenon/services/policy.h.
#include <tenon/services/policy.h>

#include <cstddef>
#include <cstdlib>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/host_location.hpp"
#include "kernel_core/plugin/library_search.hpp"
#include "kernel_core/plugin/loader.hpp"

namespace tenon::core {
namespace {

// Empty: none. secure_getenv: a set-user-id program takes no advice from its caller's environment.
std::string policy_for(const FileIdentity& file) {
  const char* policy = ::secure_getenv("TENON_PLUGIN_POLICY");
  // The host's own plugins are part of the host, which is not checked either.
  if (!policy || std::string_view(policy) == "any" || is_in_own_folder(file.path)) return {};
  return policy;
}

tenon_status ask(const tenon_policy_api* service, const std::string& policy,
                 const FileIdentity& file, std::string_view bytes, tenon_err* err) {
  if (!service)
    return fail(err, TENON_NOT_FOUND,
                "TENON_PLUGIN_POLICY=%s needs the plugin '%s' beside the host", policy.c_str(),
                kPolicyPlugin);
  return service->check_bytes(policy.c_str(), file.path.c_str(), bytes.data(), bytes.size(), err);
}

// Refused if the system would open a file under that name and not take the open library.
Refusal check_found(const std::string& name, const std::string& path, const Library& library) {
  if (Library::is_mapped(name)) return accepted();
  const std::string got = read_library_search(path, library.copy().descriptor()).name;
  const bool is_path = name.find('/') != name.npos;
  return {Stage::kOpen, Reason::kOpenFailed,
          "expected the name (DT_SONAME) '" + name + "' in " + path +
              ", as under a policy the system must find the copy of it that was examined by its "
              "name, got " +
              (got.empty() ? "none" : "'" + got + "'"),
          is_path ? "link what needs it with its name, without a folder, and RUNPATH $ORIGIN"
                  : "link it with -Wl,-soname," + name};
}

}  // namespace

// What the site demands of a file's bytes before it is opened. They are read once: a user who can
// change the file could otherwise put another in its place after it was examined.
Refusal Loader::check_policy(const FileIdentity& file, SealedCopy& copy) {
  const std::string policy = policy_for(file);
  if (policy.empty()) return accepted();
  auto refuse = [](Reason reason, std::string text) -> Refusal {
    return {Stage::kTrust, reason, std::move(text), ""};
  };
  SealedCopy made;
  std::string problem;
  if (!made.make(file.path, problem))
    return refuse(Reason::kCannotVerify, "TENON_PLUGIN_POLICY=" + policy + ": " + problem);
  add_known_folders();
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].manifest.name == kPolicyPlugin && is_in_own_folder(candidates_[i].file.path))
      (void)try_candidate(i);
  auto service = static_cast<const tenon_policy_api*>(
      slots::service_find(TENON_POLICY_SERVICE, TENON_POLICY_VERSION));
  tenon_err err;
  tenon_status status =
      guarded("policy", &err, [&] { return ask(service, policy, file, made.bytes(), &err); });
  if (status != TENON_OK)
    return refuse(status == TENON_DATA_LOSS         ? Reason::kNotPinned
                  : status == TENON_UNAUTHENTICATED ? Reason::kBadSignature
                                                    : Reason::kCannotVerify,
                  err.text);
  copy = std::move(made);
  return accepted();
}

// A library that is opened once those that it needs are.
struct Loader::Waiting {
  const std::string& path;
  const LibrarySearch& search;
  const Waiting* needed_by;

  // The file that the library brings along under that name; empty: none. Of variants for some
  // processors (glibc-hwcaps) there is none: the plain file, once opened, has their name.
  std::string find(const std::string& name) const {
    std::vector<std::string> folders = search.beside;
    if (!search.has_runpath)
      for (const Waiting* other = needed_by; other; other = other->needed_by)
        if (const LibrarySearch& theirs = other->search; !theirs.has_runpath)
          folders.insert(folders.end(), theirs.beside.begin(), theirs.beside.end());
    for (const std::string& file : find_library(name, folders))
      if (std::string found = real_path(file); !found.empty()) return found;
    return {};
  }

  // Each waits for the next: only the system, which opens files, could open one of them first.
  Refusal check_cycle(const std::string& found) const {
    std::string chain = found;
    for (const Waiting* other = this; other; other = other->needed_by) {
      chain = other->path + " needs " + chain;
      if (other->path == found)
        return {Stage::kOpen, Reason::kOpenFailed,
                "expected libraries that can be opened one after another, as a policy demands, got "
                "some that need each other: " +
                    chain,
                "link them into one library"};
    }
    return accepted();
  }
};

// The system finds a library that is mapped already by its name (DT_SONAME), without a folder. One
// that others have mapped serves all that need it, as it does without a policy.
Refusal Loader::open_companions(const std::string& path, const SealedCopy& copy,
                                std::vector<Library>& companions, const Waiting* needed_by) {
  if (!copy) return accepted();
  const LibrarySearch search = read_library_search(path, copy.descriptor());
  if (Refusal refusal = check_variables(path, search)) return refusal;
  const Waiting self{path, search, needed_by};
  for (const std::string& name : search.needed) {
    const std::string found = self.find(name);
    if (found.empty() || Library::is_mapped(name)) continue;
    if (Refusal refusal = self.check_cycle(found)) return refusal;
    FileIdentity file;
    SealedCopy examined;
    Refusal refusal = identify(found, file);
    if (!refusal) refusal = check_policy(file, examined);
    if (!refusal) refusal = open_companions(file.path, examined, companions, &self);
    Library library;
    if (std::string problem; !refusal && !library.open(file.path, std::move(examined), problem))
      refusal = explain_open_failure(file.path, problem);
    if (!refusal) refusal = check_found(name, found, library);
    if (refusal) {
      refusal.text += " (" + path + " brings it along)";
      return refusal;
    }
    companions.push_back(std::move(library));
  }
  return accepted();
}

}  // namespace tenon::core
