// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/types/json.hpp"

#include <cstdio>

namespace tenon::core {

void JsonWriter::begin(std::string_view key) {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
  if (key.empty()) return;
  quote(key);
  text_ += ':';
}

void JsonWriter::open(std::string_view key, char bracket) {
  begin(key);
  text_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      // Texts from plugins and paths need not be valid UTF-8; byte for byte they stay readable.
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      text_ += escaped;
    } else {
      text_ += static_cast<char>(c);
    }
  }
  text_ += '"';
}

void JsonWriter::string(std::string_view key, std::string_view text) {
  begin(key);
  quote(text);
}

void JsonWriter::boolean(std::string_view key, bool truth) {
  begin(key);
  text_ += truth ? "true" : "false";
}

void JsonWriter::number(std::string_view key, int64_t number) {
  begin(key);
  text_ += std::to_string(number);
}

void JsonWriter::strings(std::string_view key, const std::vector<std::string>& texts) {
  array(key, [&] {
    for (const std::string& text : texts) string("", text);
  });
}

}  // namespace tenon::core
