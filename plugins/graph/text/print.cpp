// SPDX-License-Identifier: Apache-2.0
#include <tenon/error.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

#include "ir/names.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number_text(double number) {
  if (std::isnan(number)) return std::signbit(number) ? "-nan" : "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[40];  // the shortest that reads back the same
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  const std::string result(text, end);
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

template <class List, class Text>
std::string joined(const List& list, uint64_t count, Text&& text) {
  std::string out;
  for (uint64_t i = 0; i < count; ++i) out += (i ? ", " : "") + text(list[i]);
  return out;
}

std::string integer_list(const int64_t* list, uint64_t count) {
  return "[" + joined(list, count, [](int64_t i) { return std::to_string(i); }) + "]";
}

std::string attribute_text(const Attribute& attribute) {
  const tenon_value value = attribute.value();
  switch (value.tag) {
    case TENON_VALUE_NONE:
      return "none";
    case TENON_VALUE_INT:
      return std::to_string(value.v.i);
    case TENON_VALUE_BOOL:
      return value.v.i ? "true" : "false";
    case TENON_VALUE_FLOAT:
      return number_text(value.v.f);
    case TENON_VALUE_DTYPE:
      return host->dtype_name(static_cast<int32_t>(value.v.i));
    case TENON_VALUE_DEVICE:
      return "@" + device_text(static_cast<tenon_device_id>(value.v.i));
    case TENON_VALUE_INTS:
      return integer_list(static_cast<const int64_t*>(value.v.p), value.aux);
    case TENON_VALUE_FLOATS:
      return "[" + joined(static_cast<const double*>(value.v.p), value.aux, number_text) + "]";
    case TENON_VALUE_COMPLEX: {
      auto* parts = static_cast<const double*>(value.v.p);
      return "complex(" + number_text(parts[0]) + ", " + number_text(parts[1]) + ")";
    }
    case TENON_VALUE_STRING:
      return quoted({static_cast<const char*>(value.v.p), value.aux});
    default:
      return "?";
  }
}

bool is_default(const tenon_param_def& param, const Operand& operand) {
  if (operand.kind != Operand::kAttribute) return false;
  if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT)
    return operand.attribute == Attribute(param.default_value);
  return operand.attribute.tag() == TENON_VALUE_NONE;
}

class Printer {
 public:
  explicit Printer(bool with_locations) : with_locations_(with_locations) {}

  void print_body(const Graph& graph, const std::string& indent) {
    std::map<ValueId, std::string> outer = std::move(names_);
    names_.clear();
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      line(indent + "input " + typed(graph, graph.inputs[i]) + name_text(graph.input_names, i));
    for (const Leaf& leaf : graph.leaves) {
      std::string text = (leaf.is_constant ? "constant " : "leaf ") + typed(graph, leaf.value);
      if (!leaf.name.empty()) text += " " + quoted(leaf.name);
      line(indent + text);
    }
    for (const Step& step : graph.steps) print_step(graph, step, indent);
    for (const GradUpdate& update : graph.grads)
      line("grad " + name(update.tensor) + " = " +
           (update.grad == kNoValueId ? "none" : name(update.grad)) +
           (update.from_none ? " from none" : ""));
    std::string results;
    for (size_t i = 0; i < graph.results.size(); ++i)
      results += (i ? ", " : " ") + name(graph.results[i]) + name_text(graph.result_names, i);
    line(indent + "return" + results);
    names_ = std::move(outer);
  }

  void print_step(const Graph& graph, const Step& step, const std::string& indent) {
    std::string arguments = argument_text(step);
    std::string text;
    for (size_t i = 0; i < step.results.size(); ++i) {
      if (i) text += ", ";
      text += is_given(step, i) ? name(step.results[i]) : typed(graph, step.results[i]);
    }
    text += " = " + std::string(step_name(step)) + "(" + arguments + ")";
    if (step.kind == StepKind::kCall && !step.is_recorded) text += " no_grad";
    if (with_locations_ && !step.location.file.empty())
      text += " at " + quoted(step.location.file.text()) + ":" + std::to_string(step.location.line);
    if (step.regions.empty()) return line(indent + text);
    line(indent + text + " {");
    for (size_t i = 0; i < step.regions.size(); ++i) {
      if (i) line(indent + "} {");
      print_body(step.regions[i], indent + "  ");
    }
    line(indent + "}");
  }

  void line(const std::string& text) { out += text + "\n"; }

  std::string out;

 private:
  static std::string name_text(const std::vector<std::string>& names, size_t i) {
    return i < names.size() && !names[i].empty() ? " " + quoted(names[i]) : "";
  }
  std::string name(ValueId id) {
    auto found = names_.find(id);
    return found == names_.end() ? "%?" : found->second;
  }
  std::string typed(const Graph& graph, ValueId id) {
    std::string& name = names_[id];
    name = "%" + std::to_string(names_.size() - 1);
    return name + ": " + type_text(graph.values[id]);
  }
  std::string operand_text(const Operand& operand) {
    if (operand.kind == Operand::kValue) return name(operand.value);
    if (operand.kind == Operand::kAttribute) return attribute_text(operand.attribute);
    return "[" + joined(operand.list, operand.list.size(), [&](ValueId id) { return name(id); }) +
           "]";
  }
  std::string argument_text(const Step& step) {
    std::string text;
    auto add = [&](const std::string& argument) { text += (text.empty() ? "" : ", ") + argument; };
    if (step.kind == StepKind::kCall) {
      const tenon_op_def& def = *host->op_def(step.op);
      bool is_first = true;  // nothing was left out or named yet
      for (uint32_t i = 0; i < def.nparams && i < step.operands.size(); ++i) {
        const Operand& operand = step.operands[i];
        is_first = is_first && operand.kind != Operand::kAttribute;
        if (is_first)
          add(operand_text(operand));
        else if (!is_default(def.params[i], operand))
          add(std::string(def.params[i].name) + "=" + operand_text(operand));
      }
      return text;
    }
    for (const Operand& operand : step.operands) add(operand_text(operand));
    auto list = [](const std::vector<int64_t>& l) { return integer_list(l.data(), l.size()); };
    if (step.kind == StepKind::kView) {
      add("strides=" + list(step.strides));
      add("base_strides=" + list(step.base_strides));
      add("offset=" + std::to_string(step.offset));
    }
    if (step.kind == StepKind::kWhile || step.kind == StepKind::kScan)
      add("carried=" + std::to_string(step.carried));
    if (step.kind == StepKind::kScan) add("scanned=" + std::to_string(step.scanned));
    return text;
  }

  bool with_locations_;
  std::map<ValueId, std::string> names_;
};

void collect_operators(const Graph& graph, std::map<std::string, uint64_t>& found) {
  for (const Step& step : graph.steps) {
    if (step.kind == StepKind::kCall) found[step_name(step)] = step.schema_hash;
    for (const Graph& region : step.regions) collect_operators(region, found);
  }
}

}  // namespace

std::string program_text(const Program& program, bool with_locations) {
  if (program.dimensions) return program.dimensions->text;
  Printer printer(with_locations);
  printer.line(has_names(program.graph) ? "tenon.program 2" : "tenon.program 1");
  if (program.is_detached) printer.line("detached");
  if (program.needs_disjoint_inputs) printer.line("inputs_apart");
  if (!program.refuses_gradients.empty() && with_locations)
    printer.line("refuses_gradients " + quoted(program.refuses_gradients));
  std::map<std::string, uint64_t> operators;
  collect_operators(program.graph, operators);
  for (const auto& [name, hash] : operators) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    printer.line("operator " + name + " " + digits);
  }
  printer.print_body(program.graph, "");
  return printer.out;
}

}  // namespace tenon::graph
