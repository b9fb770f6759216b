// SPDX-License-Identifier: Apache-2.0
#include "operators/special.hpp"

#include <tenon/primitives.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "subject/plugin.hpp"

namespace tenon::kit {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// As float64: the last ones are subnormal in float32, and around its smallest normal number.
constexpr double kMagnitudes[] = {
    0.0,           0.25,      0.5,          0.49999997, 0.50000006, 0.75,          0.99999994,
    1.0,           1.0000001, 1.5,          1.75,       2.0,        2.5,           3.0,
    3.5,           3.9,       3.92,         4.0,        4.1,        4.5,           5.0,
    5.5,           6.0,       6.5,          7.0,        8.0,        8.5,           9.0,
    9.1,           9.5,       10.0,         10.1,       12.0,       15.0,          18.0,
    20.0,          26.0,      27.0,         30.0,       40.0,       50.0,          60.0,
    80.0,          86.0,      87.0,         88.0,       88.5,       89.0,          90.0,
    100.0,         103.0,     105.0,        126.0,      127.5,      128.0,         149.0,
    150.0,         200.0,     500.0,        709.0,      710.0,      745.0,         746.0,
    1000.0,        4096.0,    32768.5,      65504.0,    65536.0,    1048576.5,     2097151.5,
    4194303.5,     8388607.5, 8388608.0,    16777215.0, 16777216.0, 1e10,          1e15,
    1e20,          1e30,      3e38,         0.1,        0.01,       1e-3,          1e-4,
    1e-5,          1e-7,      1e-10,        1e-20,      1e-30,      1.1754945e-38, 1.1754944e-38,
    1.1754942e-38, 1e-40,     1.4012985e-45};

std::vector<double> with_both_signs(double least, double most) {
  std::vector<double> numbers;
  for (double magnitude : kMagnitudes)
    if (magnitude >= least && magnitude <= most)
      numbers.insert(numbers.end(), {magnitude, -magnitude});
  return numbers;
}

// Subnormal numbers of float16 and bfloat16, and numbers whose sums and products lie halfway
// between two others.
constexpr double kHalves[] = {
    0,        0x1p-24, 0x3p-24, 0x1p-20, 0x1p-15, 0x1.8p-15, 0x1p-14,     0x1p-133,   0x3p-133,
    0x1p-126, 0.5,     1,       1.5,     2.5,     3.5,       1 + 0x1p-10, 1 + 0x1p-7, 3,
    255,      256,     258,     2047,    2048,    2050,      65504,       3.38e38};

// Halfway between two numbers of float16 and of bfloat16, and next to that.
std::vector<double> halfway() {
  std::vector<double> numbers;
  auto add = [&](double middle, double next) {
    for (double number : {middle, middle - next, middle + next})
      numbers.insert(numbers.end(), {number, -number});
  };
  for (double odd : {1.0, 3.0, 5.0, 7.0}) {
    add(1 + odd * 0x1p-11, 0x1p-23);
    add(1 + odd * 0x1p-8, 0x1p-23);
    add(0x1p-20 * (1 + odd * 0x1p-8), 0x1p-43);
    add(odd * 0x1p-25, 0x1p-49);    // subnormal in float16
    add(odd * 0x1p-134, 0x1p-149);  // and in bfloat16
  }
  add(65520, 0x1p-8);        // the largest of float16, and infinity
  add(0x1.ffp127, 0x1p104);  // of bfloat16
  numbers.insert(numbers.end(), {0.0, -0.0});
  return numbers;
}

void add_infinities_and_nan(std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {kInf, -kInf, std::bit_cast<double>(uint64_t{0x7ff8000000000000}),
                                 std::bit_cast<double>(uint64_t{0xfff8000000000000}),
                                 std::bit_cast<double>(uint64_t{0x7ff8123460000000}),
                                 std::bit_cast<double>(uint64_t{0xfffabcde00000000})});
}

// Arithmetic that IEEE 754 fixes to the last bit, quotients and roots within some, functions by the
// accuracy that devices have.
constexpr Closeness kExact{.relative = 0, .keeps_subnormal = true, .keeps_zero_sign = true};
constexpr Closeness kExactButZero{.relative = 0, .keeps_subnormal = true, .keeps_zero_sign = false};
constexpr Closeness kRounded{.relative = 1e-6, .keeps_subnormal = false, .keeps_zero_sign = true};
constexpr Closeness kFunction{.relative = 1e-4, .keeps_subnormal = false, .keeps_zero_sign = false};
constexpr Closeness kOddFunction{
    .relative = 1e-4, .keeps_subnormal = false, .keeps_zero_sign = true};

constexpr SpecialRule kRules[] = {
    {"negative", 'z', kExact},
    {"abs", 'z', kExact},
    {"positive", 'z', kExact},
    {"floor", 'z', kExact},
    {"ceil", 'z', kExact},
    {"round", 'z', kExact},
    {"trunc", 'z', kExact},
    {"clone", 'z', kExact},
    {"contiguous", 'z', kExact},
    {"where", 'z', kExact},
    {"primitive_copy", 'z', kExact},
    {"primitive_select", 'z', kExact},
    {"sign", 'z', kExactButZero},
    {"isnan", 'z', kExact},
    {"isinf", 'z', kExact},
    {"isfinite", 'z', kExact},
    {"signbit", 'z', kExact},
    {"logical_not", 'z', kExact},
    {"relu", 'z', kExactButZero},
    {"square", 'z', kRounded},
    {"sqrt", 'z', kRounded},
    {"rsqrt", 'z', kFunction},
    {"reciprocal", 'z', kRounded},
    {"cbrt", 'z', kOddFunction},
    {"exp", 'z', kFunction},
    {"exp2", 'z', kFunction},
    {"expm1", 'z', kOddFunction},
    {"log", 'z', kFunction},
    {"log2", 'z', kFunction},
    {"log10", 'z', kFunction},
    {"log1p", 'z', kOddFunction},
    {"sin", 't', kOddFunction},
    {"cos", 't', kFunction},
    {"tan", 't', kOddFunction},
    {"asin", 'z', kOddFunction},
    {"acos", 'z', kFunction},
    {"atan", 'z', kOddFunction},
    {"sinh", 'z', kOddFunction},
    {"cosh", 'z', kFunction},
    {"tanh", 'z', kOddFunction},
    {"asinh", 'z', kOddFunction},
    {"acosh", 'z', kFunction},
    {"atanh", 'z', kOddFunction},
    {"erf", 'z', kOddFunction},
    {"erfc", 'z', kFunction},
    {"lgamma", 'p', kFunction},
    {"digamma", 'p', kFunction},
    {"sigmoid", 'z', kFunction},
    {"add", 'y', kExact},
    {"subtract", 'y', kExact},
    {"multiply", 'y', kExact},
    {"divide", 'y', kRounded},
    {"maximum", 'y', kExactButZero},
    {"minimum", 'y', kExactButZero},
    {"fmax", 'y', kExactButZero},
    {"fmin", 'y', kExactButZero},
    {"copysign", 'y', kExact},
    {"equal", 'y', kExact},
    {"not_equal", 'y', kExact},
    {"less", 'y', kExact},
    {"less_equal", 'y', kExact},
    {"greater", 'y', kExact},
    {"greater_equal", 'y', kExact},
    {"pow", 'y', kFunction},
    {"atan2", 'y', kFunction},
    {"hypot", 'y', kFunction},
};

struct Opcode {
  int number;
  const char* function;
  const char* dtypes;  // "IF": integers and floating numbers
};
#define TENON_KIT_OPCODE(number, NAME, function, dtypes) {number, #function, #dtypes},
constexpr Opcode kUnary[] = {TENON_UNARY_OPS(TENON_KIT_OPCODE)};
constexpr Opcode kBinary[] = {TENON_BINARY_OPS(TENON_KIT_OPCODE)};
constexpr Opcode kCompare[] = {TENON_COMPARE_OPS(TENON_KIT_OPCODE)};
#undef TENON_KIT_OPCODE

std::vector<Opcode> opcodes(const std::string& primitive) {
  if (primitive == "primitive_unary") return {std::begin(kUnary), std::end(kUnary)};
  if (primitive == "primitive_binary") return {std::begin(kBinary), std::end(kBinary)};
  if (primitive == "primitive_compare") return {std::begin(kCompare), std::end(kCompare)};
  return {};
}

}  // namespace

const std::vector<double>& special_numbers(char domain) {
  static const std::map<char, std::vector<double>> domains = [] {
    std::map<char, std::vector<double>> made;
    made['z'] = with_both_signs(0, kInf);
    add_infinities_and_nan(made['z']);
    made['t'] = with_both_signs(0, 1000);
    add_infinities_and_nan(made['t']);
    made['p'] = with_both_signs(0, kInf);
    std::erase_if(made['p'], [](double value) { return std::signbit(value) || value == 0; });
    made['v'] = with_both_signs(1e-3, 200);
    made['y'] = {0.0,   -0.0,          0.5,   -0.5,           1.0,    -1.0, 1.5,
                 2.0,   -2.5,          3.0,   -3.0,           100.25, 1e-3, 1e10,
                 -1e20, 1.1754944e-38, 1e-40, -1.4012985e-45, 3e38,   7.0,  -3e38};
    add_infinities_and_nan(made['y']);
    for (double magnitude : kHalves)
      for (char domain : {'g', 'k'})
        made[domain].insert(made[domain].end(), {magnitude, -magnitude});
    add_infinities_and_nan(made['g']);
    made['h'] = halfway();
    return made;
  }();
  return domains.at(domain);
}

const SpecialRule* special_rule(const std::string& function) {
  for (const SpecialRule& rule : kRules)
    if (function == rule.function) return &rule;
  return nullptr;
}

std::string function_of(const Sample& sample) {
  std::string name = sample.text.substr(0, sample.text.find(' '));
  auto* number =
      sample.arguments.empty() ? nullptr : std::get_if<int64_t>(&sample.arguments.back());
  for (const Opcode& opcode : opcodes(name))
    if (number && *number == opcode.number) return opcode.function;
  return name;
}

std::vector<std::string> primitive_lines(const std::string& primitive, SampleKind kind) {
  std::vector<std::string> lines;
  const bool is_unary = primitive == "primitive_unary";
  for (const Opcode& opcode : opcodes(primitive)) {
    if (kind == SampleKind::kInteger && std::strchr(opcode.dtypes, 'I')) {
      const std::string tensor = text(" e", kAllEnds);
      lines.push_back(text(primitive, tensor, is_unary ? "" : tensor, " ", opcode.number));
    }
    if (!std::strchr(opcode.dtypes, 'F')) continue;
    auto add = [&](char domain, size_t count) {
      std::string tensor = text(" ", domain, "[", count, "]");
      lines.push_back(text(primitive, tensor, is_unary ? "" : tensor, " ", opcode.number));
    };
    const SpecialRule* rule = special_rule(opcode.function);
    if (kind == SampleKind::kSpecial && rule) {
      size_t count = special_numbers(rule->domain).size();
      add(rule->domain, is_unary ? count : count * count);
    } else if (kind == SampleKind::kHalf && rule && is_exact(*rule)) {
      const char domain = rule->domain == 'y' ? 'k' : 'g';
      const size_t count = special_numbers(domain).size();
      add(domain, is_unary ? count : count * count);
    } else if (kind == SampleKind::kOdd) {
      add('x', 7);
    } else if (kind == SampleKind::kLarge && opcode.number == 0) {
      for (size_t count : {65535, 65536, 65537}) add('l', count);
    }
  }
  return lines;
}

}  // namespace tenon::kit
