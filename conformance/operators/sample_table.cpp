// SPDX-License-Identifier: Apache-2.0
#include "operators/sample_table.hpp"

namespace tenon::kit {
namespace {

// clang-format off
// Those of the operator files.
constexpr const char* kGeneral[] = {
#include "conformance/samples.inc"
};

constexpr const char* kNan[] = {
    "sum n[3,9] (1) false", "sum m[3,5] none false", "mean m[3,5] (0) false", "max n[3,9] (1) false",
    "max m[33] none false", "min n[3,9] (0) false", "min m[33] none false", "any n[9] none false",
    "all n[9] none false", "clone n[18]", "where b[18] n[18] n[18]", "matmul m[3,4] m[4,5]",
    "cumsum m[9] 0 false", "concat {n[9] m[9]} 0", "relu6 m[9]", "clip m[9] -0.3 0.4",
};

constexpr const char* kEmpty[] = {
    "clone x[0]", "clone x[2,0,3]", "full (0,3) 1 T D", "sum x[0] none false", "sum x[2,0,3] (1) false",
    "sum x[0,3] (1) true", "prod x[0] none false", "prod x[2,0] (1) false", "any b[0] none false",
    "any b[2,0] (1) false", "all b[0] none false", "all b[2,0] (1) true", "mean x[0,3] (1) false",
    "max x[0,3] (1) false", "count_nonzero b[0] none false", "matmul x[2,0] x[0,3]", "matmul x[0,4] x[4,5]",
    "matmul x[2,4] x[4,0]", "linear x[0,4] x[5,4] x[5]", "softmax x[0,4] -1", "cumsum x[0] 0 false",
    "sort x[0] 0 false", "concat {x[0,3] x[2,3]} 0", "index x[4,5] {i[0]<4} 0", "index_select x[4,5] i[0]<4 0",
    "gather x[3,4] i[0,4]<3 0", "scatter_add x[3,4] i[0,4]<3 x[0,4] 0", "nonzero b[0]",
    "embedding x[5,3] i[0]<5 none", "conv2d x[0,3,5,5] x[2,3,3,3]", "layer_norm x[0,6] x[6] none 1",
};

constexpr const char* kZeroDim[] = {
    "clone x[]", "full () 2 T D", "sum x[] none false", "mean x[] none false", "max x[] none false",
    "prod x[] none true", "any b[] none false", "all b[] none false", "reshape x[1] ()",
};

constexpr const char* kBroadcast[] = {
    "add x[3] 2", "multiply x[3] 0.5", "subtract 2 x[3]", "less x[3] 1", "maximum u[5] 0",
    "where b[3] x[3] 2", "where b[4,1] x[3] x[4,3]", "masked_fill x[4,3] b[3] 2",
    "matmul x[2,1,3,4] x[1,3,4,2]", "lerp x[4,3] x[3] u[4,1]",
};

constexpr const char* kSpecial[] = {
    "clone z[196]", "contiguous z[196]", "where b[196] z[196] z[196]", "primitive_copy z[196] T",
    "primitive_select b[196] z[196] z[196]",
};

constexpr const char* kHalf[] = {
    "cast h[200] T", "primitive_copy h[200] T", "sum g[2,29] (0) false", "primitive_reduce g[1,2,29] 0",
};

constexpr const char* kInteger[] = {
    "sum w[300] none false", "sum w[3,100] (1) false", "sum e[90] none false", "cumsum w[90] 0 false",
    "prod w[2,30] (0) false", "max e[90] none false", "min e[90] none false", "primitive_reduce w[2,90,3] 0",
    "primitive_reduce w[1,30,3] 1", "primitive_reduce e[1,90,1] 2", "primitive_reduce e[1,90,1] 3",
    "matmul w[3,30] w[30,5]", "primitive_contract w[1,3,30] w[1,30,5]", "clone e[90]",
    "primitive_iota 9 9007199254740993 1 T D",
};

constexpr const char* kOdd[] = {
    "clone x[7]", "clone x[1]", "clone x[3,3]", "cast x[7] T", "primitive_copy x[7] T", "primitive_copy x[3,5] T",
    "primitive_select b[7] x[7] x[7]", "primitive_reduce x[7,3,1] 0", "primitive_reduce x[1,3,7] 2",
    "primitive_contract x[1,7,3] x[1,3,1]", "primitive_gather x[5,1] i[7]<5", "primitive_gather x[5,7] i[1]<5",
    "primitive_scatter x[7,1] i[1]<7 x[1,1] 0", "primitive_iota 7 2 3 T D", "sum x[7,3] (1) false",
    "max s[7,3] (1) false", "cumsum x[7] 0 false", "matmul x[7,3] x[3,1]", "matmul x[1,5] x[5,7]",
    "softmax u[1,7] -1", "concat {x[3] x[4]} 0", "index_select x[4,1] i[7]<4 0", "gather x[7,2] i[7,1]<2 1",
    "where b[7] x[7] u[7]", "full (7) 3 T D", "arange 0 7 1 T D", "tril x[7,1] 0", "sort s[7] 0 false",
    "conv2d u[1,1,3,9] u[1,1,3,3] none (1,1) (0,0)", "layer_norm x[1,7] x[7] u[7] 1 0.001",
};

// The first with blocks of a device's work items in mind, the last with counters of 16 and 24 bits
// and the digits of float32.
constexpr const char* kLarge[] = {
    "clone l[65535]", "clone l[65536]", "clone l[65537]", "clone l[1048577]", "clone l[16777217]",
    "primitive_copy l[65537] T", "primitive_copy l[16777217] T", "cast l[65537] T",
    "add l[4194305] l[4194305]", "primitive_binary l[1048577] l[1048577] 0",
    "primitive_select b[65537] l[65537] l[65537]", "primitive_reduce l[3,65537,1] 2", "primitive_reduce l[1,3,65537] 0",
    "primitive_reduce l[65537,3,1] 0", "primitive_gather l[65537,1] i[65537]<65537",
    "primitive_contract l[1,257,33] l[1,33,257]", "primitive_iota 65537 0 1 T D",
    "primitive_unary l[1048575] 0", "primitive_unary l[16777215] 0", "primitive_unary l[16777217] 0",
    "primitive_binary l[1048575] l[1048575] 0", "primitive_binary l[16777217] l[16777217] 0",
    "primitive_select b[16777217] l[16777217] l[16777217]", "primitive_reduce l[1,16777217,1] 2",
    "primitive_reduce l[16777217,1,1] 0", "primitive_reduce l[1,1,16777217] 0",
    "primitive_gather l[16777217,1] i[65537]<16777217", "primitive_gather l[3,1] i[16777217]<3",
    "primitive_iota 16777217 0 1 T D",
    "sum l[65537] none false", "sum l[3,65537] (0) false", "max l[65537,3] (1) false", "cumsum l[3,65537] 0 false",
    "matmul l[257,33] l[33,257]", "softmax l[3,65537] -1", "concat {l[65535] l[65537]} 0",
    "index_select l[65537] i[65537]<65537 0", "where b[65537] l[65537] l[65537]", "full (65537) 3 T D",
    "arange 0 65537 1 T D",
};

// clang-format on

}  // namespace

std::vector<const char*> sample_lines(SampleKind kind) {
  switch (kind) {
    case SampleKind::kGeneral:
      return {std::begin(kGeneral), std::end(kGeneral)};
    case SampleKind::kNan:
      return {std::begin(kNan), std::end(kNan)};
    case SampleKind::kEmpty:
      return {std::begin(kEmpty), std::end(kEmpty)};
    case SampleKind::kZeroDim:
      return {std::begin(kZeroDim), std::end(kZeroDim)};
    case SampleKind::kBroadcast:
      return {std::begin(kBroadcast), std::end(kBroadcast)};
    case SampleKind::kSpecial:
      return {std::begin(kSpecial), std::end(kSpecial)};
    case SampleKind::kHalf:
      return {std::begin(kHalf), std::end(kHalf)};
    case SampleKind::kInteger:
      return {std::begin(kInteger), std::end(kInteger)};
    case SampleKind::kOdd:
      return {std::begin(kOdd), std::end(kOdd)};
    case SampleKind::kLarge:
      return {std::begin(kLarge), std::end(kLarge)};
  }
  return {};
}

const std::map<std::string, std::string> kDomains = {
#include "conformance/domains.inc"
};

const std::set<std::string> kExact = {
    "add",         "subtract",   "multiply",    "divide",        "maximum", "minimum",  "fmax",
    "fmin",        "negative",   "abs",         "sqrt",          "square",  "equal",    "not_equal",
    "less",        "less_equal", "greater",     "greater_equal", "isnan",   "isinf",    "isfinite",
    "exp",         "log",        "tanh",        "relu",          "floor",   "ceil",     "trunc",
    "logical_and", "logical_or", "logical_not", "logical_xor",   "where",   "positive", "copysign",
    "signbit",     "reciprocal", "atan",        "exp2",
};

const std::set<std::string> kIntegerFunctions = {
    "negative",    "abs",        "sign",    "bitwise_invert",     "add",
    "subtract",    "multiply",   "pow",     "floor_divide",       "remainder",
    "fmod",        "maximum",    "minimum", "bitwise_and",        "bitwise_or",
    "bitwise_xor", "equal",      "less",    "bitwise_left_shift", "bitwise_right_shift",
    "not_equal",   "less_equal", "greater", "greater_equal",
};

const std::set<std::string> kNoNan = {"hardshrink", "softshrink",   "sign",
                                      "nextafter",  "floor_divide", "remainder",
                                      "nan_to_num", "xlogy",        "isclose"};

}  // namespace tenon::kit
