// SPDX-License-Identifier: Apache-2.0
// Lines as `onnx: LeakyRelu 1 import leaky_relu(x=input(0), negative_slope=alpha)`.
#include <tenon/dtypes.h>
#include <tenon/unbox.h>
#include <tenon/operator_traits.hpp>

#include <charconv>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

// Operators whose inputs have dtypes of their own, whose meaning changed with an opset, or that come with a later one
// than is written.
constexpr std::string_view kLeftOut[] = {"AffineGrid", "Concat",   "Einsum", "Gather",
                                         "Gelu",       "Squeeze",  "Tile",   "GatherElements",
                                         "Transpose",  "Unsqueeze"};
constexpr std::string_view kLogical[] = {"And", "Or", "Xor", "Not"};
constexpr std::string_view kComparisons[] = {"Equal", "Less", "LessOrEqual", "Greater",
                                             "GreaterOrEqual"};

template <size_t N>
bool is_one_of(std::string_view op, const std::string_view (&list)[N]) {
  for (std::string_view each : list)
    if (each == op) return true;
  return false;
}

struct Argument {
  std::string_view parameter;  // of ours; "": the one at the same position
  std::string_view text;       // "input(0)", "alpha"
};

struct Line {
  std::string_view op;
  std::vector<Argument> arguments;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Arguments of a call that has no calls inside but input(i).
std::optional<Line> read(std::string_view text) {
  Line line;
  const size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  line.op = text.substr(0, space);
  text = text.substr(space + 1);
  text = text.substr(std::min(text.find(' ') + 1, text.size()));  // the opset since which it holds
  if (!text.starts_with("import ")) return std::nullopt;
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == text.npos || end < begin || end + 1 != trimmed(text).size()) return std::nullopt;
  text = text.substr(begin + 1, end - begin - 1);
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const size_t equal = piece.find('=');
    const bool has_name = equal != piece.npos;
    line.arguments.push_back({has_name ? trimmed(piece.substr(0, equal)) : "",
                              trimmed(has_name ? piece.substr(equal + 1) : piece)});
  }
  return line;
}

std::optional<size_t> input_of(std::string_view text) {
  if (!text.starts_with("input(") || !text.ends_with(")")) return std::nullopt;
  text = text.substr(6, text.size() - 7);
  size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(index)
                                                                  : std::nullopt;
}

bool is_name(std::string_view text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == text.npos;
}

bool is_float(int32_t dtype) { return dtype == TENON_DTYPE_F32; }

// The dtype that operands are compared in.
int32_t compared_dtype(const Step& step) {
  std::optional<int32_t> dtype;
  for (size_t i = 0; i < step.count(); ++i) {
    const tenon_tensor* tensor = tenon_arg_tensor(&step.value(i));
    if (!tensor || tensor->flags & TENON_TENSOR_HOST_SCALAR) continue;
    if (dtype && *dtype != tensor->dtype) throw Refusal("its operands have different dtypes");
    dtype = tensor->dtype;
  }
  if (!dtype) throw Refusal("it has no tensor");
  for (size_t i = 0; i < step.count(); ++i) {
    const tenon_tensor* tensor = tenon_arg_tensor(&step.value(i));
    if (tensor && tensor->dtype == TENON_DTYPE_F64 && !is_float(*dtype))
      throw Refusal("it compares integers with a fraction");
  }
  if (*dtype == TENON_DTYPE_BOOL) throw Refusal("it compares truth values");
  return *dtype;
}

// Operators of bits are those of truth values for truth values.
std::string_view logical(std::string_view op) {
  return op.starts_with("Bitwise") ? op.substr(7) : op;
}

Names write(ModelWriter& model, const Step& step, Line line) {
  const int32_t made = step.result().dtype;
  int32_t dtype = made;
  if (made == TENON_DTYPE_BOOL) line.op = logical(line.op);
  if (is_one_of(line.op, kLogical)) {
    dtype = TENON_DTYPE_BOOL;
  } else if (is_one_of(line.op, kComparisons)) {
    dtype = compared_dtype(step);
  } else if (line.op == "IsNaN") {
    dtype = TENON_DTYPE_F32;
  } else if (line.op == "Where") {
    if (made == TENON_DTYPE_BOOL) throw Refusal("it chooses truth values");
  } else if (!is_float(made) && line.op != "Add" && line.op != "Sub" && line.op != "Mul") {
    throw Refusal("of integers");
  }
  if (made == TENON_DTYPE_BOOL && dtype == made && !is_one_of(line.op, kLogical))
    throw Refusal("of truth values");
  Names inputs;  // "": absent
  Attributes attributes;
  std::vector<std::string> names;  // that attributes point to
  names.reserve(line.arguments.size());
  std::vector<bool> is_used(step.count());
  for (size_t i = 0; i < line.arguments.size(); ++i) {
    const auto& [parameter, text] = line.arguments[i];
    const std::optional<size_t> at = parameter.empty() ? std::optional(i) : step.find(parameter);
    if (!at || *at >= step.count()) throw Refusal("its line names a parameter that it has not");
    is_used[*at] = true;
    if (const std::optional<size_t> input = input_of(text)) {
      const bool is_condition = line.op == "Where" && *input == 0;
      if (*input >= inputs.size()) inputs.resize(*input + 1);
      inputs[*input] = operand(model, step.value(*at), is_condition ? TENON_DTYPE_BOOL : dtype);
    } else if (is_name(text) && step.value(*at).tag == TENON_VALUE_FLOAT) {
      names.emplace_back(text);
      attributes.emplace_back(names.back().c_str(), static_cast<float>(step.value(*at).v.f));
    } else {
      throw Refusal("its line of ONNX cannot be inverted here");
    }
  }
  for (size_t i = 0; i < step.count(); ++i)
    if (!is_used[i]) throw Refusal("ONNX has nothing for one of its parameters");
  return {model.node(std::string(line.op).c_str(), inputs, attributes)};
}

}  // namespace

Names convert_by_line(ModelWriter& model, const Step& step) {
  std::optional<Line> found;
  for_each_trait(step.definition(), "onnx: ", [&](std::string_view text) {
    const std::optional<Line> line = read(text);
    if (line && !is_one_of(line->op, kLeftOut)) found = line;
    return false;
  });
  if (!found) throw Refusal("the claimer has no form of ONNX for it");
  return write(model, step, *found);
}

}  // namespace tenon::onnxruntime
