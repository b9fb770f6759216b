// SPDX-License-Identifier: Apache-2.0
// Small text helpers that every emitter uses.
#pragma once

#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <tenon/schema/words.hpp>
#include <utility>
#include <vector>

namespace tenon::codegen {

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <class Range, class Function>
std::string join(const Range& range, std::string_view separator, Function text_of) {
  std::string result;
  bool first = true;
  for (const auto& item : range) {
    if (!first) result += separator;
    first = false;
    result += text_of(item);
  }
  return result;
}
std::string join(const std::vector<std::string>& items, std::string_view separator);

// Replace every `@name@` of a template. A name without a value is a bug in the emitter: throws.
using Values = std::initializer_list<std::pair<std::string_view, std::string>>;
std::string fill(std::string_view text, Values values);

// A C string literal, quotes included.
std::string quoted(std::string_view text);

std::string camel_case(std::string_view snake_case);
std::string upper_case(std::string_view text);
std::string trimmed(std::string_view text);
std::vector<std::string> lines_of(std::string_view text);
std::string hex64(uint64_t value);
// "math.yaml" of "opdefs/math.yaml", and "math".
std::string base_name(std::string_view path);
std::string stem(std::string_view path);

using schema::did_you_mean;
using schema::fnv1a;
using schema::is_reserved_word;

}  // namespace tenon::codegen
