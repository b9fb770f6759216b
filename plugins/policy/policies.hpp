// SPDX-License-Identifier: Apache-2.0
// The policies of this plugin, as tenon_policy_api::check wants them. Their callers have made sure
// that there is a libcrypto.
#pragma once

#include <tenon/tensor.hpp>

#include <string>
#include <string_view>

namespace tenon::policy {

// The lock lists the digest of the file's bytes.
tenon_status check_pinned(const std::string& path, std::string_view bytes, tenon_err* err);

// They are signed with one of the keys that the site trusts.
tenon_status check_signed(const std::string& path, std::string_view bytes, tenon_err* err);

}  // namespace tenon::policy
