// SPDX-License-Identifier: Apache-2.0
// Host values in operator expressions: signs and functions. Integers wrap; whatever a file says, no
// operation here traps.
#include <cmath>
#include <map>
#include <tenon/ops/expression.hpp>

#include "evaluate.hpp"

namespace tenon::interpreter {
namespace {

using codegen::ValueType;

// Lists are shapes and axes: longer ones are mistakes, and would fill the memory.
constexpr int64_t kLongestList = 65536;

int64_t wrapped(uint64_t number) { return static_cast<int64_t>(number); }
uint64_t bits(int64_t number) { return static_cast<uint64_t>(number); }

int64_t on_integers(Sign sign, int64_t a, int64_t b) {
  const bool in_range = b >= 0 && b < 64;
  switch (sign) {
    case Sign::kAdd:
      return wrapped(bits(a) + bits(b));
    case Sign::kSubtract:
      return wrapped(bits(a) - bits(b));
    case Sign::kMultiply:
      return wrapped(bits(a) * bits(b));
    case Sign::kFloorDivide:
      return expression::floor_divide(a, b);
    case Sign::kRemainder:
      return expression::floor_modulo(a, b);
    case Sign::kBitAnd:
      return a & b;
    case Sign::kBitOr:
      return a | b;
    case Sign::kBitXor:
      return a ^ b;
    case Sign::kShiftLeft:
      return in_range ? wrapped(bits(a) << b) : 0;
    case Sign::kShiftRight:
      return in_range ? a >> b : a < 0 && b > 0 ? -1 : 0;
    default:
      return 0;
  }
}

double on_floats(Sign sign, double a, double b) {
  switch (sign) {
    case Sign::kAdd:
      return a + b;
    case Sign::kSubtract:
      return a - b;
    case Sign::kMultiply:
      return a * b;
    default:
      return a / b;
  }
}

template <class T>
bool compared(Sign sign, T a, T b) {
  switch (sign) {
    case Sign::kLess:
      return a < b;
    case Sign::kLessEqual:
      return a <= b;
    case Sign::kGreater:
      return a > b;
    case Sign::kGreaterEqual:
      return a >= b;
    case Sign::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

bool is_float(const tenon_value& value) { return value.tag == TENON_VALUE_FLOAT; }
bool is_list(const tenon_value& value) {
  return value.tag == TENON_VALUE_INTS || value.tag == TENON_VALUE_FLOATS;
}

Item on_lists(Sign sign, const tenon_value& a, const tenon_value& b) {
  if (sign == Sign::kAdd)
    return expression::joined(expression::arg_ints(a), expression::arg_ints(b));
  bool equal;
  if (a.tag == TENON_VALUE_FLOATS && b.tag == TENON_VALUE_FLOATS) {
    const FloatList x = expression::arg_floats(a), y = expression::arg_floats(b);
    equal = std::equal(x.begin(), x.end(), y.begin(), y.end());
  } else {
    equal = expression::equal(expression::arg_ints(a), expression::arg_ints(b));
  }
  return tenon::boxed(equal == (sign == Sign::kEqual));
}

bool fails_as_complex(Scope& scope, const tenon_value& value) {
  if (value.tag != TENON_VALUE_COMPLEX) return false;
  scope.fail(TENON_TYPE_MISMATCH, "expected a real number in an expression, got a complex one");
  return true;
}

// -- functions ------------------------------------------------------------------------------------

using Items = std::vector<Item>;
int64_t int_at(const Items& items, size_t i) { return boxed(items[i]).v.i; }
double number_at(const Items& items, size_t i) { return ScalarArg(boxed(items[i])).number(); }
int32_t dtype_at(const Items& items, size_t i) { return tenon_arg_id(&std::get<0>(items[i])); }

// A list of integers, or a lone one, alive while this is.
struct Ints {
  tenon_value value;
  explicit Ints(const Item& item) : value(boxed(item)) {}
  operator IntList() const { return expression::arg_ints(value); }
};

template <double (*function)(double)>
Item of_number(Scope&, const Items& items) {
  return tenon::boxed(function(number_at(items, 0)));
}
template <int64_t (*function)(int64_t, int64_t)>
Item of_ints(Scope&, const Items& items) {
  return tenon::boxed(function(int_at(items, 0), int_at(items, 1)));
}
template <double (*function)(double, double)>
Item of_numbers(Scope&, const Items& items) {
  return tenon::boxed(function(number_at(items, 0), number_at(items, 1)));
}
template <bool (*function)(int32_t)>
Item of_dtype(Scope&, const Items& items) {
  return tenon::boxed(function(dtype_at(items, 0)));
}
template <double (*function)(int32_t)>
Item number_of_dtype(Scope&, const Items& items) {
  return tenon::boxed(function(dtype_at(items, 0)));
}

bool fails_as_too_long(Scope& scope, int64_t length) {
  if (length <= kLongestList) return false;
  scope.fail(TENON_INVALID_ARGUMENT, "expected a list of at most " + std::to_string(kLongestList) +
                                         " elements, got " + std::to_string(length));
  return true;
}

int64_t rounded(double number) {
  constexpr double kLimit = 9223372036854774784.0;  // the largest double below 2^63
  return std::isnan(number) ? 0 : static_cast<int64_t>(std::clamp(number, -kLimit, kLimit));
}
int64_t product(const IntList& list) {
  uint64_t result = 1;
  for (int64_t item : list) result *= bits(item);
  return wrapped(result);
}
int64_t length(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSORS ? int64_t{value.aux}
                                          : static_cast<int64_t>(tenon_arg_count(&value));
}

const std::map<std::string, HostFunction>& functions() {
  using I = int64_t;
  static const std::map<std::string, HostFunction> table = {
      {"floordiv", of_ints<expression::floor_divide>},
      {"int",
       [](Scope&, const Items& x) -> Item { return tenon::boxed(rounded(number_at(x, 0))); }},
      {"sqrt", of_number<std::sqrt>},
      {"exp", of_number<std::exp>},
      {"log", of_number<std::log>},
      {"pow", of_numbers<std::pow>},
      {"sin", of_number<std::sin>},
      {"cos", of_number<std::cos>},
      {"tanh", of_number<std::tanh>},
      {"erf", of_number<std::erf>},
      {"lgamma", of_number<std::lgamma>},
      {"floor", of_number<std::floor>},
      {"ceil", of_number<std::ceil>},
      {"len", [](Scope&, const Items& x) -> Item { return tenon::boxed(length(boxed(x[0]))); }},
      {"prod", [](Scope&, const Items& x) -> Item { return tenon::boxed(product(Ints(x[0]))); }},
      {"range",
       [](Scope& scope, const Items& x) -> Item {
         const I begin = int_at(x, 0), end = int_at(x, 1);
         const I count = begin < end ? wrapped(bits(end) - bits(begin)) : 0;
         if (count < 0 || fails_as_too_long(scope, count)) return IntList().vector();
         return expression::range(begin, end);
       }},
      {"reversed", [](Scope&, const Items& x) -> Item { return expression::reversed(Ints(x[0])); }},
      {"slice",
       [](Scope&, const Items& x) -> Item {
         return expression::slice(Ints(x[0]), int_at(x, 1), int_at(x, 2));
       }},
      {"insert",
       [](Scope&, const Items& x) -> Item {
         return expression::insert(Ints(x[0]), int_at(x, 1), int_at(x, 2));
       }},
      {"remove",
       [](Scope&, const Items& x) -> Item { return expression::remove(Ints(x[0]), int_at(x, 1)); }},
      {"replace",
       [](Scope&, const Items& x) -> Item {
         return expression::replace(Ints(x[0]), int_at(x, 1), int_at(x, 2));
       }},
      {"repeat",
       [](Scope& scope, const Items& x) -> Item {
         if (fails_as_too_long(scope, int_at(x, 1))) return IntList().vector();
         return expression::repeat(int_at(x, 0), int_at(x, 1));
       }},
      {"contains",
       [](Scope&, const Items& x) -> Item {
         return tenon::boxed(expression::contains(Ints(x[0]), int_at(x, 1)));
       }},
      {"axes",
       [](Scope& scope, const Items& x) -> Item {
         const I ndim = int_at(x, 1);
         if (fails_as_too_long(scope, ndim)) return IntList().vector();
         const Ints list(x[0]);
         return expression::axes(
             list.value.tag == TENON_VALUE_NONE ? OptionalInts() : OptionalInts(IntList(list)),
             ndim);
       }},
      {"inverse", [](Scope&, const Items& x) -> Item { return expression::inverse(Ints(x[0])); }},
      {"broadcast_shapes",
       [](Scope&, const Items& x) -> Item {
         return expression::broadcast_shapes(Ints(x[0]), Ints(x[1]));
       }},
      {"extents",
       [](Scope&, const Items& x) -> Item {
         return expression::extents(expression::arg_tensors(boxed(x[0])), int_at(x, 1));
       }},
      {"is_floating", of_dtype<expression::is_floating>},
      {"is_complex", of_dtype<expression::is_complex>},
      {"is_integer", of_dtype<expression::is_integer>},
      {"is_bool", of_dtype<expression::is_bool>},
      {"promote",
       [](Scope&, const Items& x) -> Item {
         return boxed_dtype(expression::promote(dtype_at(x, 0), dtype_at(x, 1)));
       }},
      {"real_dtype",
       [](Scope&, const Items& x) -> Item {
         return boxed_dtype(expression::real_dtype(dtype_at(x, 0)));
       }},
      {"epsilon", number_of_dtype<expression::epsilon>},
      {"lowest", number_of_dtype<expression::lowest>},
      {"highest", number_of_dtype<expression::highest>},
      {"min", of_numbers<expression::min<double>>},
      {"max", of_numbers<expression::max<double>>},
      {"abs", of_number<expression::abs<double>>},
  };
  return table;
}

}  // namespace

HostFunction host_function(const std::string& name, bool integers) {
  if (integers && name == "min") return of_ints<expression::min<int64_t>>;
  if (integers && name == "max") return of_ints<expression::max<int64_t>>;
  if (integers && name == "abs")
    return [](Scope&, const Items& x) -> Item {
      const int64_t number = int_at(x, 0);
      return tenon::boxed(number < 0 ? wrapped(-bits(number)) : number);
    };
  auto found = functions().find(name);
  return found == functions().end() ? nullptr : found->second;
}

Sign sign_of(const std::string& text, bool unary) {
  static const std::map<std::string, Sign> prefix = {
      {"-", Sign::kNegative}, {"!", Sign::kNot}, {"~", Sign::kInvert}};
  static const std::map<std::string, Sign> binary = {
      {"+", Sign::kAdd},           {"-", Sign::kSubtract},     {"*", Sign::kMultiply},
      {"/", Sign::kDivide},        {"//", Sign::kFloorDivide}, {"%", Sign::kRemainder},
      {"<", Sign::kLess},          {"<=", Sign::kLessEqual},   {">", Sign::kGreater},
      {">=", Sign::kGreaterEqual}, {"==", Sign::kEqual},       {"!=", Sign::kNotEqual},
      {"&&", Sign::kAnd},          {"||", Sign::kOr},          {"&", Sign::kBitAnd},
      {"|", Sign::kBitOr},         {"^", Sign::kBitXor},       {"<<", Sign::kShiftLeft},
      {">>", Sign::kShiftRight}};
  return unary ? prefix.at(text) : binary.at(text);
}

Item apply(Scope& scope, Sign sign, ValueType::Base, const Item& item) {
  const tenon_value a = boxed(item);
  if (fails_as_complex(scope, a)) return none();
  if (sign == Sign::kNot) return tenon::boxed(a.v.i == 0);
  if (sign == Sign::kInvert) return tenon::boxed(~a.v.i);
  return is_float(a) ? tenon::boxed(-a.v.f) : tenon::boxed(wrapped(-bits(a.v.i)));
}

Item apply(Scope& scope, Sign sign, ValueType::Base type, const Item& left, const Item& right) {
  const tenon_value a = boxed(left), b = boxed(right);
  if (fails_as_complex(scope, a) || fails_as_complex(scope, b)) return none();
  if (is_list(a) || is_list(b)) return on_lists(sign, a, b);
  if (a.tag == TENON_VALUE_STRING && b.tag == TENON_VALUE_STRING)
    return tenon::boxed((expression::arg_string(a) == expression::arg_string(b)) ==
                        (sign == Sign::kEqual));
  if (sign == Sign::kAnd || sign == Sign::kOr) return tenon::boxed(b.v.i != 0);
  const bool floats = is_float(a) || is_float(b);
  const double x = ScalarArg(a).number(), y = ScalarArg(b).number();
  if (type == ValueType::Bool)
    return tenon::boxed(floats ? compared(sign, x, y) : compared(sign, a.v.i, b.v.i));
  if (floats || sign == Sign::kDivide) return tenon::boxed(on_floats(sign, x, y));
  return tenon::boxed(on_integers(sign, a.v.i, b.v.i));
}

}  // namespace tenon::interpreter
