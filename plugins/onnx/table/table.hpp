// SPDX-License-Identifier: Apache-2.0
// Which operators of ONNX are there, by the format's own list, and what imports them: lines of the key `onnx` of
// operators, and of opdefs/onnx.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

// Parameter of an ONNX operator.
struct Formal {
  std::string name;
  bool is_optional = false, is_variadic = false;
};

struct FormalAttribute {
  std::string name, type;               // "ints"
  std::optional<std::string> standard;  // its default, as JSON writes it
  bool is_required = false;
};

// An operator from one opset of its domain on.
struct Schema {
  std::string name;  // with the domain, where that is another than ai.onnx: "ai.onnx.ml.Scaler"
  int64_t since = 0;
  std::vector<Formal> inputs, outputs;
  std::vector<FormalAttribute> attributes;
  bool is_deprecated = false;

  const FormalAttribute* find_attribute(std::string_view attribute) const;
};

// What imports an operator, from `since` on.
struct Claim {
  enum Kind { Expression, Native };
  std::string name;
  int64_t since = 0;
  Kind kind = Expression;
  std::string
      text;  // an expression, lines `name = expression` before it; or the name of a function in C++
  std::string origin;  // "opdefs/onnx/math.yaml:12", "tenon::sum"
};

struct Refusal {
  std::string name, reason;
  int64_t since = 0;
};

class Table {
 public:
  // As of now: plugins that bring operators may come later.
  static Table read();

  // The newest version of the operator that a model of this opset may mean; nullptr: there is none.
  const Schema* find(const std::string& name, int64_t opset) const;
  // What imports this version; nullptr: nothing does.
  const Claim* claim(const Schema& schema) const;
  const Refusal* refusal(const Schema& schema) const;
  // The name of an operator that is spelt most like it; empty: none is.
  std::string nearest(const std::string& name) const;
  // Whether it has operators of the domain.
  bool has_domain(const std::string& domain) const;
  const std::map<std::string, std::vector<Schema>>& schemas() const { return schemas_; }

 private:
  void add_claim(Claim claim);

  std::map<std::string, std::vector<Schema>> schemas_;  // ascending by `since`
  std::map<std::string, std::vector<Claim>> claims_;
  std::map<std::string, std::vector<Refusal>> refusals_;
};

}  // namespace tenon::onnx
