// SPDX-License-Identifier: Apache-2.0
#include "expression/lexer.hpp"

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

[[noreturn]] void raise_at(const Location& where, const std::string& what,
                           const SchemaError& error) {
  if (error.kind == SchemaError::Kind::Meaning) throw Error(where, cat(what, ": ", error.reason));
  throw Error(where, cat(what, ": ", error.reason, " at column ", error.column));
}

}  // namespace

TokenStream::TokenStream(std::string_view text, Location where, std::string what) try : schema
  ::TokenStream(text), where_(std::move(where)), what_(std::move(what)) {}
catch (const SchemaError& error) {  // of the base: nothing was moved from yet
  raise_at(where, what, error);
}

void TokenStream::raise(const SchemaError& error) const { raise_at(where_, what_, error); }

}  // namespace tenon::codegen
