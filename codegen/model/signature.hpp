// SPDX-License-Identifier: Apache-2.0
// Operator signatures: `(Tensor x, Tensor? bias=none, *, int axis=-1) -> Tensor`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/location.hpp"

namespace tenon::codegen {

// Values equal TENON_PARAM_*.
enum class ParamKind {
  Tensor = 1,
  Tensors = 2,
  Int = 3,
  Float = 4,
  Bool = 5,
  Scalar = 6,
  String = 7,
  Dtype = 8,
  Device = 9,
  Ints = 10,
  Floats = 11
};
const char* yaml_name(ParamKind kind);   // "int[]"
const char* macro_name(ParamKind kind);  // "TENON_PARAM_INTS"

struct NoneValue {};
struct DtypeValue {
  int id;
};
// A default. The alternative agrees with the parameter's kind (Float params hold double).
using DefaultValue = std::variant<NoneValue, bool, int64_t, double, std::string, DtypeValue,
                                  std::vector<int64_t>, std::vector<double>>;

struct Param {
  std::string name;
  ParamKind kind = ParamKind::Tensor;
  bool optional = false;
  bool keyword_only = false;
  std::optional<DefaultValue> default_value;
  std::string default_text;  // as in the canonical text

  bool is_tensor() const { return kind == ParamKind::Tensor; }
  bool holds_tensors() const { return kind == ParamKind::Tensor || kind == ParamKind::Tensors; }
};

struct Result {
  std::string name;
  bool list = false;  // Tensor[]
};

struct Signature {
  std::vector<Param> params;
  std::vector<Result> results;

  int find_param(std::string_view name) const;   // -1: none
  int find_result(std::string_view name) const;  // -1: none
  // "(Tensor x, *, int axis=-1) -> Tensor": what is hashed, after "namespace::op".
  std::string canonical() const;
  bool list_result() const { return results.size() == 1 && results[0].list; }
};

Signature parse_signature(std::string_view text, const Location& where);

}  // namespace tenon::codegen
