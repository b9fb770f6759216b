// SPDX-License-Identifier: Apache-2.0
// The libraries that a library needs, and the folders in which it makes the system look for them.
#pragma once

#include <string>
#include <vector>

namespace tenon::core {

struct LibrarySearch {
  std::vector<std::string> needed;   // names, as DT_NEEDED gives them
  std::vector<std::string> folders;  // of RPATH and RUNPATH, in order, with $ORIGIN replaced
  std::vector<std::string> beside;   // those of them that were given by $ORIGIN
};

// The file that the system finds for a needed name in these folders; empty: none of them has it.
std::string find_library(const std::string& name, const std::vector<std::string>& folders);

// What the library at `path` says; empty if the file is no library. `descriptor`: the file, if it is
// open already.
LibrarySearch read_library_search(const std::string& path, int descriptor = -1);

}  // namespace tenon::core
