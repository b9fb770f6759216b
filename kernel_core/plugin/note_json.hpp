// SPDX-License-Identifier: Apache-2.0
// The little JSON of a pre-load note: one object of strings, booleans and lists of strings. Other
// values are legal and skipped, so that newer SDKs may write more than this host reads.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::core {

struct NoteFields {
  std::map<std::string, std::string, std::less<>> strings;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;
  std::map<std::string, bool, std::less<>> flags;
};

// False if `text` is not one JSON object.
bool parse_note_json(std::string_view text, NoteFields& fields);

}  // namespace tenon::core
