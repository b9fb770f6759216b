// SPDX-License-Identifier: Apache-2.0
// Operator signatures, `(Tensor x, Tensor? bias=none, *, int axis=-1) -> Tensor`: the SDK's model
// and parser, with errors that point into the operator file.
#pragma once

#include <string_view>
#include <tenon/schema/signature.hpp>

#include "support/location.hpp"

namespace tenon::codegen {

using schema::DefaultValue;
using schema::DtypeValue;
using schema::NoneValue;
using schema::Param;
using schema::ParamKind;
using schema::Result;
using schema::Signature;

inline const char* yaml_name(ParamKind kind) { return schema::type_name(kind); }  // "int[]"
const char* macro_name(ParamKind kind);  // "TENON_PARAM_INTS"

Signature parse_signature(std::string_view text, const Location& where);

}  // namespace tenon::codegen
