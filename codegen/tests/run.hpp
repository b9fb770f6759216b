// SPDX-License-Identifier: Apache-2.0
// Load and check operator files as the program does.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "check/check.hpp"
#include "load/load.hpp"

namespace tenon::codegen::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Loaded {
  Package package;
  std::vector<std::string> errors;
};

inline void load(const std::vector<std::string>& files, const std::vector<std::string>& imports,
                 Loaded& loaded) {
  for (const std::string& file : files) load_file(file, true, loaded.package, loaded.errors);
  for (const std::string& file : imports) load_file(file, false, loaded.package, loaded.errors);
  if (loaded.errors.empty()) check_package(loaded.package, loaded.errors);
}

}  // namespace tenon::codegen::testing
