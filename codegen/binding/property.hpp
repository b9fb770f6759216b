// SPDX-License-Identifier: Apache-2.0
// What `only` says about a property of a parameter: `x.ndim: 2`, `index.dtype: int32|int64`.
#pragma once

#include <optional>
#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

// "float16|float32"
DtypeMask read_dtypes(const std::string& text, const Location& where, const std::string& key);

// C++ that compares a number on its left: " == 2" of "2", " >= 1" of ">= 1".
std::optional<std::string> comparison(const std::string& text, bool of_integers);

// C++ that is true where the property named by `name` is as `value` says.
std::string read_property(const Location& where, const Operator& op, const std::string& name,
                          const std::string& value);

}  // namespace tenon::codegen
