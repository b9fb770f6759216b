// SPDX-License-Identifier: Apache-2.0
// Tokens of signatures and expressions (grammar: opdefs/README.md). Part of tenon/schema.hpp.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

// A signature is refused: says what was expected and what was got. `what()` is "column 12: " and
// the reason.
struct SchemaError : std::invalid_argument {
  enum class Kind {
    Syntax,  // an unexpected token: the column is what tells where
    Meaning  // well formed and wrong: the reason names the parameter
  };
  SchemaError(Kind error_kind, int at_column, std::string why)
      : std::invalid_argument("column " + std::to_string(at_column) + ": " + why),
        kind(error_kind),
        column(at_column),
        reason(std::move(why)) {}

  Kind kind;
  int column;  // from 1
  std::string reason;
};

namespace schema {

enum class TokenKind { Name, Integer, Float, String, Sign, End };

struct Token {
  TokenKind kind;
  std::string text;  // of a String: without its quotes
  int column;        // from 1
};

namespace detail {

// Of the grammar, whatever the locale of the process says.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Length of the number at the start of `text`; sets `floating` if it has a point or an exponent.
inline size_t number_length(std::string_view text, bool& floating) {
  size_t i = 0;
  auto digits = [&] {
    while (i < text.size() && is_digit(text[i])) ++i;
  };
  digits();
  if (i < text.size() && text[i] == '.') {
    floating = true;
    ++i;
    digits();
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      floating = true;
      i = exponent;
      digits();
    }
  }
  return i;
}

inline size_t sign_length(std::string_view text) {
  for (std::string_view sign :
       {"->", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "//", "~=", "::"})
    if (text.substr(0, 2) == sign) return 2;
  return std::string_view("()[]{},.:?=+-*/%&|^~!<>").find(text[0]) != std::string_view::npos;
}

}  // namespace detail

// Ends with a token of kind End. Throws SchemaError.
inline std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (i < text.size()) {
    std::string_view rest = text.substr(i);
    if (detail::is_space(rest[0])) {
      ++i;
      continue;
    }
    int column = static_cast<int>(i) + 1;
    if (rest[0] == '\'') {
      size_t end = rest.find('\'', 1);
      if (end == std::string_view::npos)
        throw SchemaError(
            SchemaError::Kind::Meaning, column,
            "expected `'` after the text that starts at column " + std::to_string(column));
      tokens.push_back({TokenKind::String, std::string(rest.substr(1, end - 1)), column});
      i += end + 1;
      continue;
    }
    TokenKind kind = TokenKind::Sign;
    size_t length = 0;
    if (detail::is_letter(rest[0])) {
      kind = TokenKind::Name;
      while (length < rest.size() &&
             (detail::is_letter(rest[length]) || detail::is_digit(rest[length])))
        ++length;
    } else if (detail::is_digit(rest[0]) ||
               (rest[0] == '.' && rest.size() > 1 && detail::is_digit(rest[1]))) {
      bool floating = false;
      length = detail::number_length(rest, floating);
      kind = floating ? TokenKind::Float : TokenKind::Integer;
    } else {
      length = detail::sign_length(rest);
      if (length == 0)
        throw SchemaError(SchemaError::Kind::Syntax, column,
                          std::string("unknown character `") + rest[0] + "`");
    }
    tokens.push_back({kind, std::string(rest.substr(0, length)), column});
    i += length;
  }
  tokens.push_back({TokenKind::End, "", static_cast<int>(text.size()) + 1});
  return tokens;
}

// A stream over one text. A subclass that throws another exception than SchemaError overrides
// `raise`.
class TokenStream {
 public:
  explicit TokenStream(std::string_view text) : tokens_(tokenize(text)) {}
  virtual ~TokenStream() = default;

  const Token& peek() const { return tokens_[position_]; }
  Token next() {
    const Token& token = tokens_[position_];
    if (token.kind != TokenKind::End) ++position_;
    return token;
  }
  bool at(std::string_view sign) const {
    return peek().kind == TokenKind::Sign && peek().text == sign;
  }
  // Take the token if it is this sign.
  bool accept(std::string_view sign) {
    if (!at(sign)) return false;
    ++position_;
    return true;
  }
  // Take the token, or fail: "expected `)`, got `+`".
  void expect(std::string_view sign) {
    if (!accept(sign)) fail_expected("`" + std::string(sign) + "`");
  }
  std::string expect_name(std::string_view what_for) {
    if (peek().kind != TokenKind::Name) fail_expected(what_for);
    return next().text;
  }
  void expect_end() {
    if (peek().kind != TokenKind::End) fail_expected("the end");
  }
  [[noreturn]] void fail_expected(std::string_view expected) const {
    std::string got = peek().kind == TokenKind::End ? "the end" : "`" + peek().text + "`";
    raise({SchemaError::Kind::Syntax, peek().column,
           "expected " + std::string(expected) + ", got " + got});
    std::abort();  // not reached; compilers forget [[noreturn]] where a call is virtual
  }
  // About the token that was taken last.
  [[noreturn]] void fail(std::string reason) const {
    const Token& last = tokens_[position_ > 0 ? position_ - 1 : 0];
    raise({SchemaError::Kind::Meaning, last.column, std::move(reason)});
    std::abort();
  }

 protected:
  [[noreturn]] virtual void raise(const SchemaError& error) const { throw error; }

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace schema
}  // namespace tenon
