// SPDX-License-Identifier: Apache-2.0
// A rewrite as data: two expressions over the same variables, of which the second may stand for the first.
//
//   from: x * sigmoid(x)
//   to:   silu(x)
//
// The grammar is that of gradients in operator files (opdefs/README.md): calls of operators, signs, numbers.
// Parts of `from` that are written alike are one value of the program. A variable is a tensor unless one of its
// uses takes no tensor: `a` in softmax(x, a) is an axis.
#pragma once

#include <tenon/services/graph.h>

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

struct Expression {
  enum Kind : uint8_t {
    kVariable,
    kNumber,      // an attribute as it is written
    kArithmetic,  // of numbers, known when the rewrite is applied; in `to` alone
    kCall,
  };
  struct Node {
    Kind kind = kNumber;
    uint32_t variable = 0;
    Attribute number;
    char sign = '+';  // kArithmetic
    const tenon_op* op = nullptr;
    // kCall: a node for each parameter, kNoNode: the default. kArithmetic: its two operands.
    std::vector<uint32_t> operands;
  };
  static constexpr uint32_t kNoNode = ~uint32_t{0};

  std::vector<Node> nodes;  // operands before those who use them; equal ones are one node
  uint32_t root = 0;
};

struct Rule {
  struct Variable {
    std::string name;
    int32_t kind = TENON_PARAM_TENSOR;  // another kind: it stands for an attribute
    bool is_tensor() const { return kind == TENON_PARAM_TENSOR; }
  };

  std::string name, from_text, to_text;
  int32_t numerics = TENON_GRAPH_EXACT;
  double units = 0;
  uint64_t dtypes = ~uint64_t{0};  // of the tensors that variables stand for
  std::vector<Variable> variables;
  Expression from, to;

  // Throws Error: an operator or a parameter is unknown, a variable of `to` is not in `from`, ...
  static Rule parse(const tenon_graph_rewrite& text);
  tenon_graph_rewrite text() const;  // borrowed from this object
};

// The attribute for a parameter of that kind: [2] for 2, 2 for [2], 2.0 for 2. Without a value: there is none.
Attribute attribute_as(const Attribute& attribute, int32_t kind);
// The value of a number; false: it is none.
bool number_of(const Attribute& attribute, double& out);

}  // namespace tenon::graph
