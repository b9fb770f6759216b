// SPDX-License-Identifier: Apache-2.0
#include <expression/host_functions.hpp>
#include <limits>
#include <map>
#include <stdexcept>
#include <support/text.hpp>

#include "code.hpp"

namespace tenon::interpreter {
namespace {

using codegen::Value;
using codegen::ValueType;

Fold fold_of(const codegen::Operator& op) {
  static const std::map<std::string, Fold> folds = {{"negative", Fold::kNegative},
                                                    {"add", Fold::kAdd},
                                                    {"subtract", Fold::kSubtract},
                                                    {"multiply", Fold::kMultiply},
                                                    {"divide", Fold::kDivide}};
  auto found = folds.find(op.name);
  return op.name_space == "tenon" && found != folds.end() ? found->second : Fold::kNone;
}

void set_constant(Code& code, const codegen::Node& node) {
  switch (code.type) {
    case ValueType::Int:
      code.constant = tenon::boxed(node.integer);
      break;
    case ValueType::Float:
      code.constant = tenon::boxed(!node.is_infinity_or_nan() ? node.number
                                   : node.text == "inf" ? std::numeric_limits<double>::infinity()
                                                        : std::numeric_limits<double>::quiet_NaN());
      break;
    case ValueType::Bool:
      code.constant = tenon::boxed(node.boolean);
      break;
    case ValueType::String:
      code.text = std::make_shared<const std::string>(node.text);
      code.constant = tenon::boxed(std::string_view(*code.text));
      break;
    case ValueType::Dtype:
      code.constant = boxed_dtype(*codegen::find_dtype(node.text));
      break;
    default:
      break;
  }
}

Code::Fact fact_of(const std::string& name) {
  if (name == "shape") return Code::Fact::kShape;
  if (name == "ndim") return Code::Fact::kNdim;
  if (name == "numel") return Code::Fact::kNumel;
  return name == "dtype" ? Code::Fact::kDtype : Code::Fact::kDevice;
}

Code compile(const Value& value) {
  Code code;
  code.form = value.form;
  code.type = value.type.base;
  code.role = value.role;
  code.index = value.index;
  for (const Value& child : value.children) code.children.push_back(compile(child));
  switch (value.form) {
    case Value::Constant:
      set_constant(code, value.node);
      break;
    case Value::Arithmetic:
      code.sign = sign_of(value.text, value.children.size() == 1);
      break;
    case Value::IsNone:
      code.sign = sign_of(value.text, false);
      break;
    case Value::HostCall:
      code.function = host_function(value.text, value.type.base == ValueType::Int);
      if (!code.function) throw std::logic_error("the interpreter has no function " + value.text);
      break;
    case Value::Meta:
      code.fact = fact_of(value.text);
      break;
    case Value::OperatorCall: {
      const std::string name = value.op->qualified_name();
      code.callee = std::make_shared<Callee>(name, codegen::fnv1a(value.op->schema()));
      code.fold = fold_of(*value.op);
      code.bound = value.bound;
      while (!code.bound.empty() && code.bound.back() < 0) code.bound.pop_back();
      for (const codegen::Param& param : value.op->signature.params)
        code.params.push_back(codegen::type_of(param).base);
      code.results = static_cast<uint32_t>(value.op->signature.results.size());
      break;
    }
    default:
      break;
  }
  return code;
}

}  // namespace

Program compile(const codegen::Program& program) {
  Program result;
  for (const auto& [name, value] : program.steps) result.steps.push_back(compile(value));
  result.result = compile(program.result);
  return result;
}

}  // namespace tenon::interpreter
