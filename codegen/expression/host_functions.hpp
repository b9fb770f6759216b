// SPDX-License-Identifier: Apache-2.0
// Functions on host values in operator expressions: `len(x.shape)`, `min(a, b)`. Emitted as calls
// into tenon::expression (sdk/include/tenon/ops/expression.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "expression/value.hpp"

namespace tenon::codegen {

struct HostFunction {
  const char* name;
  std::vector<ValueType> params;
  ValueType result;
  // Int arguments give an Int result, anything else a Float: min, max, abs, ...
  bool follows_arguments = false;
};
const std::vector<HostFunction>& host_functions();
// The function that takes these arguments; nullptr if none does.
const HostFunction* find_host_function(const std::string& name,
                                       const std::vector<ValueType>& arguments);
std::vector<std::string> host_function_names();
// May a value of type `from` be given where `to` is expected?
bool converts(const ValueType& from, const ValueType& to);

}  // namespace tenon::codegen
