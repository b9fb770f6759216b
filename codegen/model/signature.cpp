// SPDX-License-Identifier: Apache-2.0
#include "model/signature.hpp"

#include <array>

#include "expression/lexer.hpp"

namespace tenon::codegen {

const char* macro_name(ParamKind kind) {
  static constexpr std::array<const char*, 11> kMacros = {
      "TENON_PARAM_TENSOR", "TENON_PARAM_TENSORS", "TENON_PARAM_INT",    "TENON_PARAM_FLOAT",
      "TENON_PARAM_BOOL",   "TENON_PARAM_SCALAR",  "TENON_PARAM_STRING", "TENON_PARAM_DTYPE",
      "TENON_PARAM_DEVICE", "TENON_PARAM_INTS",    "TENON_PARAM_FLOATS"};
  return kMacros[static_cast<size_t>(kind) - 1];
}

Signature parse_signature(std::string_view text, const Location& where) {
  TokenStream tokens(text, where, "sig");
  return schema::parse_signature(tokens);
}

}  // namespace tenon::codegen
