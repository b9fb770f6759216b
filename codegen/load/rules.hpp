// SPDX-License-Identifier: Apache-2.0
// The `dtypes` and `shape` keys of an operator.
#pragma once

#include <optional>
#include <string>

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// "bool|integer" to a mask; `key` begins messages.
DtypeMask parse_dtype_class(const std::string& text, const Location& where, const std::string& key);

// Both read the signature and kind of `op`, which must be there already.
DtypeRules read_dtype_rules(const YamlEntry& entry, const Operator& op);
std::optional<ShapeRule> read_shape_rule(const YamlEntry& entry, const Operator& op);

}  // namespace tenon::codegen
