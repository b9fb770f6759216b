// SPDX-License-Identifier: Apache-2.0
#include "rewrite/check.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "rewrite/fragment.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

constexpr int kDraws = 600;   // of arguments
constexpr int kEnough = 200;  // of these have to be ones that both sides take, ...
constexpr int kNeeded = 12;   // ... or as many as this, where few are

constexpr int32_t kDtypes[] = {TENON_DTYPE_F32, TENON_DTYPE_F64,  TENON_DTYPE_F32, TENON_DTYPE_F16,
                               TENON_DTYPE_F32, TENON_DTYPE_BF16, TENON_DTYPE_I64, TENON_DTYPE_I32,
                               TENON_DTYPE_U8,  TENON_DTYPE_BOOL};

bool is_float(int32_t dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 || dtype == TENON_DTYPE_F32 ||
         dtype == TENON_DTYPE_F64;
}

// Of floating dtypes: digits of the significand with the implied one, the largest exponent, the
// smallest exponent of a subnormal number.
struct Format {
  int digits, max_exponent, min_exponent;
};
Format format_of(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return {11, 16, -24};
    case TENON_DTYPE_BF16:
      return {8, 128, -133};
    case TENON_DTYPE_F32:
      return {24, 128, -149};
    default:
      return {53, 1024, -1074};
  }
}

// The distance between neighbours of that magnitude.
double unit_at(double magnitude, const Format& format) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return std::ldexp(1.0, std::max(exponent - format.digits, format.min_exponent));
}

Tensor cast(const Tensor& tensor, int32_t dtype) {
  Fragment call;
  Step step;
  step.op = host->op_find("tenon::cast");
  step.operands = {Operand::of(ValueId{0}), Operand::of(Attribute(boxed_dtype(dtype)))};
  step.results = {1};
  call.steps.push_back(std::move(step));
  std::vector<Tensor> tensors = {tensor};
  call.run(tensors);
  return tensors[1];
}

class Draw {
 public:
  Draw(const Rule& rule, uint64_t seed) : rule_(rule), random_(seed) {}

  // What each variable stands for, values numbered from 0; their tensors go to `tensors`.
  std::vector<Operand> variables(int round, std::vector<Tensor>& tensors) {
    dtype_ = kDtypes[static_cast<size_t>(round) % std::size(kDtypes)];
    // Special numbers are for rules that promise something of each number.
    has_special_ = rule_.numerics != TENON_GRAPH_FAST && round % 2 == 1;
    scale_ = has_special_ && round % 3 == 0 ? 8.0 : 1.0;
    shape_ = base_shape();
    std::vector<Operand> operands;
    for (const Rule::Variable& variable : rule_.variables) {
      if (variable.is_tensor()) {
        operands.push_back(Operand::of(static_cast<ValueId>(tensors.size())));
        tensors.push_back(tensor());
      } else {
        operands.push_back(Operand::of(attribute(variable.kind)));
      }
    }
    return operands;
  }

 private:
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  std::vector<int64_t> base_shape() {
    static const std::vector<std::vector<int64_t>> kShapes = {
        {},     {1},       {5},       {3, 4},       {4, 4},       {4, 4},
        {1, 6}, {2, 3, 4}, {2, 4, 4}, {2, 2, 4, 4}, {2, 1, 4, 4}, {7, 33}};
    return kShapes[static_cast<size_t>(integer(0, static_cast<int64_t>(kShapes.size()) - 1))];
  }

  // The base shape, or one that broadcasts to it.
  std::vector<int64_t> shape() {
    std::vector<int64_t> shape = shape_;
    const int64_t kind = integer(0, 9);
    if (kind < 6 || shape.empty()) return shape;
    if (kind < 8) {
      shape.erase(shape.begin(), shape.begin() + integer(0, static_cast<int64_t>(shape.size())));
    } else {
      shape[static_cast<size_t>(integer(0, static_cast<int64_t>(shape.size()) - 1))] = 1;
    }
    return shape;
  }

  double number() {
    const Format format = format_of(dtype_);
    const int64_t kind = integer(0, has_special_ ? 15 : 39);
    if (has_special_) {
      const double largest =
          std::ldexp(2 - std::ldexp(1.0, 1 - format.digits), format.max_exponent - 1);
      const double specials[] = {std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 -0.0,
                                 largest,
                                 -largest,
                                 std::ldexp(1.0, format.min_exponent),
                                 -std::ldexp(1.0, format.min_exponent + 2)};
      if (kind < 8) return specials[kind];
    }
    if (kind == 8) return 0;
    if (kind == 9) return 1;
    if (kind == 10) return -1;
    return std::normal_distribution<double>(0, scale_)(random_);
  }

  Tensor tensor() {
    const std::vector<int64_t> extents = shape();
    const ErrorSink err;
    tenon_tensor* created;
    const bool is_real = is_float(dtype_);
    err.check(host->tensor_create(
        host->device_host(), is_real ? int32_t{TENON_DTYPE_F64} : int32_t{TENON_DTYPE_I64},
        static_cast<int32_t>(extents.size()), extents.data(), &created, err));
    Tensor wide = Tensor::adopt(created);
    for (int64_t i = 0; i < wide->numel; ++i) {
      if (is_real)
        static_cast<double*>(wide->data)[i] = number();
      else
        static_cast<int64_t*>(wide->data)[i] = dtype_ == TENON_DTYPE_BOOL ? integer(0, 1)
                                               : dtype_ == TENON_DTYPE_U8 ? integer(0, 255)
                                               : has_special_ && integer(0, 7) == 0
                                                   ? limit()
                                                   : integer(-6, 6);
    }
    return cast(wide, dtype_);
  }
  int64_t limit() {
    const int64_t smallest = dtype_ == TENON_DTYPE_I64 ? std::numeric_limits<int64_t>::min()
                                                       : std::numeric_limits<int32_t>::min();
    return integer(0, 1) ? smallest : ~smallest;
  }

  Attribute attribute(int32_t kind) {
    switch (kind) {
      case TENON_PARAM_INT:
        return Attribute(boxed(integer(-3, 3)));
      case TENON_PARAM_BOOL:
        return Attribute(boxed(integer(0, 1) == 1));
      case TENON_PARAM_INTS: {
        const int64_t axes[] = {integer(-2, 2), integer(-2, 2)};
        return Attribute(boxed(axes, static_cast<uint64_t>(integer(1, 2))));
      }
      case TENON_PARAM_FLOAT:
      case TENON_PARAM_SCALAR: {
        const double numbers[] = {0.125, 0.5, 1, 2, uniform(0.1, 2)};
        return Attribute(boxed(numbers[integer(0, 4)]));
      }
      default:
        throw Error(TENON_UNSUPPORTED,
                    "rewrite `" + rule_.name +
                        "`: arguments of this kind cannot be drawn; write them as they are");
    }
  }

  const Rule& rule_;
  std::mt19937_64 random_;
  int32_t dtype_ = TENON_DTYPE_F32;
  bool has_special_ = false;
  double scale_ = 1;
  std::vector<int64_t> shape_;
};

// Elements as double; integers beyond 2^53 are compared as bytes before.
std::vector<double> elements(const Tensor& tensor) {
  const Tensor here = on_host(cast(tensor, TENON_DTYPE_F64));
  const auto* data = static_cast<const double*>(here->data);
  return {data, data + here->numel};
}

bool has_same_bytes(const Tensor& a, const Tensor& b, int64_t index) {
  const uint64_t size = host->dtype_size(a->dtype);
  return std::memcmp(static_cast<const char*>(a->data) + static_cast<uint64_t>(index) * size,
                     static_cast<const char*>(b->data) + static_cast<uint64_t>(index) * size,
                     size) == 0;
}

// The difference in units of what the rule counts; infinity: no number of units.
double difference(const Rule& rule, int32_t dtype, double a, double b) {
  const bool is_equal = a == b && std::signbit(a) == std::signbit(b);
  if (is_equal || (std::isnan(a) && std::isnan(b))) return 0;
  if (rule.numerics == TENON_GRAPH_EXACT || !is_float(dtype) || std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::infinity();
  if (a == b) return 0;  // zeros
  const Format format = format_of(dtype);
  double magnitude = std::max(std::abs(a), std::abs(b));
  if (rule.numerics == TENON_GRAPH_FAST) magnitude = std::max(magnitude, 1.0);
  if (std::isinf(magnitude)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / unit_at(magnitude, format);
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

std::string argument_text(const Rule::Variable& variable, const Operand& operand,
                          const std::vector<Tensor>& tensors) {
  if (operand.kind == Operand::kAttribute) {
    double number = 0;
    const tenon_value value = operand.attribute.value();
    std::string text;
    if (number_of(operand.attribute, number)) text = number_text(number);
    for (uint64_t i = 0; value.tag == TENON_VALUE_INTS && i < value.aux; ++i)
      text += (i ? ", " : "[") + std::to_string(static_cast<const int64_t*>(value.v.p)[i]) +
              (i + 1 == value.aux ? "]" : "");
    return variable.name + " = " + text;
  }
  const Tensor& tensor = tensors[operand.value];
  std::string text = variable.name + " = " + type_text(type_of(*tensor.get())) + " {";
  const std::vector<double> numbers = elements(tensor);
  for (size_t i = 0; i < numbers.size() && i < 16; ++i)
    text += (i ? ", " : "") + number_text(numbers[i]);
  return text + (numbers.size() > 16 ? ", ...}" : "}");
}

std::string counterexample(const Rule& rule, const std::vector<Operand>& variables,
                           const std::vector<Tensor>& tensors, size_t index, double from, double to,
                           double units) {
  std::string text = "rewrite `" + rule.name + "` does not hold: `" + rule.from_text + "` gives " +
                     number_text(from) + " and `" + rule.to_text + "` gives " + number_text(to) +
                     " at index " + std::to_string(index);
  if (std::isfinite(units))
    text +=
        ", which is " + number_text(units) + " units, expected at most " + number_text(rule.units);
  for (size_t i = 0; i < variables.size(); ++i)
    text += (i ? "; " : ", where ") + argument_text(rule.variables[i], variables[i], tensors);
  return text;
}

Tensor result_of(const Expression& side, const std::vector<Operand>& variables,
                 const std::vector<Tensor>& arguments) {
  std::vector<Tensor> tensors = arguments;
  const Fragment fragment = Fragment::of(side, variables, static_cast<ValueId>(arguments.size()));
  fragment.run(tensors);
  return on_host(tensors[fragment.result.value]);
}

// False: one of the sides does not take the arguments, or they give tensors of two types, so that the rule would
// not be applied.
bool try_once(const Rule& rule, const std::vector<Operand>& variables,
              const std::vector<Tensor>& arguments) {
  Tensor roots[2];
  try {
    roots[0] = result_of(rule.from, variables, arguments);
    roots[1] = result_of(rule.to, variables, arguments);
  } catch (const Error&) {
    return false;
  }
  if (type_of(*roots[0].get()) != type_of(*roots[1].get())) return false;
  const std::vector<double> from = elements(roots[0]), to = elements(roots[1]);
  for (size_t i = 0; i < from.size(); ++i) {
    if (has_same_bytes(roots[0], roots[1], static_cast<int64_t>(i))) continue;
    if (rule.numerics == TENON_GRAPH_FAST && !std::isfinite(from[i])) continue;
    double units = difference(rule, roots[0]->dtype, from[i], to[i]);
    if (!is_float(roots[0]->dtype)) units = std::numeric_limits<double>::infinity();
    if (units > rule.units)
      throw Error(TENON_FAILED_PRECONDITION,
                  counterexample(rule, variables, arguments, i, from[i], to[i], units));
  }
  return !from.empty();
}

}  // namespace

void check_rule(const Rule& rule, uint64_t seed) {
  Draw draw(rule, seed);
  int tried = 0;
  for (int round = 0; round < kDraws && tried < kEnough; ++round) {
    std::vector<Tensor> tensors;
    const std::vector<Operand> variables = draw.variables(round, tensors);
    bool fits = true;
    for (const Tensor& tensor : tensors) fits = fits && rule.dtypes >> tensor->dtype & 1;
    if (fits) tried += try_once(rule, variables, tensors);
  }
  if (tried < kNeeded)
    throw Error(TENON_FAILED_PRECONDITION,
                "rewrite `" + rule.name + "`: of " + std::to_string(kDraws) +
                    " draws of arguments " + std::to_string(tried) +
                    " gave tensors of one type on both sides, expected at least " +
                    std::to_string(kNeeded) + "; a rule that cannot be tried is not accepted");
}

}  // namespace tenon::graph
