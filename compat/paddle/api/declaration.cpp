// SPDX-License-Identifier: Apache-2.0
#include "api/declaration.hpp"

#include <tenon/schema.hpp>

#include <algorithm>
#include <cctype>

#include "core/host.hpp"

namespace tenon::paddle {
namespace {

using ::paddle::Parameter;
using ::paddle::ParameterKind;

struct TypeRow {
  AttributeType type;
  const char* name;
};
constexpr TypeRow kTypes[] = {
    {AttributeType::kBool, "bool"},
    {AttributeType::kInt, "int"},
    {AttributeType::kInt64, "int64_t"},
    {AttributeType::kFloat, "float"},
    {AttributeType::kDouble, "double"},
    {AttributeType::kString, "std::string"},
    {AttributeType::kInts, "std::vector<int>"},
    {AttributeType::kInt64s, "std::vector<int64_t>"},
    {AttributeType::kFloats, "std::vector<float>"},
    {AttributeType::kDoubles, "std::vector<double>"},
    {AttributeType::kStrings, "std::vector<std::string>"},
};

bool take_suffix(std::string& text, const char* suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - std::char_traits<char>::length(suffix));
  return true;
}

// A name that schema, C++ and Python all take.
std::string identifier_of(const std::string& text) {
  std::string result;
  for (unsigned char c : text) result += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : '_';
  if (result.empty() || !std::isalpha(static_cast<unsigned char>(result[0]))) result = "x" + result;
  if (schema::is_reserved_word(result)) result += "_";
  return result;
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

[[noreturn]] void refuse(const ::paddle::OpMetaInfo& info, const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, "operator `" + info.name + "`: " + text);
}

Attribute parse_attribute(const ::paddle::OpMetaInfo& info, const std::string& text) {
  size_t colon = text.find(':');
  std::string name = trimmed(text.substr(0, colon));
  std::string type = colon == text.npos ? "" : trimmed(text.substr(colon + 1));
  std::string known;
  for (const TypeRow& row : kTypes) {
    if (type == row.name) return {name, identifier_of(name), row.type};
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  refuse(info, "attribute \"" + text + "\": expected \"name: type\" with a type of " + known);
}

const char* kind_name(const Parameter& parameter) {
  switch (parameter.kind) {
    case ParameterKind::kValue:
      return "an input";
    case ParameterKind::kList:
      return "an input list (std::vector)";
    case ParameterKind::kOptional:
      return "a paddle::optional input";
    case ParameterKind::kOptionalList:
      return "a paddle::optional input list";
    case ParameterKind::kOutput:
      return "Tensor*";
    case ParameterKind::kOutputList:
      return "std::vector<Tensor*>";
    default:
      return parameter.attribute;
  }
}

ParameterKind input_kind(const Name& name) {
  if (name.is_optional)
    return name.is_list ? ParameterKind::kOptionalList : ParameterKind::kOptional;
  return name.is_list ? ParameterKind::kList : ParameterKind::kValue;
}

// An author's function against the declaration: the parameters that stand for inputs and
// attributes.
class FunctionCheck {
 public:
  FunctionCheck(const Declaration& op, const char* what, const Parameter* parameters, size_t count)
      : op_(op), what_(what), parameters_(parameters), count_(count) {}

  void inputs() {
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      ParameterKind expected = input_kind(op_.inputs[i]);
      bool fits = at_ < count_ && (parameters_[at_].kind == expected ||
                                   (parameters_[at_].kind == ParameterKind::kListOrInts &&
                                    expected == ParameterKind::kValue));
      if (!fits)
        mismatch("for input \"" + op_.inputs[i].text + "\" ",
                 kind_name({expected, nullptr, false}));
      ++at_;
    }
  }
  // All of them, or the first ones where a function need not take any.
  void attributes(bool may_end) {
    for (const Attribute& attribute : op_.attributes) {
      if (may_end && at_ == count_) return;
      const char* expected = attribute_type_name(attribute.type);
      if (at_ >= count_ || !parameters_[at_].attribute ||
          std::string_view(parameters_[at_].attribute) != expected)
        mismatch("for attribute \"" + attribute.name + "\" ", expected);
      ++at_;
    }
  }
  void outputs() {
    for (size_t j = 0; j < op_.outputs.size(); ++j) {
      if (op_.written_input[j] >= 0) continue;
      ParameterKind expected =
          op_.outputs[j].is_list ? ParameterKind::kOutputList : ParameterKind::kOutput;
      if (at_ >= count_ || parameters_[at_].kind != expected)
        mismatch("for output \"" + op_.outputs[j].text + "\" ",
                 kind_name({expected, nullptr, false}));
      ++at_;
    }
  }
  void end() {
    if (at_ != count_)
      refuse(op_.info, std::string(what_) + " takes " + std::to_string(count_) +
                           " parameters, expected " + std::to_string(at_) +
                           ": inputs, then attributes, then outputs (Tensor*) if it returns void");
  }

 private:
  [[noreturn]] void mismatch(const std::string& where, const char* expected) {
    refuse(op_.info, std::string(what_) + ", parameter " + std::to_string(at_ + 1) + ": expected " +
                         where + expected + ", got " +
                         (at_ < count_ ? kind_name(parameters_[at_]) : "no parameter"));
  }

  const Declaration& op_;
  const char* what_;
  const Parameter* parameters_;
  size_t count_;
  size_t at_ = 0;
};

}  // namespace

const char* attribute_type_name(AttributeType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.name;
  return "?";
}

Name::Name(const std::string& written) : text(written), base(written) {
  for (bool found = true; found;) {
    found = true;
    if (take_suffix(base, "@GRAD"))
      ++gradients;
    else if (take_suffix(base, "@NEW"))
      is_new = true;
    else if (take_suffix(base, "@VECTOR"))
      is_list = true;
    else if (take_suffix(base, "@OPTIONAL"))
      is_optional = true;
    else
      found = false;
  }
  identifier = base;
  for (int i = 0; i < gradients; ++i) identifier += "_grad";
  if (is_new) identifier += "_new";
  identifier = identifier_of(identifier);
}

int Declaration::find_input(const Name& name) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is(name)) return static_cast<int>(i);
  return -1;
}

int Declaration::find_written(size_t input) const {
  for (size_t j = 0; j < written_input.size(); ++j)
    if (written_input[j] == static_cast<int>(input)) return static_cast<int>(j);
  return -1;
}

int find_differentiated(const Name& output, const std::vector<Name>& inputs) {
  for (int fewer : {1, 0}) {
    if (fewer == 0 && !output.is_new) break;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].base == output.base && inputs[i].gradients + fewer == output.gradients &&
          !inputs[i].is_new)
        return static_cast<int>(i);
  }
  return -1;
}

int Declaration::find_attribute(const std::string& name) const {
  for (size_t i = 0; i < attributes.size(); ++i)
    if (attributes[i].name == name) return static_cast<int>(i);
  return -1;
}

Declaration::Declaration(const ::paddle::OpMetaInfo& registered) : info(registered) {
  std::string name = identifier_of(info.name);
  while (name.ends_with('_')) name.pop_back();  // in Tenon that is the in-place form
  operator_name = "paddle_custom::" + name;
  for (const std::string& text : info.inputs) inputs.emplace_back(text);
  for (const std::string& text : info.outputs) outputs.emplace_back(text);
  for (const std::string& text : info.attrs) attributes.push_back(parse_attribute(info, text));
  if (outputs.empty()) refuse(info, "expected at least one output; add .Outputs({...})");
  if (!info.kernel.run) refuse(info, "expected a kernel; add .SetKernelFn(PD_KERNEL(function))");

  std::vector<std::string> used;
  auto make_unique = [&](std::string& identifier) {
    while (std::find(used.begin(), used.end(), identifier) != used.end()) identifier += "_";
    used.push_back(identifier);
  };
  for (Name& input : inputs) make_unique(input.identifier);
  for (Attribute& attribute : attributes) make_unique(attribute.identifier);

  size_t written = 0;
  for (const Name& output : outputs) {
    int target = -1;
    for (const auto& [from, to] : info.inplace_map)
      if (to == output.text) target = find_input(Name(from));
    if (target >= 0 && inputs[static_cast<size_t>(target)].is_list != output.is_list)
      refuse(info, "in-place output \"" + output.text +
                       "\" and its input must both be lists, or neither");
    written_input.push_back(target);
    written += target >= 0;
    is_variable |= output.is_list || output.is_optional ||
                   (target >= 0 && inputs[static_cast<size_t>(target)].is_optional);
  }
  if (written != info.inplace_map.size())
    refuse(info, "SetInplaceMap: expected pairs of an input and an output of the operator");
  is_in_place = written == outputs.size();

  FunctionCheck kernel(*this, "its kernel", info.kernel.parameters, info.kernel.count);
  kernel.inputs();
  kernel.attributes(false);
  if (!info.kernel.returns_outputs) kernel.outputs();
  kernel.end();
  // Calls with data can do without these two functions: their results are what the kernel made.
  auto leave_off_unless_fitting = [&](const char* what, auto& function) {
    if (!function.run) return;
    try {
      FunctionCheck check(*this, what, function.parameters, function.count);
      check.inputs();
      check.attributes(true);
      check.end();
    } catch (const Error& error) {
      warnings.push_back(std::string(error.what()) +
                         "; the function is left off: results have the form that the kernel "
                         "gives them, and none on meta");
      function = {};
      lacks_infer = true;
    }
  };
  leave_off_unless_fitting("its shape function", info.infer_shape);
  leave_off_unless_fitting("its dtype function", info.infer_dtype);
}

}  // namespace tenon::paddle
