// SPDX-License-Identifier: Apache-2.0
// Writes JSON text; the caller keeps braces in balance by scopes.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class JsonWriter {
 public:
  template <class Body>
  void object(std::string_view key, Body&& body) {
    open(key, '{');
    body();
    close('}');
  }
  template <class Body>
  void array(std::string_view key, Body&& body) {
    open(key, '[');
    body();
    close(']');
  }
  // An empty key: an element of an array, or the whole document.
  void string(std::string_view key, std::string_view text);
  template <std::integral Integer>
  void number(std::string_view key, Integer number) {
    begin(key);
    text_ += std::to_string(number);
  }
  void fraction(std::string_view key, double fraction);  // four digits behind the point
  void boolean(std::string_view key, bool truth);
  void strings(std::string_view key, const std::vector<std::string>& texts);

  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view key);
  void open(std::string_view key, char bracket);
  void close(char bracket);
  void quote(std::string_view text);

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace tenon
