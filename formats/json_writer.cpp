// SPDX-License-Identifier: Apache-2.0
#include "formats/json_writer.hpp"

#include <cstdio>

namespace tenon {

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

namespace {

// Bytes of the valid UTF-8 sequence that `text` starts with; 0 if it starts with none.
size_t utf8_length(std::string_view text) {
  unsigned char lead = static_cast<unsigned char>(text[0]);
  size_t length = lead < 0x80       ? 1
                  : lead >> 5 == 6  ? 2
                  : lead >> 4 == 14 ? 3
                  : lead >> 3 == 30 ? 4
                                    : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    unsigned char c = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(c);
    } else if (c < 0x20 || length == 0) {
      // Texts from plugins and paths need not be valid UTF-8; a stray byte stays readable.
      char escaped[7];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      text_ += escaped;
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length ? length : 1);
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

void JsonWriter::fraction(std::string_view key, double fraction) {
  begin(key);
  char text[32];
  text_.append(text, static_cast<size_t>(std::snprintf(text, sizeof text, "%.4f", fraction)));
}

void JsonWriter::strings(std::string_view key, const std::vector<std::string>& texts) {
  array(key, [&] {
    for (const std::string& text : texts) string("", text);
  });
}

}  // namespace tenon
