// SPDX-License-Identifier: Apache-2.0
// One thing that the kit asks of a plugin.
#pragma once

#include <string_view>
#include <vector>

namespace tenon::kit {

class Session;

struct Check {
  const char* id;       // "memory.overlap": family, then name
  const char* asserts;  // what a plugin that passes does
  const char* section;  // where tenon/abi.h says so
  const char* hint;     // how to fix it, where a failure does not say it better
  const char* needs;    // checks that must pass for this one to mean anything, separated by spaces
  void (*run)(Session&);  // NULL: fails by what was seen during the others
};

inline std::string_view family_of(std::string_view id) { return id.substr(0, id.find('.')); }

using Checks = std::vector<Check>;

// In the order in which they run: what others build on comes first.
const Checks& all_checks();

// Families, one file each in checks/.
const Checks& static_checks();
const Checks& lifecycle_checks();
const Checks& skew_checks();
const Checks& fault_checks();
const Checks& memory_checks();
const Checks& async_checks();
const Checks& pool_checks();
const Checks& graph_checks();
const Checks& profile_checks();
const Checks& collective_checks();
const Checks& exchange_checks();
const Checks& ipc_checks();
const Checks& quiesce_checks();
const Checks& compile_checks();
const Checks& subgraph_checks();
const Checks& operator_checks();
const Checks& result_checks();
const Checks& launch_checks();
const Checks& kernel_stream_checks();
const Checks& leak_checks();
const Checks& gradient_checks();
const Checks& thread_checks();
const Checks& performance_checks();
const Checks& process_checks();

}  // namespace tenon::kit
