// SPDX-License-Identifier: Apache-2.0
// The libraries that a library needs, and the folders in which it makes the system look for them.
#pragma once

#include <string>
#include <vector>

namespace tenon::core {

struct LibrarySearch {
  std::vector<std::string> needed;   // names, as DT_NEEDED, DT_AUXILIARY and DT_FILTER give them
  std::vector<std::string> folders;  // all that the system looks into, with $ORIGIN replaced
  std::vector<std::string> beside;   // those that were given by $ORIGIN, without their variants
  // Names and folders with a variable other than a leading $ORIGIN, as they stand. What the system
  // replaces it by, as $LIB and $PLATFORM, is its own affair: these are in no list above.
  std::vector<std::string> variables;
  std::string name;  // DT_SONAME
  // Where there is none, RPATH gives the folders, and holds for what needed libraries need, too.
  bool has_runpath = false;
};

// Every file that the system may take for a needed name in these folders. It takes the first that
// it can use.
std::vector<std::string> find_library(const std::string& name,
                                      const std::vector<std::string>& folders);

// What the library at `path` says; empty if the file is no library. `descriptor`: the file, if it
// is open already.
LibrarySearch read_library_search(const std::string& path, int descriptor = -1);

}  // namespace tenon::core
