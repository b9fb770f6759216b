// SPDX-License-Identifier: Apache-2.0
#include "host_functions.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tensors.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxList = int64_t{1} << 20;  // numbers of a list that is made

int64_t divide_down(int64_t a, int64_t b, const std::string& what) {
  if (b == 0) throw Error(TENON_INVALID_ARGUMENT, what + ": division by 0");
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

const Value& at(const Values& arguments, size_t index, const std::string& what) {
  if (index >= arguments.size()) throw Error(TENON_INTERNAL, what + ": an argument is missing");
  return arguments[index];
}

size_t index_in(const Ints& list, int64_t index, const std::string& what) {
  return static_cast<size_t>(normal_axis(index, static_cast<int64_t>(list.size()), what));
}

Ints sequence(int64_t start, int64_t stop, const std::string& what) {
  if (stop - start > kMaxList)
    throw Error(TENON_INVALID_ARGUMENT, what + ": more numbers than a list may have");
  Ints list;
  for (int64_t i = start; i < stop; ++i) list.push_back(i);
  return list;
}

// Of integers an integer, else a float.
template <class Function>
Value of_two(const Values& arguments, const std::string& what, Function function) {
  const Value &a = at(arguments, 0, what), &b = at(arguments, 1, what);
  if (a.get<int64_t>() && b.get<int64_t>()) return function(*a.get<int64_t>(), *b.get<int64_t>());
  return function(float_of(a, what), float_of(b, what));
}

template <double (*kFunction)(double)>
Value of_number(const Values& arguments, Conversion&, const std::string& what) {
  return kFunction(float_of(at(arguments, 0, what), what));
}

int32_t dtype_argument(const Values& arguments, const std::string& what) {
  const Value& value = at(arguments, 0, what);
  const Dtype* dtype = value.get<Dtype>();
  if (!dtype) throw Error(TENON_INTERNAL, what + ": expected a dtype, got " + value.describe());
  return dtype->id;
}

// Of host values.
const std::map<std::string, HostFunction>& plain_functions() {
  static const std::map<std::string, HostFunction> table = {
      {"min",
       [](const Values& a, Conversion&, const std::string& what) {
         return of_two(a, what, [](auto x, auto y) { return Value(std::min(x, y)); });
       }},
      {"max",
       [](const Values& a, Conversion&, const std::string& what) {
         return of_two(a, what, [](auto x, auto y) { return Value(std::max(x, y)); });
       }},
      {"sqrt", of_number<std::sqrt>},
      {"exp", of_number<std::exp>},
      {"log", of_number<std::log>},
      {"floor", of_number<std::floor>},
      {"ceil", of_number<std::ceil>},
      {"pow",
       [](const Values& a, Conversion&, const std::string& what) {
         return Value(std::pow(float_of(at(a, 0, what), what), float_of(at(a, 1, what), what)));
       }},
      {"prod",
       [](const Values& a, Conversion&, const std::string& what) {
         int64_t product = 1;
         for (int64_t size : ints_of(at(a, 0, what), what))
           if (__builtin_mul_overflow(product, size, &product))
             throw Error(TENON_INVALID_ARGUMENT, what + ": more than 63 bits hold");
         return Value(product);
       }},
      {"repeat",
       [](const Values& a, Conversion&, const std::string& what) {
         const int64_t count = int_of(at(a, 1, what), what);
         if (count < 0 || count > kMaxList)
           throw Error(TENON_INVALID_ARGUMENT, what + ": " + std::to_string(count) + " numbers");
         return Value(Ints(static_cast<size_t>(count), int_of(at(a, 0, what), what)));
       }},
      {"slice",
       [](const Values& a, Conversion&, const std::string& what) {
         const Ints list = ints_of(at(a, 0, what), what);
         const auto count = static_cast<int64_t>(list.size());
         const auto bound = [&](size_t index) {
           int64_t to = int_of(at(a, index, what), what);
           return std::clamp<int64_t>(to < 0 ? to + count : to, 0, count);
         };
         const int64_t start = bound(1), stop = std::max(start, bound(2));
         return Value(Ints(list.begin() + start, list.begin() + stop));
       }},
  };
  return table;
}

// Of what is a value of either kind; there is no operator of the name.
const std::map<std::string, HostFunction>& own_functions() {
  static const std::map<std::string, HostFunction> table = {
      // The node's input by its number.
      {"input",
       [](const Values& a, Conversion& conversion, const std::string& what) {
         const auto index = static_cast<size_t>(int_of(at(a, 0, what), what));
         return index < conversion.inputs().size() ? conversion.inputs()[index] : Value();
       }},
      // A dtype by its number in ONNX; none or 0: the second argument.
      {"dtype",
       [](const Values& a, Conversion&, const std::string& what) {
         const Value& number = at(a, 0, what);
         if (number.is_none() || (a.size() == 2 && int_of(number, what) == 0))
           return at(a, 1, what);
         return Value(Dtype{dtype_of(int_of(number, what), what)});
       }},
      {"ints",
       [](const Values& a, Conversion&, const std::string& what) {
         return at(a, 0, what).is_none() ? Value() : Value(ints_of(at(a, 0, what), what));
       }},
      {"floats",
       [](const Values& a, Conversion&, const std::string& what) {
         return at(a, 0, what).is_none() ? Value() : Value(floats_of(at(a, 0, what), what));
       }},
      {"int",
       [](const Values& a, Conversion&, const std::string& what) {
         const Value& value = at(a, 0, what);
         if (const double* number = value.get<double>())
           return Value(static_cast<int64_t>(*number));
         return Value(int_of(value, what));
       }},
      {"float", [](const Values& a, Conversion&,
                   const std::string& what) { return Value(float_of(at(a, 0, what), what)); }},
      {"is_known",
       [](const Values& a, Conversion&, const std::string& what) {
         return Value(is_known(at(a, 0, what).tensor(what)));
       }},
      {"len",
       [](const Values& a, Conversion&, const std::string& what) {
         const Value& value = at(a, 0, what);
         if (const Values* list = value.get<Values>())
           return Value(static_cast<int64_t>(list->size()));
         if (const Floats* list = value.get<Floats>())
           return Value(static_cast<int64_t>(list->size()));
         return Value(static_cast<int64_t>(ints_of(value, what).size()));
       }},
      {"range",
       [](const Values& a, Conversion&, const std::string& what) {
         return Value(sequence(int_of(at(a, 0, what), what), int_of(at(a, 1, what), what), what));
       }},
      {"reversed",
       [](const Values& a, Conversion&, const std::string& what) {
         Ints list = ints_of(at(a, 0, what), what);
         std::reverse(list.begin(), list.end());
         return Value(list);
       }},
      {"insert",
       [](const Values& a, Conversion&, const std::string& what) {
         Ints list = ints_of(at(a, 0, what), what);
         const int64_t place = int_of(at(a, 1, what), what);
         const auto count = static_cast<int64_t>(list.size());
         list.insert(
             list.begin() + std::clamp<int64_t>(place < 0 ? place + count + 1 : place, 0, count),
             int_of(at(a, 2, what), what));
         return Value(list);
       }},
      {"remove",
       [](const Values& a, Conversion&, const std::string& what) {
         Ints list = ints_of(at(a, 0, what), what);
         list.erase(list.begin() +
                    static_cast<ptrdiff_t>(index_in(list, int_of(at(a, 1, what), what), what)));
         return Value(list);
       }},
      {"replace",
       [](const Values& a, Conversion&, const std::string& what) {
         Ints list = ints_of(at(a, 0, what), what);
         list[index_in(list, int_of(at(a, 1, what), what), what)] = int_of(at(a, 2, what), what);
         return Value(list);
       }},
      {"contains",
       [](const Values& a, Conversion&, const std::string& what) {
         const Ints list = ints_of(at(a, 0, what), what);
         return Value(std::find(list.begin(), list.end(), int_of(at(a, 1, what), what)) !=
                      list.end());
       }},
      // Axes counted from the front; none: all.
      {"axes",
       [](const Values& a, Conversion&, const std::string& what) {
         const int64_t ndim = int_of(at(a, 1, what), what);
         if (at(a, 0, what).is_none()) return Value(sequence(0, ndim, what));
         Ints list = ints_of(at(a, 0, what), what);
         for (int64_t& axis : list) axis = normal_axis(axis, ndim, what);
         return Value(list);
       }},
      {"axis",
       [](const Values& a, Conversion&, const std::string& what) {
         return Value(
             normal_axis(int_of(at(a, 0, what), what), int_of(at(a, 1, what), what), what));
       }},
      {"inverse",
       [](const Values& a, Conversion&, const std::string& what) {
         const Ints list = ints_of(at(a, 0, what), what);
         Ints result(list.size());
         for (size_t i = 0; i < list.size(); ++i)
           result[index_in(list, list[i], what)] = static_cast<int64_t>(i);
         return Value(result);
       }},
      {"broadcast_shapes",
       [](const Values& a, Conversion&, const std::string& what) {
         Ints x = ints_of(at(a, 0, what), what), y = ints_of(at(a, 1, what), what);
         if (x.size() < y.size()) std::swap(x, y);
         const size_t behind = x.size() - y.size();
         for (size_t i = 0; i < y.size(); ++i) {
           int64_t& size = x[behind + i];
           if (size != y[i] && size != 1 && y[i] != 1)
             throw Error(TENON_INVALID_ARGUMENT, what + ": the shapes do not broadcast");
           if (size == 1) size = y[i];
         }
         return Value(x);
       }},
      {"is_floating",
       [](const Values& a, Conversion&, const std::string& what) {
         const int32_t id = dtype_argument(a, what);
         return Value(id >= TENON_DTYPE_F8E4M3 && id <= TENON_DTYPE_F64);
       }},
      {"is_complex",
       [](const Values& a, Conversion&, const std::string& what) {
         const int32_t id = dtype_argument(a, what);
         return Value(id == TENON_DTYPE_C64 || id == TENON_DTYPE_C128);
       }},
      {"is_integer",
       [](const Values& a, Conversion&, const std::string& what) {
         const int32_t id = dtype_argument(a, what);
         return Value(id >= TENON_DTYPE_U8 && id <= TENON_DTYPE_I64);
       }},
      {"is_signed",
       [](const Values& a, Conversion&, const std::string& what) {
         const int32_t id = dtype_argument(a, what);
         return Value(id == TENON_DTYPE_I8 || id == TENON_DTYPE_I16 || id == TENON_DTYPE_I32 ||
                      id == TENON_DTYPE_I64 || id >= TENON_DTYPE_F8E4M3);
       }},
      // The tensor in this dtype; a step where it has another one.
      {"as_dtype",
       [](const Values& a, Conversion& conversion, const std::string& what) {
         const Dtype* dtype = at(a, 1, what).get<Dtype>();
         if (!dtype) throw Error(TENON_INTERNAL, what + ": expected a dtype");
         return Value(conversion.cast(at(a, 0, what).tensor(what), dtype->id));
       }},
      // A known tensor of these integers.
      {"known",
       [](const Values& a, Conversion&, const std::string& what) {
         const Value& value = at(a, 0, what);
         if (const int64_t* number = value.get<int64_t>()) return Value(known_int(*number));
         if (const double* number = value.get<double>()) {
           Tensor tensor = make_known(TENON_DTYPE_F32, {});
           *static_cast<float*>(tensor->data) = static_cast<float>(*number);
           return Value(tensor);
         }
         if (const Floats* list = value.get<Floats>()) return Value(known_floats(*list));
         return Value(known_ints(ints_of(value, what)));
       }},
      // Ends the import: the model asks for what is not there.
      {"refuse",
       [](const Values& a, Conversion& conversion, const std::string& what) -> Value {
         const std::string* text = at(a, 0, what).get<std::string>();
         conversion.refuse(text ? *text : what);
       }},
  };
  return table;
}

template <class Number>
Value arithmetic(const std::string& sign, Number a, Number b, const std::string& what) {
  if (sign == "+") return Value(static_cast<Number>(a + b));
  if (sign == "-") return Value(static_cast<Number>(a - b));
  if (sign == "*") return Value(static_cast<Number>(a * b));
  if (sign == "<") return a < b;
  if (sign == "<=") return a <= b;
  if (sign == ">") return a > b;
  if (sign == ">=") return a >= b;
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  throw Error(TENON_INTERNAL, what + ": no sign of host values");
}

}  // namespace

HostFunction find_host_function(const std::string& name, bool takes_tensors) {
  const auto own = own_functions().find(name);
  if (own != own_functions().end()) return own->second;
  const auto plain = plain_functions().find(name);
  return takes_tensors || plain == plain_functions().end() ? nullptr : plain->second;
}

Value host_arithmetic(const std::string& sign, const Value& left, const Value& right,
                      const std::string& what) {
  if (const std::string* a = left.get<std::string>()) {
    const std::string* b = right.get<std::string>();
    if (b && sign == "==") return *a == *b;
    if (b && sign == "!=") return *a != *b;
  }
  if (left.get<Dtype>() && right.get<Dtype>()) {
    const bool same = left.get<Dtype>()->id == right.get<Dtype>()->id;
    if (sign == "==") return same;
    if (sign == "!=") return !same;
  }
  const Ints *list = left.get<Ints>(), *other = right.get<Ints>();
  if (list && other && sign == "+") {
    Ints joined = *list;
    joined.insert(joined.end(), other->begin(), other->end());
    return joined;
  }
  if (list && other && (sign == "==" || sign == "!=")) return (*list == *other) == (sign == "==");
  const bool are_integers =
      (left.get<int64_t>() || left.get<bool>()) && (right.get<int64_t>() || right.get<bool>());
  if (are_integers) {
    const int64_t a = int_of(left, what), b = int_of(right, what);
    if (sign == "//") return divide_down(a, b, what);
    if (sign == "%") return b == -1 ? 0 : a - b * divide_down(a, b, what);
    if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
    // Sizes of a hostile model may be of any magnitude: they wrap around, and the operator refuses them.
    const auto wrapped = [&](uint64_t number) { return Value(static_cast<int64_t>(number)); };
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    if (sign == "+") return wrapped(ua + ub);
    if (sign == "-") return wrapped(ua - ub);
    if (sign == "*") return wrapped(ua * ub);
    return arithmetic(sign, a, b, what);
  }
  const double a = float_of(left, what), b = float_of(right, what);
  if (sign == "/") return a / b;
  return arithmetic(sign, a, b, what);
}

}  // namespace tenon::onnx
