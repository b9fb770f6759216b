// SPDX-License-Identifier: Apache-2.0
// The command line.
#pragma once

#include <string>
#include <vector>

namespace tenon::kit {

struct Options {
  std::string plugin;             // real path
  std::vector<std::string> only;  // patterns like async.*
  std::string json, junit;        // files to write; "-": standard output
  int level = -1;                 // required; -1: any level passes
  double time_limit = 60;         // seconds for each step of a check
  bool stamp = false, list = false, verbose = false;
};

enum class Parsed { kRun, kDone, kError };

// kDone: help or version was printed. kError: what is wrong was printed.
Parsed parse_options(int count, char** arguments, Options& options);

// Does `id` fit one of the patterns? No patterns: everything does.
bool is_selected(const std::string& id, const std::vector<std::string>& patterns);

}  // namespace tenon::kit
