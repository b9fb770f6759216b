// SPDX-License-Identifier: Apache-2.0
#include "emit/cpu_kernels.hpp"
#include "emit/scalar_cpp.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string out_type(const Operator& op) {
  switch (op.dtypes.outs[0].rule) {
    case OutDtype::Bool: return "bool";
    case OutDtype::Int64: return "int64_t";
    case OutDtype::Real: return "R";
    case OutDtype::Accumulate: return "std::conditional_t<std::is_integral_v<T>, int64_t, T>";
    default: return "T";
  }
}

// Inputs that are not converted to the compute dtype have exactly one of their own (scalar_check.cpp).
std::string in_type(const Operator& op, const Param& param) {
  auto checked = op.dtypes.checked.find(param.name);
  if (checked == op.dtypes.checked.end()) return "T";
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (checked->second == DtypeMask{1} << id) return cpu_element_type(static_cast<int>(id));
  return "T";
}

std::string loop_name(const Operator& op, size_t index) {
  return op.cases.size() == 1 ? cat("loop_", op.name) : cat("loop_", op.name, "_", index);
}

std::string loop(const Operator& op, size_t index) {
  const ScalarCase& scalar_case = op.cases[index];
  ScalarValue value = check_case(op, scalar_case);
  ScalarNames names{"T", "R", (scalar_case.mask & (integer_dtypes() | bool_dtypes())) != 0, "attributes"};
  std::string types = out_type(op), lambda;
  for (const Param& param : op.signature.params) {
    if (!param.is_tensor()) continue;
    std::string type = in_type(op, param);
    types += ", " + type;
    lambda += cat(lambda.empty() ? "" : ", ", type, scalar_reads(value, param.name) ? " " + param.name : "");
  }
  std::string expression = scalar_cpp_as_element(value, names);
  bool real_parts = types[0] == 'R' || expression.find("R(") != std::string::npos;
  std::string attributes = declare_attributes(op.signature, value, names, "  ");
  return fill(R"(// @origin@: @source@
template <class T>
void @name@(char* const* data, const int64_t* strides, int64_t n, const tenon_value*@argument@) {
@real@@attributes@  run_loop<@types@>(data, strides, n, [=](@lambda@) { return @expression@; });
}
)",
              {{"origin", scalar_case.expression.where.origin()},
               {"source", text_of(scalar_case.expression)},
               {"name", loop_name(op, index)},
               {"argument", attributes.empty() ? "" : " attributes"},
               {"real", real_parts ? "  using R = decltype(math::real(T()));\n" : ""},
               {"attributes", attributes},
               {"types", types},
               {"lambda", lambda},
               {"expression", expression}});
}

// The tensor whose dtype is the compute dtype.
size_t dtype_input(const Operator& op, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i)
    if (!op.dtypes.checked.count(op.signature.params[i].name)) return i;
  return 0;
}

std::string definition(const Operator& op) {
  std::string text;
  int cost = 1;
  for (size_t i = 0; i < op.cases.size(); ++i) {
    text += loop(op, i);
    cost = std::max(cost, scalar_cost(check_case(op, op.cases[i])));
  }
  size_t inputs = 0;
  for (const Param& param : op.signature.params) inputs += param.is_tensor();
  auto loop_of = [&](int dtype) -> std::string {
    for (size_t i = 0; i < op.cases.size(); ++i)
      if (cpu_loop_dtypes(op.cases[i].mask) >> dtype & 1)
        return cat(loop_name(op, i), "<", cpu_element_type(dtype), ">");
    return "nullptr";
  };
  return text + fill(R"(const ElementwiseKernel kernel_@op@ = {
    .op = @name@,
    .inputs = @inputs@,
    .dtype_input = @dtype_input@,
    .cost = @cost@,
    .dtype_mask = UINT64_C(@mask@),  // @classes@
    .loops = {@loops@}};
)",
                     {{"op", op.name},
                      {"name", quoted(op.qualified_name())},
                      {"inputs", std::to_string(inputs)},
                      {"dtype_input", std::to_string(dtype_input(op, inputs))},
                      {"cost", std::to_string(cost)},
                      {"mask", hex64(op.dtypes.allow)},
                      {"classes", describe(op.dtypes.allow)},
                      {"loops", cpu_loop_table(op.dtypes.allow, loop_of)}});
}

}  // namespace

std::vector<CpuKernel> cpu_elementwise_kernels(const Package& package, const std::string& file) {
  std::vector<CpuKernel> kernels;
  for (const Operator* op : package.in_file(file))
    if (!op->cases.empty()) kernels.push_back({op, definition(*op)});
  return kernels;
}

}  // namespace tenon::codegen
