// SPDX-License-Identifier: Apache-2.0
// Numbers at which functions go wrong: zeros of both signs, ties, tails, subnormal numbers, NaN
// with payloads; and how close a result must come there.
#pragma once

#include <string>
#include <vector>

#include "operators/compare.hpp"
#include "operators/sample.hpp"

namespace tenon::kit {

// The numbers of a domain: 'z' all, 't' those whose sine is no matter of argument reduction, 'p'
// the positive ones, 'v' finite ones of moderate size, 'y' few enough for all pairs of them. 'g'
// and 'k' are 'z' and 'y' of dtypes of 16 bits, 'h' has numbers halfway between two of those.
const std::vector<double>& special_numbers(char domain);

// How a function behaves at them; NULL: nothing is known of it.
struct SpecialRule {
  const char* function;  // "erf"
  char domain;
  Closeness closeness;
};
const SpecialRule* special_rule(const std::string& function);
// Does IEEE 754 fix its results to the last bit?
inline bool is_exact(const SpecialRule& rule) { return rule.closeness.relative == 0; }

inline constexpr char kAllEnds[] = "[324]";  // all pairs of the domain 'e'

// The function that a call computes: "erf" for erf and for primitive_unary with that opcode.
std::string function_of(const Sample&);

// Calls of a primitive with each opcode that floating numbers have.
std::vector<std::string> primitive_lines(const std::string& primitive, SampleKind);

}  // namespace tenon::kit
