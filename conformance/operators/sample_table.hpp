// SPDX-License-Identifier: Apache-2.0
// Calls of operators whose arguments do not follow from their definition.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operators/sample.hpp"

namespace tenon::kit {

std::vector<const char*> sample_lines(SampleKind);

// Elementwise operators that do not like both "x" and "u", from `domain` in the operator files.
extern const std::map<std::string, std::string> kDomains;
// Elementwise operators whose answers to infinities and zeros IEEE 754 or C99 fixes.
extern const std::set<std::string> kExact;
// Elementwise operators of integers whose results tenon/primitives.h fixes.
extern const std::set<std::string> kIntegerFunctions;
// Elementwise operators whose result for NaN differs between libraries.
extern const std::set<std::string> kNoNan;

}  // namespace tenon::kit
