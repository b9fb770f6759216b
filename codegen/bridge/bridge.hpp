// SPDX-License-Identifier: Apache-2.0
// Files of another library's calls: what each of them is in terms of our operators (docs/torch.md).
//
//   library: aten
//   calls:
//     relu(self): relu(self)
//     add.Tensor(self, other, alpha):             the first case whose `when` holds counts
//     - {when: alpha == 1, as: self + other}
//     - as: self + alpha * other
//     max.dim(self, dim, keepdim): "[max(self, [dim], keepdim), argmax(self, dim, keepdim)]"
//     convolution(input, weight): {native: convolution}     a function of the bridge
//     nonzero(self): {refuse: the shape of the result depends on data}
//
// A call is named with the parameters that its line is about. Others have to be at their defaults. Names are checked against
// a list of the library's signatures, and the expressions, in the grammar of `grad`, against our operators.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emit/emit.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// "core add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
struct ForeignParam {
  std::string type, name;
  std::string default_text;  // a Python literal; "": none
  bool holds_tensors() const { return type.starts_with("Tensor"); }
};
struct ForeignSignature {
  std::string name;      // "add.Tensor"
  bool is_core = false;  // of the set to which the library breaks all others down
  std::vector<ForeignParam> params;
  const ForeignParam* find(const std::string& name) const;
};
using ForeignSignatures = std::map<std::string, ForeignSignature>;

// `len(list)`: how many elements a list has, the one function that is no operator.
inline bool is_length(const Node& node) {
  return node.kind == NodeKind::Call && node.text == "len" && node.children.size() == 1;
}

// Throws Error for a line that is none.
ForeignSignatures load_signatures(const std::string& path);

struct BridgeCase {
  std::optional<Node> when;
  Steps steps;  // `as`; empty: one of the others
  std::string native, refuse;
  Location where;
};
struct BridgeCall {
  const ForeignSignature* signature;
  std::vector<std::string> params;  // that the line is about
  std::vector<BridgeCase> cases;
  Location where;
};
struct Bridge {
  std::string library;
  std::vector<BridgeCall> calls;
};

void load_bridge(const std::string& path, const Package& package,
                 const ForeignSignatures& signatures, Bridge& bridge,
                 std::vector<std::string>& errors);

// "python/_aten_calls.py": a table of the calls, with a Python function for each case.
OutputFile emit_bridge(const Bridge& bridge, const ForeignSignatures& signatures);

}  // namespace tenon::codegen
