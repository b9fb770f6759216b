// SPDX-License-Identifier: Apache-2.0
#include "expression/lexer.hpp"

#include <cctype>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Length of the number at the start of `text`; sets `floating` if it has a point or an exponent.
size_t number_length(std::string_view text, bool& floating) {
  size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  if (i < text.size() && text[i] == '.') {
    floating = true;
    ++i;
    while (i < text.size() && is_digit(text[i])) ++i;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t j = i + 1;
    if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
    if (j < text.size() && is_digit(text[j])) {
      floating = true;
      i = j;
      while (i < text.size() && is_digit(text[i])) ++i;
    }
  }
  return i;
}

size_t sign_length(std::string_view text) {
  for (std::string_view sign :
       {"->", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "//", "~=", "::"})
    if (text.substr(0, 2) == sign) return 2;
  return std::string_view("()[]{},.:?=+-*/%&|^~!<>").find(text[0]) != std::string_view::npos;
}

}  // namespace

TokenStream::TokenStream(std::string_view text, Location where, std::string what)
    : where_(std::move(where)), what_(std::move(what)) {
  size_t i = 0;
  while (i < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    std::string_view rest = text.substr(i);
    Token token{TokenKind::Sign, "", static_cast<int>(i) + 1};
    size_t length = 0;
    if (is_letter(rest[0])) {
      token.kind = TokenKind::Name;
      while (length < rest.size() && (is_letter(rest[length]) || is_digit(rest[length]))) ++length;
    } else if (is_digit(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1]))) {
      bool floating = false;
      length = number_length(rest, floating);
      token.kind = floating ? TokenKind::Float : TokenKind::Integer;
    } else if (rest[0] == '\'') {
      size_t end = rest.find('\'', 1);
      if (end == std::string_view::npos)
        fail(cat("expected `'` after the text that starts at column ", i + 1));
      token.kind = TokenKind::String;
      token.text = std::string(rest.substr(1, end - 1));
      i += end + 1;
      tokens_.push_back(std::move(token));
      continue;
    } else {
      length = sign_length(rest);
      if (length == 0) fail(cat("unknown character `", rest[0], "` at column ", i + 1));
    }
    token.text = std::string(rest.substr(0, length));
    i += length;
    tokens_.push_back(std::move(token));
  }
  tokens_.push_back({TokenKind::End, "", static_cast<int>(text.size()) + 1});
}

Token TokenStream::next() {
  const Token& token = tokens_[position_];
  if (token.kind != TokenKind::End) ++position_;
  return token;
}

bool TokenStream::at(std::string_view sign) const {
  return peek().kind == TokenKind::Sign && peek().text == sign;
}

bool TokenStream::accept(std::string_view sign) {
  if (!at(sign)) return false;
  ++position_;
  return true;
}

void TokenStream::expect(std::string_view sign) {
  if (!accept(sign)) fail_expected(cat("`", sign, "`"));
}

std::string TokenStream::expect_name(std::string_view what_for) {
  if (peek().kind != TokenKind::Name) fail_expected(what_for);
  return next().text;
}

void TokenStream::expect_end() {
  if (peek().kind != TokenKind::End) fail_expected("the end");
}

void TokenStream::fail_expected(std::string_view expected) const {
  const Token& token = peek();
  std::string got = token.kind == TokenKind::End ? "the end" : cat("`", token.text, "`");
  fail(cat("expected ", expected, ", got ", got, " at column ", token.column));
}

void TokenStream::fail(const std::string& text) const {
  throw Error(where_, cat(what_, ": ", text));
}

}  // namespace tenon::codegen
