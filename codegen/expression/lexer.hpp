// SPDX-License-Identifier: Apache-2.0
// Tokens of signatures and expressions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "support/location.hpp"

namespace tenon::codegen {

enum class TokenKind { Name, Integer, Float, String, Sign, End };

struct Token {
  TokenKind kind;
  std::string text;
  int column;  // from 1
};

// A stream over one text; `what` ("sig", "expr") begins its messages.
class TokenStream {
 public:
  TokenStream(std::string_view text, Location where, std::string what);

  const Token& peek() const { return tokens_[position_]; }
  Token next();
  // Take the token if it is this sign.
  bool accept(std::string_view sign);
  bool at(std::string_view sign) const;
  // Take the token, or fail: "expected `)`, got `+` at column 10".
  void expect(std::string_view sign);
  std::string expect_name(std::string_view what_for);
  void expect_end();
  [[noreturn]] void fail_expected(std::string_view expected) const;
  [[noreturn]] void fail(const std::string& text) const;

  const Location& where() const { return where_; }

 private:
  Location where_;
  std::string what_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace tenon::codegen
