// SPDX-License-Identifier: Apache-2.0
// Tokens of signatures and expressions, with errors that point into the operator file.
#pragma once

#include <string>
#include <string_view>
#include <tenon/schema/tokens.hpp>

#include "support/location.hpp"

namespace tenon::codegen {

using schema::Token;
using schema::TokenKind;

// A stream over one text; `what` ("sig", "expr") begins its messages.
class TokenStream : public schema::TokenStream {
 public:
  TokenStream(std::string_view text, Location where, std::string what);

  const Location& where() const { return where_; }

 private:
  // "file:line: sig: expected `)`, got `+` at column 10".
  [[noreturn]] void raise(const SchemaError& error) const override;

  Location where_;
  std::string what_;
};

}  // namespace tenon::codegen
