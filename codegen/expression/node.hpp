// SPDX-License-Identifier: Apache-2.0
// Syntax tree of an expression. One tree serves scalar and operator expressions; what names and
// calls mean is found by the two checkers (scalar_check.hpp, operator_check.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/location.hpp"

namespace tenon::codegen {

enum class NodeKind {
  Integer,
  Float,
  Boolean,
  None,
  String,
  Name,         // text; `inf` and `nan` too, where nothing else is called that
  Unary,        // text is the sign: - ! ~
  Binary,       // text is the sign
  Conditional,  // condition, then, otherwise
  Call,         // text is the callee; keywords[i] names child i, or is empty
  List,
  Tuple,      // in the value of an example only
  Member,     // child 0 . text
  Subscript,  // child 0 [ child 1 ]
};

struct Node {
  NodeKind kind = NodeKind::None;
  std::string text;  // identifier, sign, string, or number as written
  int64_t integer = 0;
  double number = 0;
  bool boolean = false;
  std::vector<Node> children;
  std::vector<std::string> keywords;
  Location where;

  bool is_infinity_or_nan() const {
    return kind == NodeKind::Name && (text == "inf" || text == "nan");
  }
};

// `name = expression` lines, the last one bare.
struct Step {
  std::string name;  // empty for the last
  Node expression;
};
using Steps = std::vector<Step>;

// The expression again, fully parenthesised: for messages and for finding equal parts.
std::string text_of(const Node& node);

// Calls `visit` for the node and all nodes under it.
template <class NodeType, class Visitor>
void walk(NodeType& node, Visitor&& visit) {
  visit(node);
  for (auto& child : node.children) walk(child, visit);
}

}  // namespace tenon::codegen
