// SPDX-License-Identifier: Apache-2.0
// Sample calls of operators. A sample says what its arguments look like; their dtype and their
// values come when it is used. Written as text, one call each (samples.cpp):
//
//   x[3,4]    tensor of the dtype under test, values that most functions like: 0.25 to 2.25
//   u[3,4]    the same, between -0.95 and 0.95
//   s[3,4]    the same, all different
//   n[3,4]    the same, with NaN, infinities and zeros of both signs
//   m[3,4]    the same, with NaN and nothing else of the kind
//   z t p v y[99]  the same, with special numbers: operators/special.hpp
//   g k[99]   the same, with numbers at which dtypes of 16 bits go wrong; h[99] as float32
//   e w[99]   integers at the ends of their dtype; large ones; of other dtypes as x
//   l[65537]  the same, quickly made
//   b[3,4]    bool        i[3,4]<5  int64, from 0 to 4        f[3,4]  float32, whatever is tested
//   {x[2] x[3]}  a list of tensors     (1,2)  integers     2  2.5  true  none  'text'
//   T D       the dtype under test; the device
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <tenon/abi.h>

namespace tenon::kit {

struct TensorSpec {
  char domain = 'x';
  std::vector<int64_t> shape;
  int64_t limit = 0;  // of 'i'
};
struct Nothing {};
struct TestedDtype {};
struct TestedDevice {};

using Argument = std::variant<Nothing, TensorSpec, std::vector<TensorSpec>, int64_t, double, bool,
                              std::string, std::vector<int64_t>, TestedDtype, TestedDevice>;

struct Sample {
  std::string text;
  const tenon_op* op = nullptr;
  std::vector<Argument> arguments;
};

// The kinds of samples that checks use.
enum class SampleKind {
  kGeneral,
  kNan,
  kEmpty,
  kZeroDim,
  kBroadcast,
  kSpecial,  // numbers at which functions go wrong: operators/special.hpp
  kHalf,     // the same for dtypes of 16 bits
  kInteger,  // integers at their ends
  kOdd,      // a few elements, and never a multiple of a vector's
  kLarge     // around powers of two
};

// Samples of an operator: from the table, and, for elementwise operators, made from its definition.
// Empty: the kit cannot call it.
std::vector<Sample> samples_of(const tenon_op* op, SampleKind);

// Exposed for tests of the kit: throws std::invalid_argument.
Sample parse_sample(const std::string& line);

}  // namespace tenon::kit
