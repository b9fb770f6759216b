// SPDX-License-Identifier: Apache-2.0
#include "support/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace tenon::codegen {

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  return join(items, separator, [](const std::string& item) { return item; });
}

std::string fill(std::string_view text, Values values) {
  std::string result;
  while (true) {
    size_t begin = text.find('@');
    if (begin == std::string_view::npos) return result.append(text);
    size_t end = text.find('@', begin + 1);
    if (end == std::string_view::npos) throw std::logic_error(cat("template: lone @ in: ", text));
    std::string_view name = text.substr(begin + 1, end - begin - 1);
    auto value = std::find_if(values.begin(), values.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (value == values.end()) throw std::logic_error(cat("template: no value for @", name, "@"));
    result.append(text.substr(0, begin)).append(value->second);
    text.remove_prefix(end + 1);
  }
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      // Would start a trigraph.
      case '?':
        result += result.back() == '?' ? "\\?" : "?";
        break;
      default:
        result += c;
    }
  }
  return result + "\"";
}

std::string camel_case(std::string_view snake_case) {
  std::string result;
  bool up = true;
  for (char c : snake_case) {
    if (c == '_') {
      up = true;
      continue;
    }
    result += up ? static_cast<char>(std::toupper(c)) : c;
    up = false;
  }
  return result;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(c));
  return result;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> result;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

std::string hex64(uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::string stem(std::string_view path) {
  std::string name = base_name(path);
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace tenon::codegen
