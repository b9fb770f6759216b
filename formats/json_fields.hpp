// SPDX-License-Identifier: Apache-2.0
// Reads a little JSON: one object of strings, booleans and lists of strings. Other values are legal
// and skipped, so that newer writers may add members.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct JsonFields {
  std::map<std::string, std::string, std::less<>> strings;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;
  std::map<std::string, bool, std::less<>> flags;
};

// False if `text` is not one JSON object.
bool parse_json_fields(std::string_view text, JsonFields& fields);

}  // namespace tenon
