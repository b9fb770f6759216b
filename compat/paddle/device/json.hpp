// SPDX-License-Identifier: Apache-2.0
// JSON, written front to back.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace tenon::paddle {

class Json {
 public:
  Json& open(char bracket) {
    separate();
    text_ += bracket;
    return *this;
  }
  Json& close(char bracket) {
    text_ += bracket;
    return *this;
  }
  Json& key(std::string_view name) {
    text(name);
    text_ += ':';
    return *this;
  }
  Json& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }
  Json& number(uint64_t value) { return raw(std::to_string(value)); }
  // Bytes that are no printable ASCII are written as escapes: names and texts of plugins may hold
  // any.
  Json& text(std::string_view value) {
    separate();
    text_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (byte < 0x20 || byte > 0x7e) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", byte);
        text_ += escape;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (text_.empty()) return;
    const char last = text_.back();
    if (last != '{' && last != '[' && last != ':' && last != ',') text_ += ',';
  }
  std::string text_;
};

}  // namespace tenon::paddle
