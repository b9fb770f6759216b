// SPDX-License-Identifier: Apache-2.0
// What tenon_op_def says of an operator, as numbers with the names that the contract gives them:
// for emitters, which write the names, and for definitions made at run time, which take the
// numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

struct NamedBit {
  uint32_t bit;
  const char* name;
};
uint32_t bits_of(const std::vector<NamedBit>& flags);

// `to_primitives`: its decomposition calls primitives.
std::vector<NamedBit> op_flags(const Operator& op, bool to_primitives);
std::vector<NamedBit> param_flags(const Operator& op, const Param& param);
// TENON_OUT_*.
NamedBit out_rule(const Operator& op);
// What tenon_op_def.traits says: lines of `key: value`; empty: nothing.
std::string traits_text(const Operator& op);

}  // namespace tenon::codegen
