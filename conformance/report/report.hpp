// SPDX-License-Identifier: Apache-2.0
// What the kit found, for people and for programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/result.hpp"
#include "harness/runner.hpp"
#include "options.hpp"

namespace tenon::kit {

inline constexpr const char kKitVersion[] = "1.1";  // ABI epoch and revision that it checks

// The bring-up level that results amount to, and what keeps the next one away.
struct Level {
  int reached = -1;                  // -1: not even L0
  std::vector<std::string> missing;  // for the next level: "async.order failed"
};
Level judge_level(const std::vector<Result>& results);
std::string level_name(int level);  // "L2"; "none"

// Prints progress while checks run, one line for each family on a terminal.
std::unique_ptr<Progress> make_progress(bool verbose);
void print_summary(const Options&, const std::vector<Result>&, const Level&);

std::string to_json(const Options&, const std::vector<Result>&, const Level&);
std::string to_junit(const Options&, const std::vector<Result>&);

// Writes `<library>.level.json`. Returns the text of an error; empty if there was none.
std::string write_stamp(const Options&, const Level&);
std::string write_file(const std::string& path, const std::string& text);

}  // namespace tenon::kit
