// SPDX-License-Identifier: Apache-2.0
// What static initialisers of operator libraries registered, and what was wrong with it.
#pragma once

#include <paddle/phi/api/ext/op_meta_info.h>

#include <string>
#include <vector>

namespace tenon::paddle {

struct Fault {
  std::string library;
  std::string text;
};

// Faults since the last call.
std::vector<Fault> take_faults();
// Names of a library's operators, in order.
std::vector<std::string> registered_by(const std::string& library);
// A library is known by its path from now on, and not by the name that it had while its
// initialisers ran.
void rename_library(const std::string& opened_as, const std::string& path);
// Remove operators with their gradients: their library was refused or is replaced.
void forget(const std::vector<std::string>& names);

}  // namespace tenon::paddle
