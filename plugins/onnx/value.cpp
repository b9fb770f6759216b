// SPDX-License-Identifier: Apache-2.0
#include "value.hpp"

#include <cstring>

namespace tenon::onnx {
namespace {

std::string list_text(const Ints& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + std::to_string(list[i]);
  return text + "]";
}

[[noreturn]] void refuse(const std::string& what, const std::string& expected, const Value& got) {
  throw Error(TENON_INVALID_ARGUMENT, what + ": expected " + expected + ", got " + got.describe());
}

[[noreturn]] void refuse_unknown(const std::string& what, const Value& got) {
  throw Error(TENON_UNSUPPORTED,
              what +
                  ": expected a value that is known when the model is loaded (a constant, or "
                  "computed from shapes), got " +
                  got.describe() + " that depends on the inputs");
}

Tensor call_one(const char* name, tenon_value* args, uint32_t nargs) {
  const ErrorSink err;
  tenon_value out = kNoValue;
  err.check(host->op_call(host->op_find(name), args, nargs, &out, 1, err));
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

// The elements of a known tensor as another dtype, row-major.
template <class Number>
std::vector<Number> elements(const Tensor& tensor, int32_t dtype) {
  tenon_value args[2] = {boxed(tensor.get()), boxed_dtype(dtype)};
  const Tensor cast = call_one("tenon::cast", args, 2);
  const auto* data = static_cast<const Number*>(cast->data);
  return std::vector<Number>(data, data + cast->numel);
}

bool holds_integers(const Tensor& tensor) { return tensor->dtype <= TENON_DTYPE_I64; }
bool holds_reals(const Tensor& tensor) { return tensor->dtype <= TENON_DTYPE_F64; }

}  // namespace

std::string describe(const tenon_tensor& tensor) {
  return std::string(host->dtype_name(tensor.dtype)) + " " +
         list_text(Ints(tensor.shape, tensor.shape + tensor.ndim));
}

const Tensor& Value::tensor(const std::string& what) const {
  if (const Tensor* found = get<Tensor>()) return *found;
  throw Error(TENON_INVALID_ARGUMENT, what + ": expected a tensor, got " + describe());
}

std::string Value::describe() const {
  struct Describer {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(const Tensor& tensor) const {
      return "a tensor of " + onnx::describe(*tensor.get());
    }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return std::to_string(number); }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(Dtype dtype) const { return host->dtype_name(dtype.id); }
    std::string operator()(const std::string& text) const { return "'" + text + "'"; }
    std::string operator()(const Ints& list) const { return list_text(list); }
    std::string operator()(const Floats& list) const {
      return std::to_string(list.size()) + " floating point numbers";
    }
    std::string operator()(const Texts& list) const {
      return std::to_string(list.size()) + " texts";
    }
    std::string operator()(const Text& text) const {
      return "a tensor of text " + list_text(shape_of(text.codes));
    }
    std::string operator()(const Values& list) const {
      return "a sequence of " + std::to_string(list.size());
    }
  };
  return std::visit(Describer{}, held_);
}

Ints ints_of(const Value& value, const std::string& what) {
  if (const Ints* list = value.get<Ints>()) return *list;
  if (const int64_t* number = value.get<int64_t>()) return {*number};
  if (const Tensor* tensor = value.get<Tensor>()) {
    if (!holds_integers(*tensor)) refuse(what, "integers", value);
    if (!is_known(*tensor)) refuse_unknown(what, value);
    return elements<int64_t>(*tensor, TENON_DTYPE_I64);
  }
  refuse(what, "integers", value);
}

Floats floats_of(const Value& value, const std::string& what) {
  if (const Floats* list = value.get<Floats>()) return *list;
  if (const Ints* list = value.get<Ints>()) return Floats(list->begin(), list->end());
  if (const double* number = value.get<double>()) return {*number};
  if (const Tensor* tensor = value.get<Tensor>()) {
    if (!holds_reals(*tensor)) refuse(what, "numbers", value);
    if (!is_known(*tensor)) refuse_unknown(what, value);
    return elements<double>(*tensor, TENON_DTYPE_F64);
  }
  refuse(what, "numbers", value);
}

int64_t int_of(const Value& value, const std::string& what) {
  if (const bool* truth = value.get<bool>()) return *truth;
  const Ints list = ints_of(value, what);
  if (list.size() != 1) refuse(what, "one integer", value);
  return list[0];
}

double float_of(const Value& value, const std::string& what) {
  if (const int64_t* number = value.get<int64_t>()) return static_cast<double>(*number);
  const Floats list = floats_of(value, what);
  if (list.size() != 1) refuse(what, "one number", value);
  return list[0];
}

bool bool_of(const Value& value, const std::string& what) {
  if (const bool* truth = value.get<bool>()) return *truth;
  return int_of(value, what) != 0;
}

Tensor make_known(int32_t dtype, const Ints& shape) {
  const ErrorSink err;
  tenon_tensor* made;
  err.check(host->tensor_create(host->device_host(), dtype, static_cast<int32_t>(shape.size()),
                                shape.data(), &made, err));
  return Tensor::adopt(made);
}

Tensor known_ints(const Ints& list) {
  Tensor made = make_known(TENON_DTYPE_I64, {static_cast<int64_t>(list.size())});
  if (!list.empty()) std::memcpy(made->data, list.data(), list.size() * sizeof list[0]);
  return made;
}

Tensor known_int(int64_t number) {
  Tensor made = make_known(TENON_DTYPE_I64, {});
  std::memcpy(made->data, &number, sizeof number);
  return made;
}

Tensor known_floats(const Floats& list) {
  Tensor made = make_known(TENON_DTYPE_F32, {static_cast<int64_t>(list.size())});
  for (size_t i = 0; i < list.size(); ++i)
    static_cast<float*>(made->data)[i] = static_cast<float>(list[i]);
  return made;
}

int64_t normal_axis(int64_t axis, int64_t ndim, const std::string& what) {
  if (axis < -ndim || axis >= ndim)
    throw Error(TENON_OUT_OF_RANGE, what + ": expected an axis from " + std::to_string(-ndim) +
                                        " to " + std::to_string(ndim - 1) + ", got " +
                                        std::to_string(axis));
  return axis < 0 ? axis + ndim : axis;
}

}  // namespace tenon::onnx
