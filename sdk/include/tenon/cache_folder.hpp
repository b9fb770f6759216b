// SPDX-License-Identifier: Apache-2.0
// Where a plugin keeps what it makes once for a user of a machine, such as compiled programs.
#pragma once

#include <stdlib.h>

#include <string>

namespace tenon {

// $XDG_CACHE_HOME/tenon/NAME, or ~/.cache/tenon/NAME; not made yet. "" where neither variable holds
// an absolute path, and in a process that runs with the rights of another user, which trusts no
// environment variable: then there is no cache.
inline std::string cache_folder(const std::string& name) {
  const char* cache = secure_getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/tenon/" + name;
  const char* home = secure_getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/tenon/" + name : std::string();
}

}  // namespace tenon
