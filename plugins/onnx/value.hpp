// SPDX-License-Identifier: Apache-2.0
// What a name of a model stands for while it is imported. A tensor with data is known; one of the device "meta" is a
// value of the program that is built.
#pragma once

#include <tenon/error.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tenon::onnx {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Texts = std::vector<std::string>;

struct Dtype {
  int32_t id;
};

// A tensor of texts: numbers into a sorted list of different texts. What moves elements moves the numbers, whether they are known or
// depend on the inputs.
struct Text {
  Tensor codes;  // int64
  std::shared_ptr<const Texts> vocabulary;
};

class Value;
using Values = std::vector<Value>;

class Value {
 public:
  // Nothing: an input or attribute that is absent.
  Value() = default;
  Value(Tensor tensor) : held_(std::move(tensor)) {}
  Value(int64_t number) : held_(number) {}
  Value(int number) : held_(int64_t{number}) {}
  Value(double number) : held_(number) {}
  Value(bool truth) : held_(truth) {}
  Value(Dtype dtype) : held_(dtype) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(const char* text) : held_(std::string(text)) {}
  Value(Ints list) : held_(std::move(list)) {}
  Value(Floats list) : held_(std::move(list)) {}
  Value(Texts list) : held_(std::move(list)) {}
  Value(Text text) : held_(std::move(text)) {}
  // A sequence, or several results.
  Value(Values list) : held_(std::move(list)) {}

  template <class Kind>
  const Kind* get() const {
    return std::get_if<Kind>(&held_);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(held_); }
  bool is_tensor() const { return get<Tensor>() != nullptr; }
  // The tensor; throws Error with `what` for anything else.
  const Tensor& tensor(const std::string& what) const;
  // "a tensor of float32 [2, 3]", "none", for messages.
  std::string describe() const;

 private:
  std::variant<std::monostate, Tensor, int64_t, double, bool, Dtype, std::string, Ints, Floats,
               Texts, Text, Values>
      held_;
};

// Its data are there when the model is imported: a constant, or computed from constants and shapes.
inline bool is_known(const Tensor& tensor) { return tensor->device != TENON_DEVICE_META; }
std::string describe(const tenon_tensor& tensor);
inline Ints shape_of(const Tensor& tensor) {
  return Ints(tensor->shape, tensor->shape + tensor->ndim);
}

// Numbers of a known tensor or of a host value. Each throws Error: `what`, what was expected, what was got.
Ints ints_of(const Value& value, const std::string& what);
Floats floats_of(const Value& value, const std::string& what);
int64_t int_of(const Value& value, const std::string& what);
double float_of(const Value& value, const std::string& what);
bool bool_of(const Value& value, const std::string& what);

// A known tensor of these elements.
Tensor make_known(int32_t dtype, const Ints& shape);
Tensor known_ints(const Ints& list);      // int64, one axis
Tensor known_int(int64_t number);         // int64, 0-d
Tensor known_floats(const Floats& list);  // float32, one axis

// An axis counted from the front.
int64_t normal_axis(int64_t axis, int64_t ndim, const std::string& what);

}  // namespace tenon::onnx
