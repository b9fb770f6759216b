// SPDX-License-Identifier: Apache-2.0
// Support for the generated plugin of an operator package, which is written by
// tenon_add_operators(); the build defines TENON_PACKAGE_NAME, TENON_PACKAGE_VERSION and
// TENON_PACKAGE_VENDOR.
#pragma once

#include <tenon/services/autograd.h>
#include <tenon/plugin.hpp>

namespace tenon {

// Hands gradient rules to the autograd service, from the plugin's start(). Operators load before
// services, so the service may have to be loaded now; where there is none, no gradients are
// computed. The rules stay for the life of the process.
inline tenon_status register_gradients(const tenon_grad_rule* rules, uint32_t count,
                                       tenon_err* err) {
  const auto find = [] {
    return static_cast<const tenon_autograd_api*>(
        host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  };
  const tenon_autograd_api* autograd = find();
  if (!autograd) {
    if (const tenon_status status = host->plugin_load_default(err); status != TENON_OK)
      return status;
    autograd = find();
  }
  if (!autograd) return TENON_OK;
  for (uint32_t i = 0; i < count; ++i)
    if (const tenon_status status = autograd->rule_register(&rules[i], err); status != TENON_OK)
      return status;
  return TENON_OK;
}

}  // namespace tenon
