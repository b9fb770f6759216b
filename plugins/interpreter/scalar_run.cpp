// SPDX-License-Identifier: Apache-2.0
#include "scalar_run.hpp"

#include <expression/operator_names.hpp>

#include "item.hpp"

namespace tenon::interpreter {
namespace {

using codegen::Primitive;
using codegen::ScalarStep;
using lowering::Do;
using lowering::Value;

bool is_text(const Value& value) { return value.number.tag == TENON_VALUE_STRING; }

bool same_shape(const tenon_tensor& a, const tenon_tensor& b) {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape);
}

// What the arithmetic of numbers is called among opcodes.
lowering::Step step_on_numbers(const ScalarStep& step) {
  const std::string& op = step.text;
  auto known = [&](Do what, const std::string& name, Primitive::Family family) {
    return lowering::Step{what, static_cast<uint8_t>(codegen::primitive_of(name, family).opcode)};
  };
  if (op == "negative") return known(Do::Unary, op, Primitive::Unary);
  if (op == "logical_and") return known(Do::Binary, "bitwise_and", Primitive::Binary);
  if (op == "logical_or") return known(Do::Binary, "bitwise_or", Primitive::Binary);
  for (const char* name : {"equal", "not_equal", "less", "less_equal"})
    if (op == name) return known(Do::Compare, op, Primitive::Compare);
  for (const char* name : {"add", "subtract", "multiply", "divide"})
    if (op == name) return known(Do::Binary, op, Primitive::Binary);
  return {Do::Input};
}

tenon_value beside(const Value& x, const Value& other) {
  if (!x.is_number()) return TensorArg(x.tensor).value();
  const int32_t dtype = other.tensor ? int32_t{other.tensor->dtype} : int32_t{TENON_DTYPE_F32};
  return lowering::number_for(x.number, dtype).value();
}

}  // namespace

ScalarCodes compile(const codegen::ScalarProgram& program) {
  ScalarCodes codes;
  for (const ScalarStep& step : program) {
    ScalarCode code;
    code.step = step;
    // `a > b` is `b < a`, of numbers too.
    if (step.form == ScalarStep::Call && (step.text == "greater" || step.text == "greater_equal")) {
      code.step.text = step.text == "greater" ? "less" : "less_equal";
      std::swap(code.step.a, code.step.b);
    }
    if (step.form == ScalarStep::Call) {
      code.callee = std::make_shared<Callee>("tenon::" + code.step.text, 0);
      code.on_numbers = step_on_numbers(code.step);
    }
    codes.push_back(std::move(code));
  }
  for (const ScalarCode& code : codes) {
    const int operands[] = {code.step.a, code.step.b, code.step.c};
    for (int i = 0; i < code.step.operands; ++i) ++codes[static_cast<size_t>(operands[i])].readers;
  }
  return codes;
}

ScalarRun::ScalarRun(const ScalarCodes& codes, const lowering::Surroundings& around)
    : codes_(codes), around_(around), slots_(codes.size()) {
  for (size_t i = 0; i < codes.size(); ++i) slots_[i].readers = codes[i].readers;
}

tenon_status ScalarRun::result_into(tenon_tensor* out) {
  // Integers of what is none are converted on purpose, which writing into `out` would refuse to do.
  const bool truncates = lowering::is_integer(out->dtype) && !lowering::is_integer(around_.work);
  Value result = compute(codes_.back(), truncates ? nullptr : out);
  Scope& scope = around_.scope;
  if (!scope.ok() || is_written_) return scope.status();
  // A part of the input as it is, or a number: copied, with whatever conversion that takes.
  if (result.is_number()) result = filled(scope, {}, result.number, out->dtype, out->device);
  if (!scope.ok()) return scope.status();
  Tensor source =
      same_shape(*result.tensor.get(), *out)
          ? result.tensor
          : primitive::expand(scope, result.tensor, {out->shape, out->shape + out->ndim});
  source = converted(scope, source, out->dtype);
  static Callee& clone = *new Callee("tenon::clone", 0);
  tenon_value arg = TensorArg(source).value(), target = TensorArg(out).value();
  clone.run(scope, &arg, 1, &target, 1);
  return scope.status();
}

Value ScalarRun::value(size_t index) {
  Slot& slot = slots_[index];
  if (!slot.value) slot.value.emplace(compute(codes_[index], nullptr));
  if (slot.readers > 1) {
    --slot.readers;
    return *slot.value;
  }
  // The last reader takes it, so that memory is free, and used again, as soon as possible.
  Value result = std::move(*slot.value);
  slot.value.reset();
  return result;
}

Value ScalarRun::compute(const ScalarCode& code, tenon_tensor* out) {
  if (!around_.scope.ok()) return ScalarArg(0);
  const ScalarStep& step = code.step;
  switch (step.form) {
    case ScalarStep::Input:
      return input(static_cast<uint32_t>(step.a));
    case ScalarStep::Attribute:
      return ScalarArg(around_.args[step.a]);
    case ScalarStep::IsNone:
      return ScalarArg(around_.args[step.a].tag == TENON_VALUE_NONE);
    case ScalarStep::Float:
      return ScalarArg(step.number);
    case ScalarStep::Int:
      return ScalarArg(step.integer);
    case ScalarStep::Bool:
      return ScalarArg(step.integer != 0);
    case ScalarStep::Text:
      return ScalarArg(tenon::boxed(std::string_view(step.text)));
    case ScalarStep::Lowest:
    case ScalarStep::Highest:
      return lowering::limit(step.form == ScalarStep::Highest, around_.work);
    case ScalarStep::Partial:
      return around_.partial;
    case ScalarStep::Count:
      return ScalarArg(around_.count);
    case ScalarStep::Select:
      return select(code, out);
    case ScalarStep::Call:
      return call(code, out);
  }
  return ScalarArg(0);
}

Value ScalarRun::input(uint32_t index) {
  const tenon_value& arg = around_.args[index];
  if (arg.tag != TENON_VALUE_TENSOR) return ScalarArg(arg);
  Tensor x = Tensor::borrow(static_cast<tenon_tensor*>(arg.v.p));
  return around_.promoted >> index & 1 ? converted(around_.scope, x, around_.work) : x;
}

Value ScalarRun::call(const ScalarCode& code, tenon_tensor* out) {
  const bool is_unary = code.step.operands == 1;
  Value a = value(static_cast<size_t>(code.step.a));
  Value b = is_unary ? a : value(static_cast<size_t>(code.step.b));
  if (!around_.scope.ok()) return ScalarArg(0);
  if (a.is_number() && b.is_number()) {
    if (is_text(a) && is_text(b)) {
      const bool equal = std::string_view(static_cast<const char*>(a.number.v.p), a.number.aux) ==
                         std::string_view(static_cast<const char*>(b.number.v.p), b.number.aux);
      return ScalarArg(equal == (code.step.text == "equal"));
    }
    if (code.step.text == "logical_not") return ScalarArg(!a.truth());
    if (code.on_numbers.what != Do::Input)
      if (auto number = lowering::fold(code.on_numbers, a.number, b.number)) return *number;
    a = as_tensor(a);
    if (is_unary) b = a;
  }
  tenon_value args[2] = {beside(a, b), beside(b, a)};
  return run(*code.callee, args, is_unary ? 1 : 2, fits(out, a, b) ? out : nullptr);
}

Value ScalarRun::select(const ScalarCode& code, tenon_tensor* out) {
  Value condition = value(static_cast<size_t>(code.step.a));
  if (condition.is_number())
    return value(static_cast<size_t>(condition.truth() ? code.step.b : code.step.c));
  Value x = value(static_cast<size_t>(code.step.b)), y = value(static_cast<size_t>(code.step.c));
  if (!around_.scope.ok()) return ScalarArg(0);
  if (x.is_number() && y.is_number()) x = as_tensor(x);
  static Callee& where = *new Callee("tenon::where", 0);
  tenon_value args[3] = {TensorArg(condition.tensor).value(), beside(x, y), beside(y, x)};
  return run(where, args, 3, fits(out, condition, x) || fits(out, x, y) ? out : nullptr);
}

Value ScalarRun::as_tensor(const Value& x) {
  const int32_t dtype = x.number.tag == TENON_VALUE_BOOL ? int32_t{TENON_DTYPE_BOOL} : around_.work;
  return filled(around_.scope, {}, x.number, dtype, around_.device);
}

Value ScalarRun::run(Callee& callee, tenon_value* args, uint32_t nargs, tenon_tensor* out) {
  tenon_value result = TensorArg(out).value();
  if (!callee.run(around_.scope, args, nargs, &result, 1)) return ScalarArg(0);
  if (!out) return Tensor::adopt(static_cast<tenon_tensor*>(result.v.p));
  is_written_ = true;
  return Tensor::borrow(out);
}

// Operands are of the shape of all elements together, or one number for all.
bool ScalarRun::fits(const tenon_tensor* out, const Value& a, const Value& b) const {
  if (!out) return false;
  return (a.tensor && same_shape(*a.tensor.get(), *out)) ||
         (b.tensor && same_shape(*b.tensor.get(), *out));
}

Tensor converted(Scope& scope, const Tensor& x, int32_t dtype) {
  if (!scope.ok() || x->dtype == dtype) return x;
  static Callee& cast = *new Callee("tenon::cast", 0);
  tenon_value args[2] = {TensorArg(x).value(), boxed_dtype(dtype)}, out = kNoValue;
  if (!cast.run(scope, args, 2, &out, 1)) return {};
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

Tensor filled(Scope& scope, const std::vector<int64_t>& shape, const tenon_value& number,
              int32_t dtype, tenon_device_id device) {
  static Callee& full = *new Callee("tenon::full", 0);
  tenon_value args[4] = {IntList(shape).value(), lowering::number_for(number, dtype).value(),
                         boxed_dtype(dtype), call::boxed_device(device)};
  tenon_value out = kNoValue;
  if (!full.run(scope, args, 4, &out, 1)) return {};
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

tenon_status give_result(Scope& scope, Value value, const std::vector<int64_t>& shape,
                         int32_t dtype, tenon_device_id device, tenon_value* out) {
  if (!scope.ok()) return scope.status();
  Tensor result = value.is_number() ? filled(scope, shape, value.number, dtype, device)
                                    : std::move(value.tensor);
  result = converted(scope, result, dtype);
  if (!scope.ok()) return scope.status();
  const bool same = static_cast<size_t>(result->ndim) == shape.size() &&
                    std::equal(shape.begin(), shape.end(), result->shape);
  // An argument as it came, or one number for all: in memory of its own.
  if (!same || host->tensor_use_count(result.get()) > 1) {
    const Tensor source = same ? result : primitive::expand(scope, result, shape);
    static Callee& clone = *new Callee("tenon::clone", 0);
    tenon_value arg = TensorArg(source).value(), copy = kNoValue;
    if (!clone.run(scope, &arg, 1, &copy, 1)) return scope.status();
    result = Tensor::adopt(static_cast<tenon_tensor*>(copy.v.p));
  }
  *out = TensorArg(result.release()).value();
  return TENON_OK;
}

}  // namespace tenon::interpreter
