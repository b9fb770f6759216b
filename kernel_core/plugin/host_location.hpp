// SPDX-License-Identifier: Apache-2.0
// Where the host library lies: the folders beside it hold its own plugins, and who may change it is
// the measure for whom a plugin's file may be changed by.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tenon::core {

struct HostLocation {
  std::string library;  // real path; empty if it cannot be found out
  std::string folder;
  uid_t owner = 0;
  bool is_group_writable = false;
  gid_t group = 0;

  bool is_below(const std::string& folder) const;  // does the library lie somewhere under `folder`?
};

// Found once.
const HostLocation& host_location();

// Existing folders with the host's own plugins.
std::vector<std::string> own_plugin_folders();
// A user who can change a file there can change the host as well.
bool is_in_own_folder(const std::string& path);

}  // namespace tenon::core
