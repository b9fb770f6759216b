// SPDX-License-Identifier: Apache-2.0
// Type stubs: one function per public operator, and a class with the methods of Tensor.
#include "emit/emit.hpp"
#include "emit/python_text.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string type_text(const Param& param) {
  std::string type;
  switch (param.kind) {
    case ParamKind::Tensor:
      type = "TensorLike";
      break;
    case ParamKind::Tensors:
      type = "Sequence[Tensor]";
      break;
    case ParamKind::Int:
      type = "int";
      break;
    case ParamKind::Float:
      type = "float";
      break;
    case ParamKind::Bool:
      type = "bool";
      break;
    case ParamKind::Scalar:
      type = "Number";
      break;
    case ParamKind::String:
      type = "str";
      break;
    case ParamKind::Dtype:
      type = "DtypeLike";
      break;
    case ParamKind::Device:
      type = "DeviceLike";
      break;
    case ParamKind::Ints:
      type = "int | Sequence[int]";
      break;
    case ParamKind::Floats:
      type = "float | Sequence[float]";
      break;
  }
  return param.optional ? type + " | None" : type;
}

std::string record_name(const Operator& op) { return camel_case(op.name) + "Result"; }

std::string return_text(const Operator& op) {
  if (op.signature.list_result()) return "list[Tensor]";
  return op.signature.results.size() == 1 ? "Tensor" : record_name(op);
}

// As Python's `inspect.signature` shows it.
std::string parameters(const Operator& op, bool method, bool in_place) {
  std::string text;
  bool keyword_only = false;
  const std::vector<Param>& params = op.signature.params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!text.empty()) text += ", ";
    if (i == 0 && method) {
      text += "self";
      continue;
    }
    if (params[i].keyword_only && !keyword_only) text += "*, ";
    keyword_only = params[i].keyword_only;
    text += cat(params[i].name, ": ", type_text(params[i]));
    if (params[i].default_value) text += " = " + python_default(params[i]);
  }
  if (!in_place && op.has_out_form()) {
    if (!text.empty()) text += ", ";
    if (!keyword_only) text += "*, ";
    size_t results = op.signature.results.size();
    text += results == 1 ? "out: Tensor | None = None" : "out: Sequence[Tensor] | None = None";
    keyword_only = true;
  }
  if (op.has_tag("draws")) {
    if (!text.empty()) text += ", ";
    if (!keyword_only) text += "*, ";
    text += "generator: tenon.Generator | None = None";
  }
  return text;
}

std::string docstring(const Operator& op, const std::string& indent) {
  std::vector<std::string> lines = lines_of(op.doc);
  std::string text = indent + "\"\"\"";
  for (size_t i = 0; i < lines.size(); ++i)
    text += (i ? "\n" + (lines[i].empty() ? "" : indent) : "") + lines[i];
  // Neither a quote at the end nor a backslash may meet the closing quotes.
  if (text.back() == '"') text += " ";
  return text + (lines.size() > 1 ? "\n" + indent : "") + "\"\"\"\n";
}

}  // namespace

std::vector<OutputFile> emit_pyi(const Package& package, const EmitOptions&) {
  std::string records, functions, methods;
  for (const Operator* op : package.emitted) {
    if (!op->is_public()) continue;
    if (op->signature.results.size() > 1) {
      records += cat("class ", record_name(*op), "(NamedTuple):\n");
      for (const Result& result : op->signature.results)
        records += cat("    ", result.name, ": Tensor\n");
      records += "\n";
    }
    functions +=
        cat("# ", op->where.origin(), "\ndef ", op->name, "(", parameters(*op, false, false),
            ") -> ", return_text(*op), ":\n", docstring(*op, "    "), "\n");
    std::vector<std::string> names{op->name};
    if (auto own = op->names.find("tenon"); own != op->names.end())
      for (const Spelling& each : own->second) {
        names.push_back(each.name);
        functions += cat(each.name, " = ", op->name, "\n\n");
      }
    if (!op->method) continue;
    for (const std::string& name : names) {
      methods += cat("    def ", name, "(", parameters(*op, true, false), ") -> ", return_text(*op),
                     ": ...\n");
      if (op->has_in_place_form())
        methods += cat("    def ", name, "_(", parameters(*op, true, true), ") -> Tensor: ...\n");
    }
  }
  std::string text = generated_line(package.files, "#");
  text += R"(import tenon
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from tenon import Tensor

Number: TypeAlias = bool | int | float
TensorLike: TypeAlias = Tensor | Number
DtypeLike: TypeAlias = tenon.dtype | str
DeviceLike: TypeAlias = tenon.device | str

)";
  text += records + functions;
  for (const auto& [library, names] : package.methods)
    for (const std::string& name : names)
      methods += cat("    def ", name, "(self, *args: Any, **kwargs: Any) -> Any: ...\n");
  if (package.name_space == "tenon")  // packages add no methods
    text += "class TensorMethods:\n    \"\"\"Operators as methods of Tensor.\"\"\"\n\n" + methods;
  return {{"python/_operators.pyi", text}};
}

}  // namespace tenon::codegen
