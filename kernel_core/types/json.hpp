// SPDX-License-Identifier: Apache-2.0
// Writes JSON: how the host answers questions about itself.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace tenon::core {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    first_ = true;
  }
  void value(std::string_view text) {
    separate();
    quote(text);
  }
  void value(const char* text) { value(std::string_view(text ? text : "")); }
  void value(bool truth) {
    separate();
    text_ += truth ? "true" : "false";
  }
  template <class T>
    requires std::is_integral_v<T>
  void value(T number) {
    separate();
    text_ += std::to_string(number);
  }
  void value(double number) {
    separate();
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", number);
    text_ += buffer;
  }
  template <class T>
  void member(std::string_view name, const T& content) {
    key(name);
    value(content);
  }
  const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void quote(std::string_view text) {
    text_ += '"';
    for (char c : text) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char buffer[8];
        std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
        text_ += buffer;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace tenon::core
