// SPDX-License-Identifier: Apache-2.0
// The whole plugin at a glance: one service, two policies.
#include <tenon/services/policy.h>
#include <tenon/plugin.hpp>

#include <exception>
#include <string_view>

#include "crypto.hpp"
#include "evidence.hpp"
#include "policies.hpp"

namespace tenon::policy {
namespace {

tenon_status check_bytes(const char* name, const char* path, const char* bytes, uint64_t size,
                         tenon_err* err) {
  try {
    std::string_view policy = name;
    if (policy != "pinned" && policy != "signed")
      return fail(
          err, TENON_INVALID_ARGUMENT,
          "TENON_PLUGIN_POLICY: expected any, pinned or signed, got '" + std::string(policy) + "'");
    if (!has_crypto())
      return fail(err, TENON_UNAVAILABLE,
                  "TENON_PLUGIN_POLICY=" + std::string(policy) +
                      " needs libcrypto.so.3, which cannot be "
                      "loaded; install OpenSSL 3 (Debian: apt install libssl3)");
    const std::string_view contents(bytes, size);
    return policy == "pinned" ? check_pinned(path, contents, err)
                              : check_signed(path, contents, err);
  } catch (const std::exception& error) {
    return fail(err, TENON_INTERNAL, error.what());
  }
}

tenon_status check(const char* name, const char* path, tenon_err* err) {
  try {
    const std::string bytes = read_file(path);
    return check_bytes(name, path, bytes.data(), bytes.size(), err);
  } catch (const std::exception& error) {
    return fail(err, TENON_INTERNAL, error.what());
  }
}

constexpr tenon_policy_api kService = {.struct_size = sizeof(tenon_policy_api),
                                       .version = TENON_POLICY_VERSION,
                                       .check = check,
                                       .check_bytes = check_bytes};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_POLICY_SERVICE, TENON_POLICY_VERSION, &kService, err);
}

constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "policy",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::policy

TENON_PLUGIN(tenon::policy::kPlugin)
