// SPDX-License-Identifier: Apache-2.0
// CPU loops of operators whose `expr` has several results: each element of every input is read once,
// and every result written once.
#include <algorithm>

#include "emit/cpu_kernels.hpp"
#include "emit/scalar_cpp.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Kind = ScalarType::Kind;

// Moves what depends on attributes alone out of the loop: `const T number0 = ...;` in `lines`.
class Hoister {
 public:
  explicit Hoister(const ScalarNames& names) : names_(names) {}

  void hoist(ScalarValue& value) {
    const bool is_host = value.type.kind == Kind::Int || value.type.kind == Kind::Float;
    if (value.type.varying || value.form == ScalarValue::Literal || !is_host) {
      for (ScalarValue& child : value.children) hoist(child);
      return;
    }
    const std::string text = scalar_cpp_as_element(value, names_);
    const auto known = std::find(texts_.begin(), texts_.end(), text);
    const std::string name = cat("number", known - texts_.begin());
    if (known == texts_.end()) {
      lines += cat("  const T ", name, " = ", text, ";\n");
      texts_.push_back(text);
    }
    value = {};
    value.form = ScalarValue::Variable;
    value.type = {Kind::Element, false};
    value.text = name;
  }

  std::string lines;

 private:
  const ScalarNames& names_;
  std::vector<std::string> texts_;
};

std::string loop(const Operator& op, int& cost) {
  const ScalarNames names{"T", "T", false, "attributes"};
  Hoister hoister(names);
  ScalarValue all;  // for the attributes that are read
  std::string pointers, loads, steps, stores;
  size_t tensor = 0;
  const auto pointer = [&](const char* type, const std::string& name) {
    pointers += cat("  ", type, "* ", name, "_data = reinterpret_cast<", type, "*>(data[", tensor++,
                    "]);\n");
  };
  for (const Param& param : op.signature.params) {
    if (!param.is_tensor()) continue;
    pointer("const T", param.name);
    loads += cat("    const T ", param.name, " = ", param.name, "_data[i];\n");
  }
  for (const Result& result : op.signature.results) {
    pointer("T", result.name);
    stores += cat("    ", result.name, "_data[i] = ", result.name, ";\n");
  }
  for (auto& [name, value] : check_element_steps(op)) {
    all.children.push_back(value);
    ScalarValue varying = value;
    hoister.hoist(varying);
    cost += scalar_cost(varying);
    const char* type = value.type.kind == Kind::Bool ? "bool" : "T";
    steps += cat("    const ", type, " ", name, " = ", scalar_cpp(varying, names), ";\n");
  }
  return fill(R"(// @file@
template <class T>
void loop_@op@(char* const* data, int64_t n, const tenon_value* attributes) {
@attributes@@numbers@@pointers@#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
@loads@@steps@@stores@  }
}
)",
              {{"file", op.where.source()},
               {"op", op.name},
               {"attributes", declare_attributes(op.signature, all, names, "  ")},
               {"numbers", hoister.lines},
               {"pointers", pointers},
               {"loads", loads},
               {"steps", steps},
               {"stores", stores}});
}

std::string several_results_definition(const Operator& op) {
  size_t inputs = 0;
  for (const Param& param : op.signature.params) inputs += param.is_tensor();
  int cost = 1;
  const std::string text = loop(op, cost);
  return text + fill(R"(const SeveralResultsKernel kernel_@op@ = {
    .op = @name@,
    .inputs = @inputs@,
    .results = @results@,
    .cost = @cost@,
    .dtype_mask = UINT64_C(@mask@),  // @classes@
    .float32 = loop_@op@<float>,
    .float64 = loop_@op@<double>};
)",
                     {{"op", op.name},
                      {"name", quoted(op.qualified_name())},
                      {"inputs", std::to_string(inputs)},
                      {"results", std::to_string(op.signature.results.size())},
                      {"cost", std::to_string(cost)},
                      {"mask", hex64(op.dtypes.allow)},
                      {"classes", describe(op.dtypes.allow)}});
}

}  // namespace

std::vector<CpuKernel> cpu_several_results_kernels(const Package& package,
                                                   const std::string& file) {
  std::vector<CpuKernel> kernels;
  for (const Operator* op : package.in_file(file))
    if (!op->element_steps.empty()) kernels.push_back({op, several_results_definition(*op)});
  return kernels;
}

}  // namespace tenon::codegen
