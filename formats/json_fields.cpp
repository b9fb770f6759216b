// SPDX-License-Identifier: Apache-2.0
#include "formats/json_fields.hpp"

namespace tenon {
namespace {

constexpr int kMaxDepth = 8;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool parse(JsonFields& fields) {
    return object([&](std::string_view key) { return field(std::string(key), fields); }) &&
           at_end();
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool string(std::string& value) {
    if (!take("\"")) return false;
    value.clear();
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        if (at_ == text_.size() || std::string_view("\"\\/").find(text_[at_]) == text_.npos)
          return false;
        c = text_[at_++];  // names need no other escapes
      }
      value += c;
    }
    return take("\"");
  }

  template <class Member>
  bool object(Member&& member) {
    return sequence("{", "}", [&] {
      std::string key;
      return string(key) && take(":") && member(key);
    });
  }

  // Elements between brackets, separated by commas.
  template <class Element>
  bool sequence(const char* open, const char* close, Element&& element) {
    if (!take(open)) return false;
    if (take(close)) return true;
    do {
      if (!element()) return false;
    } while (take(","));
    return take(close);
  }

  bool field(std::string key, JsonFields& fields) {
    switch (peek()) {
      case '"':
        return string(fields.strings[std::move(key)]);
      case 't':
      case 'f': {
        bool value = peek() == 't';
        fields.flags[std::move(key)] = value;
        return take(value ? "true" : "false");
      }
      case '[': {
        std::vector<std::string>& list = fields.lists[std::move(key)];
        return sequence(
            "[", "]", [&] { return peek() == '"' ? string(list.emplace_back()) : skip_value(1); });
      }
      default:
        return skip_value(0);
    }
  }

  bool skip_value(int depth) {
    if (depth == kMaxDepth) return false;
    std::string ignored;
    switch (peek()) {
      case '"':
        return string(ignored);
      case '{':
        return object([&](std::string_view) { return skip_value(depth + 1); });
      case '[':
        return sequence("[", "]", [&] { return skip_value(depth + 1); });
      default:
        return take("true") || take("false") || take("null") || skip_number();
    }
  }

  bool skip_number() {
    size_t begin = at_;
    while (at_ < text_.size() && std::string_view("+-.0123456789eE").find(text_[at_]) != text_.npos)
      ++at_;
    return at_ > begin;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool parse_json_fields(std::string_view text, JsonFields& fields) {
  return Parser(text).parse(fields);
}

}  // namespace tenon
