// SPDX-License-Identifier: Apache-2.0
// Registrations are compared with the table before anything is called: a kernel whose parameters
// are not those of its row would read its arguments shifted.
#include <algorithm>
#include <map>

#include "device/kernel_table.hpp"

namespace tenon::paddle {
namespace {

const char* type_name(PD_KernelArgumentType type) {
  constexpr const char* kNames[] = {
      "context",  "Tensor",   "bool",     "bfloat16", "float16",    "float",     "double",
      "int",      "int64",    "string",   "Scalar",   "IntArray",   "DataType",  "DataLayout",
      "Place",    "bool[]",   "int[]",    "int64[]",  "bfloat16[]", "float16[]", "float[]",
      "double[]", "string[]", "Scalar[]", "Tensor?",  "Tensor[]",   "Tensor[]?"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "?";
}

using Types = std::vector<PD_KernelArgumentType>;

Types types_of(const Arguments& arguments) {
  Types types;
  for (const Argument& argument : arguments) types.push_back(argument.type);
  return types;
}

std::string join(const Types& types) {
  std::string text;
  for (PD_KernelArgumentType type : types)
    text += (text.empty() ? "" : ", ") + std::string(type_name(type));
  return text;
}

// "(Tensor; int, bool) -> (Tensor, Tensor)"
std::string signature(const Types& inputs, const Types& attributes, const Types& outputs) {
  std::string text = "(";
  text += join(inputs);
  if (!attributes.empty()) text += "; " + join(attributes);
  return text + ") -> (" + join(outputs) + ")";
}

// Where two lists first differ; empty: nowhere.
std::string difference(const char* what, const Types& expected, const Types& got) {
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    if (i < expected.size() && i < got.size() && expected[i] == got[i]) continue;
    const std::string wanted = i < expected.size() ? type_name(expected[i]) : "none";
    const std::string found = i < got.size() ? type_name(got[i]) : "none";
    return std::string(what) + " " + std::to_string(i) + ": expected " + wanted + ", got " + found;
  }
  return {};
}

// Empty, or why the registration cannot be called by the row.
std::string find_fault(const Row& row, const Registration& made) {
  const Types inputs = types_of(row.inputs), attributes = types_of(row.attributes),
              outputs = types_of(row.outputs);
  std::string differs = difference("input", inputs, made.inputs);
  if (differs.empty()) differs = difference("attribute", attributes, made.attributes);
  if (differs.empty()) differs = difference("output", outputs, made.outputs);
  if (differs.empty()) return {};
  return "expected " + signature(inputs, attributes, outputs) + ", got " +
         signature(made.inputs, made.attributes, made.outputs) + " (" + differs +
         "); it was written for another version of the kernel";
}

// The table is in Tenon's order: rows of an operator that come first win.
void bind_row(const Row& row,
              const std::map<std::string, std::vector<const Registration*>>& by_name,
              KernelBindings& result, std::map<std::string, KernelOutcome*>& outcomes) {
  const auto found = by_name.find(row.kernel);
  if (found == by_name.end()) return;
  KernelOutcome& outcome = *outcomes[row.kernel];
  auto binding = std::find_if(result.operators.begin(), result.operators.end(),
                              [&](const auto& entry) { return entry.first == row.op->name; });
  if (binding == result.operators.end()) {
    result.operators.emplace_back(row.op->name, OperatorBinding{});
    binding = result.operators.end() - 1;
  }
  uint64_t mask = 0;
  for (const Registration* made : found->second) {
    const int32_t dtype = to_tenon_dtype(made->dtype);
    if (dtype < 0 || !(row.dtypes >> dtype & 1) || binding->second.by_dtype[dtype].row) continue;
    if (std::string fault = find_fault(row, *made); !fault.empty()) {
      const std::string text = "kernel " + made->name + ": " + fault;
      if (std::find(result.refusals.begin(), result.refusals.end(), text) == result.refusals.end())
        result.refusals.push_back(text);
      outcome.state = "refused";
      outcome.text = fault;
      continue;
    }
    binding->second.by_dtype[dtype] = {&row, made};
    mask |= uint64_t{1} << dtype;
    if (std::find(outcome.dtypes.begin(), outcome.dtypes.end(), dtype) == outcome.dtypes.end())
      outcome.dtypes.push_back(dtype);
  }
  if (!mask) return;
  outcome.op += (outcome.op.empty() ? "" : ", ") + std::string(row.op->name);
  outcome.state = outcome.dtypes.size() == found->second.size() ? "mapped" : "partly";
  outcome.text = outcome.state == "mapped"
                     ? ""
                     : "in its other dtypes it differs from the operator, or another kernel serves";
  tenon_kernel_def def = {};
  def.struct_size = sizeof def;
  def.traits = row.traits;
  def.op = row.op->name;
  def.dtype_mask = mask;
  def.can_run = row.can_run;
  result.defs.push_back(def);
}

}  // namespace

KernelBindings bind_kernels(const std::vector<Registration>& registrations,
                            const std::string& kind) {
  KernelBindings result;
  std::map<std::string, std::vector<const Registration*>> by_name;
  std::vector<std::string> order;
  for (const Registration& made : registrations) {
    if (made.backend != kind) {
      result.refusals.push_back("kernel " + made.name + ": it is registered for backend '" +
                                made.backend + "', but the plugin provides '" + kind + "'");
      continue;
    }
    auto& same_name = by_name[made.name];
    if (same_name.empty()) order.push_back(made.name);
    // A second registration of the same kernel and dtype: the first stays, and this is said.
    if (std::any_of(same_name.begin(), same_name.end(),
                    [&](const Registration* other) { return other->dtype == made.dtype; })) {
      result.refusals.push_back("kernel " + made.name + ": it is registered twice for " +
                                dtype_text(made.dtype));
      continue;
    }
    same_name.push_back(&made);
  }
  result.outcomes.reserve(order.size());
  std::map<std::string, KernelOutcome*> outcomes;
  for (const std::string& name : order) {
    const char* otherwise = served_otherwise(name);
    const bool has_row = std::any_of(kernel_rows().begin(), kernel_rows().end(),
                                     [&](const Row& row) { return name == row.kernel; });
    result.outcomes.push_back(
        {name,
         "unused",
         "",
         {},
         otherwise ? otherwise
         : has_row ? "no dtype in which it agrees with Tenon's operator, or another kernel serves"
                   : "Tenon's table has no row for this kernel"});
    outcomes[name] = &result.outcomes.back();
  }
  for (const Row& row : kernel_rows()) bind_row(row, by_name, result, outcomes);
  return result;
}

}  // namespace tenon::paddle
