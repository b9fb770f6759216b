// SPDX-License-Identifier: Apache-2.0
// A cursor in a text reads the words, numbers and quoted texts that follow it. Errors name the line.
#pragma once

#include <tenon/error.hpp>

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::graph {

class TextCursor {
 protected:
  explicit TextCursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(TENON_INVALID_ARGUMENT, "program, line " + std::to_string(line_) + ": " + problem);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ') ++at_;
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\n') line_ += text_[at_++] == '\n';
  }
  void end_line() {
    skip_spaces();
    if (peek() != '\n') fail("expected the end of the line, got '" + rest() + "'");
    skip_blanks();
  }
  std::string rest() const {
    std::string_view rest = text_.substr(at_, 20);
    return std::string(rest.substr(0, rest.find('\n')));
  }
  bool accept(char c) {
    skip_spaces();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "', got '" + rest() + "'");
  }
  void expect_line(std::string_view line, const char* what) {
    if (text_.substr(0, line.size()) != line) fail(std::string("expected ") + what);
    at_ += line.size();
    end_line();
  }
  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    while (is_name_char(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool accept_word(std::string_view wanted) {
    const size_t begin = at_;
    if (word() == wanted) return true;
    at_ = begin;
    return false;
  }
  std::string quoted() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') fail("a text without its closing quote");
      char c = text_[at_++];
      if (c == '\\') c = escaped();
      out += c;
    }
    ++at_;
    return out;
  }
  char escaped() {
    const char c = peek();
    ++at_;
    if (c == '"' || c == '\\') return c;
    unsigned code = 0;
    if (c == 'x' && at_ + 2 <= text_.size()) {
      const char* begin = text_.data() + at_;
      auto [end, error] = std::from_chars(begin, begin + 2, code, 16);
      if (error == std::errc() && end == begin + 2) {
        at_ += 2;
        return static_cast<char>(code);
      }
    }
    fail("an unknown escape in a text");
  }
  template <class Integer>
  Integer integer() {
    skip_spaces();
    Integer value{};
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("expected an integer, got '" + rest() + "'");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;

 private:
  static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.';
  }
};

}  // namespace tenon::graph
