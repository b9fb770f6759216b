// SPDX-License-Identifier: Apache-2.0
#include "expression/operator_names.hpp"

#include <tenon/primitives.h>

#include <map>

namespace tenon::codegen {

const char* operator_of_sign(const std::string& sign, bool unary) {
  static const std::map<std::string, const char*> binary = {{"+", "add"},
                                                            {"-", "subtract"},
                                                            {"*", "multiply"},
                                                            {"/", "divide"},
                                                            {"//", "floor_divide"},
                                                            {"%", "remainder"},
                                                            {"<", "less"},
                                                            {"<=", "less_equal"},
                                                            {">", "greater"},
                                                            {">=", "greater_equal"},
                                                            {"==", "equal"},
                                                            {"!=", "not_equal"},
                                                            {"&", "bitwise_and"},
                                                            {"|", "bitwise_or"},
                                                            {"^", "bitwise_xor"},
                                                            {"&&", "logical_and"},
                                                            {"||", "logical_or"},
                                                            {"<<", "bitwise_left_shift"},
                                                            {">>", "bitwise_right_shift"}};
  static const std::map<std::string, const char*> prefix = {
      {"-", "negative"}, {"~", "bitwise_invert"}, {"!", "logical_not"}};
  return unary ? prefix.at(sign) : binary.at(sign);
}

std::string operator_of_function(const std::string& function) {
  static const std::map<std::string, const char*> others = {{"floordiv", "floor_divide"},
                                                            {"floormod", "remainder"},
                                                            {"min", "minimum"},
                                                            {"max", "maximum"}};
  auto found = others.find(function);
  return found == others.end() ? function : found->second;
}

Primitive primitive_of(const std::string& op, Primitive::Family among) {
  using Table = std::map<std::string, Primitive>;
#define ENTRY(number, NAME, op, dtypes) {#op, {FAMILY, number, PREFIX #NAME}},
#define FAMILY Primitive::Unary
#define PREFIX "TENON_UNARY_"
  static const Table unary = {TENON_UNARY_OPS(ENTRY)};
#undef FAMILY
#undef PREFIX
#define FAMILY Primitive::Binary
#define PREFIX "TENON_BINARY_"
  static const Table binary = {TENON_BINARY_OPS(ENTRY)};
#undef FAMILY
#undef PREFIX
#define FAMILY Primitive::Compare
#define PREFIX "TENON_COMPARE_"
  static const Table compare = {TENON_COMPARE_OPS(ENTRY)};
#undef FAMILY
#undef PREFIX
#define FAMILY Primitive::Reduction
#define PREFIX "TENON_REDUCTION_"
  static const Table reduction = {TENON_REDUCTION_OPS(ENTRY)};
#undef FAMILY
#undef PREFIX
#undef ENTRY
  static const Table none;
  const Table& table = among == Primitive::Unary       ? unary
                       : among == Primitive::Binary    ? binary
                       : among == Primitive::Compare   ? compare
                       : among == Primitive::Reduction ? reduction
                                                       : none;
  auto found = table.find(op);
  return found == table.end() ? Primitive{} : found->second;
}

}  // namespace tenon::codegen
