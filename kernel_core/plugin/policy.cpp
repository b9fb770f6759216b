// SPDX-License-Identifier: Apache-2.0
// TENON_PLUGIN_POLICY: a question to a plugin beside the host, tenon/services/policy.h.
#include <tenon/services/policy.h>

#include <cstdlib>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/plugin/guarded.hpp"
#include "kernel_core/plugin/host_location.hpp"
#include "kernel_core/plugin/loader.hpp"

namespace tenon::core {

// What the site demands of a file's bytes before it is opened. The host's own plugins are part of
// the host, which is not checked either.
Refusal Loader::check_policy(const FileIdentity& file) {
  const char* policy = ::secure_getenv("TENON_PLUGIN_POLICY");
  if (!policy || !*policy || std::string_view(policy) == "any" || is_in_own_folder(file.path))
    return accepted();
  add_known_folders();
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].manifest.name == kPolicyPlugin && is_in_own_folder(candidates_[i].file.path))
      (void)try_candidate(i);
  const void* service = slots::service_find(TENON_POLICY_SERVICE, TENON_POLICY_VERSION);
  tenon_err err;
  tenon_status status = guarded("policy", &err, [&] {
    if (service)
      return static_cast<const tenon_policy_api*>(service)->check(policy, file.path.c_str(), &err);
    return fail(&err, TENON_NOT_FOUND,
                "TENON_PLUGIN_POLICY=%s needs the plugin '%s' beside the host", policy,
                kPolicyPlugin);
  });
  if (status == TENON_OK) return accepted();
  Reason reason = status == TENON_DATA_LOSS         ? Reason::kNotPinned
                  : status == TENON_UNAUTHENTICATED ? Reason::kBadSignature
                                                    : Reason::kCannotVerify;
  return {Stage::kTrust, reason, err.text, ""};
}

}  // namespace tenon::core
