// SPDX-License-Identifier: Apache-2.0
// Text to syntax tree. The grammar is in opdefs/README.md; from loosest to tightest:
//   ?:   ||   &&   == != < <= > >=   |   ^   &   << >>   + -   * / // %   - ! ~   . [] ()
#pragma once

#include <string>
#include <string_view>

#include "expression/lexer.hpp"
#include "expression/node.hpp"

namespace tenon::codegen {

// `what` begins messages: "expr", "grad.x".
Node parse_expression(std::string_view text, const Location& where, const std::string& what);

// From inside a stream: an expression without comparisons at its top, for `call == value`.
Node parse_operand(TokenStream& tokens);

// "name = expression" or "expression".
Step parse_step(std::string_view text, const Location& where, const std::string& what);

}  // namespace tenon::codegen
