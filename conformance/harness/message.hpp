// SPDX-License-Identifier: Apache-2.0
// Lines from a check's process to the kit: a letter, then fields separated by tabs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::kit {

inline constexpr char kStepMessage = 'S';     // what is being done
inline constexpr char kSubjectMessage = 'B';  // the operator that it is about
inline constexpr char kFailureMessage = 'F';  // subject, expected, got, fix; three empty: one more
inline constexpr char kAbsentMessage = 'A';   // why
inline constexpr char kFigureMessage = 'K';   // name, value, unit
inline constexpr char kNoteMessage = 'N';
inline constexpr char kWarningMessage = 'W';    // no failure, and always printed
inline constexpr char kOpenMessage = 'O';       // seconds on the way to an open device, or back
inline constexpr char kViolationMessage = 'V';  // check that it fails, expected, got, fix
inline constexpr char kDoneMessage = 'D';       // the check came to its end

struct Message {
  char kind = 0;
  std::vector<std::string> fields;

  std::string field(size_t i) const { return i < fields.size() ? fields[i] : std::string(); }
};

std::string encode(char kind, std::initializer_list<std::string> fields);
Message decode(std::string_view line);  // without the newline

}  // namespace tenon::kit
