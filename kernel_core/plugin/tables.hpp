// SPDX-License-Identifier: Apache-2.0
// Fifth stage: the tables that tenon_plugin_query returned, read once, checked member by member,
// and copied into the host's own layout. Nothing behind this stage touches a plugin's layout again.
#pragma once

#include <memory>
#include <vector>

#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/plugin/note.hpp"
#include "kernel_core/plugin/refusal.hpp"

namespace tenon::core {

struct Tables {
  tenon_plugin plugin;  // `device`, `ops` and `kernels` inside still point into the plugin
  tenon_device_api device;
  // The device's optional groups; `device` points at those that it has.
#define TENON_GROUP_TABLE(number, NAME, member, type) type member;
  TENON_DEVICE_GROUPS(TENON_GROUP_TABLE)
#undef TENON_GROUP_TABLE
  std::vector<tenon_op_def> ops;  // their `params` point into `params`
  std::vector<std::unique_ptr<tenon_param_def[]>> params;
  std::vector<tenon_kernel_def> kernels;

  bool has_device() const { return plugin.device != nullptr; }
  // Built with a later revision of the ABI: bits that are unknown here may be meant.
  bool is_newer() const { return plugin.revision > TENON_ABI_REVISION; }
  PluginTable registry_view() const;
};

// Fills `tables`, which must not move afterwards, from what the plugin returned.
Refusal check_tables(const tenon_plugin* returned, const Manifest& manifest, Tables& tables);

// Parts of it, each in its own file.
Refusal check_device(const Manifest& manifest, Tables& tables);
Refusal check_operators(const Manifest& manifest, Tables& tables);
Refusal check_kernels(const Manifest& manifest, Tables& tables);

// What they share.
inline constexpr uint32_t kMaxTableEntries = 1000000;
Refusal refuse_table(const Manifest& manifest, const std::string& what, std::string fix = "");
// count, element size and pointer of one array agree
Refusal check_array(const Manifest& manifest, const char* name, const void* array, uint32_t count,
                    uint32_t element_size, size_t mandatory);
// Masks of dtypes: no bit past the table's last column; one for a dtype that this host does not
// know only in a plugin that is newer than it, and then it is taken out.
bool accept_dtype_mask(const Tables& tables, uint64_t& mask);

}  // namespace tenon::core
