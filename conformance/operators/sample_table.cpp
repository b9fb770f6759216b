// SPDX-License-Identifier: Apache-2.0
#include "operators/sample_table.hpp"

namespace tenon::kit {
namespace {

// clang-format off
constexpr const char* kGeneral[] = {
    // Conversion, creation
    "cast x[3,5] T", "clone x[3,5]", "clone x[65]", "contiguous x[3,5]",
    "full (3,5) 3 T D", "zeros (3,5) T D", "ones (7) T D", "full_like x[3,5] 2 none none",
    "zeros_like x[3,5] none none", "ones_like x[3,5] none none", "arange 0 17 2 T D",
    "linspace 0.0 1.0 9 true T D", "eye 4 6 1 T D", "tril x[5,4] 0", "triu x[5,4] 1",
    // Elementwise with numbers
    "clip u[5,7] -0.3 0.4", "clip u[5,7] none 0.4", "pow x[33] 3", "pow x[33] 2.5", "pow x[5,3] x[5,3]",
    "leaky_relu u[33,5] 0.1", "elu u[33,5] 1.5", "celu u[33,5] 1.5", "relu6 u[33,5]", "selu u[33,5]",
    "gelu u[33,5] true", "gelu u[33,5] false", "mish u[33,5]", "glu u[4,6] -1", "softplus u[33,5] 1.5",
    "tanhshrink u[33]", "nan_to_num n[19] 0.0 none none", "polygamma 1 x[33]", "polygamma 2 x[5,3]", "flat_pow x[33] 2.5", "frac u[33]", "positive u[33]",
    // Reductions
    "sum x[3,5] none false", "sum x[3,5] (1) true", "sum x[4,3,5] (0,2) false", "sum x[1025] none false",
    "sum x[3,5] (0) false", "mean x[3,5] none false", "mean x[4,3,5] (1) true",
    "mean x[3,5] (0) false", "prod x[3,3] none false", "prod x[2,3,4] (-1) false", "prod_of_others u[2,3,4] (0,2)",
    "max s[3,5] none false", "max s[4,3,5] (1) false", "min s[3,5] (0) true", "min s[33] none false",
    "any b[3,5] (1) false", "any x[3,5] none false", "all b[3,5] (0) false", "all x[3,5] none true",
    "count_nonzero b[3,5] (1) false", "argmax s[3,5] 1 false", "argmax s[33] none false",
    "argmin s[3,5] 0 true", "var x[4,6] (1) 0.0 false", "var x[4,6] none 1.0 false",
    "std x[4,6] (0) 0.0 true", "logsumexp u[4,6] (1) false", "logsumexp u[4,6] none true",
    "norm x[4,6] 2.0 (1) false", "norm x[4,6] 1.0 none false", "norm2 x[4,6] (1) false",
    "softmax u[5,7] -1", "softmax u[3,5,4] 1", "log_softmax u[5,7] -1", "log_softmax u[5,7] 0",
    "softmax_grad u[5,7] x[5,7] -1", "log_softmax_grad u[5,7] u[5,7] -1",
    // Scan, sort
    "cumsum x[4,7] 1 false", "cumsum x[4,7] 0 true", "cumprod x[2,4] -1", "cumprod_grad u[2,4] u[2,4] u[2,4] 1", "diff x[4,5] -1",
    "sort_with_indices s[4,7] 1 false", "sort_with_indices s[33] 0 true", "sort s[4,7] 0 false",
    "argsort s[4,7] -1 true", "topk s[4,9] 3 1 true", "topk s[17] 5 0 false",
    "searchsorted x[0] s[5] false",
    // Matrices
    "matmul x[3,4] x[4,5]", "matmul u[33,17] u[17,9]", "matmul x[4] x[4]", "matmul x[3,4] x[4]",
    "matmul x[4] x[4,5]", "matmul x[2,3,4] x[2,4,5]", "matmul x[2,1,3,4] x[3,4,2]",
    "linear x[3,4] x[5,4] x[5]", "linear x[2,3,4] x[5,4] none", "dot x[7] x[7]", "vecdot x[3,5] x[3,5] -1",
    "outer x[3] x[4]", "tensordot x[3,4] x[4,5] (1) (0)", "einsum 'ij,jk->ik' {x[3,4] x[4,5]}",
    "trace x[4,4] 0",
    // Shapes
    "concat {x[2,3] x[4,3]} 0", "concat {x[2,3] x[2,1] x[2,2]} 1", "stack {x[2,3] x[2,3]} 1",
    "tile x[2,3] (2,2)", "repeat x[2,3] 2 1", "roll x[4,5] (1,2) (0,1)", "pad x[3,4] (1,2) 'constant' 1",
    "pad_constant x[3,4] (1,2,0,1) 1", "pad_constant_grad x[4,7] (1,2,0,1)",
    "reshape x[3,4] (2,6)", "flatten x[2,3,4] 1 -1",
    "slice_grad x[2,4] (5,4) (0) (1) (5) (2)", "select_grad x[4] (3,4) 0 1",
    "diagonal_grad x[3] (3,4) 0 0 1", "sliding_window_grad x[3,3] (5) 0 3 1 1",
    // Indexing
    "index x[4,5] {i[3]<4} 0", "index x[4,5] {i[3]<4 i[3]<5} 0", "index_put x[4,5] {i[1]<4} x[5] 0 false",
    "index_select x[4,5] i[6]<4 0", "index_select x[4,5] i[3]<5 1", "index_add x[4,5] i[3]<4 x[3,5] 0",
    "gather x[3,4] i[2,5]<4 1", "gather x[3,4] i[2,4]<3 0", "take_along_axis x[3,4] i[3,5]<4 1",
    "scatter_add x[3,4] i[2,4]<3 x[2,4] 0", "scatter x[4] i[1]<4 x[1] 0", "nonzero b[4,5]",
    "masked_select x[4,5] b[4,5]", "masked_select x[5] b[4,5]", "masked_scatter x[4,5] b[4,5] x[20]", "embedding x[5,3] i[2,4]<5 none",
    "embedding x[5,3] i[7]<5 1", "embedding_grad x[4,3] i[4]<6 (6,3) none", "one_hot i[5]<4 4",
    // Primitives, with the opcodes that every dtype has
    "primitive_copy x[3,5] T", "primitive_copy x[65] T", "primitive_unary u[33,5] 0", "primitive_binary x[33] u[33] 12",
    "primitive_compare u[33] x[33] 2", "primitive_select b[33] x[33] u[33]", "primitive_reduce s[3,5,2] 2",
    "primitive_reduce s[1,33,1] 3", "primitive_contract x[2,3,4] x[2,4,5]", "primitive_gather x[5,3] i[7]<5",
    "primitive_scatter x[5,3] i[1]<5 x[1,3] 0", "primitive_iota 9 2 3 T D",
    "masked_fill x[5,7] b[5,7] 2", "allclose x[9] x[9]", "where b[33,5] x[33,5] u[33,5]", "where b[64] x[64] x[64]",
    // Convolution, pooling
    "conv2d u[2,3,7,6] u[4,3,3,3] u[4] (1,1) (1,1)", "conv2d u[1,2,6,6] u[3,2,2,3] none (2,1) (0,0)",
    "conv1d u[2,3,9] u[4,3,3] none 1 1 1", "conv_transpose2d u[1,3,4,4] u[3,2,3,3] none (2,2) (1,1)",
    "conv2d_input_grad u[1,4,5,4] u[4,3,3,3] (1,3,7,6) (1,1) (0,0)",
    "conv2d_weight_grad u[1,4,5,4] u[1,3,7,6] (4,3,3,3) (1,1) (0,0)",
    "max_pool2d_with_indices s[1,2,6,7] (2,2) (2,2) (0,0)", "max_pool2d s[1,2,6,7] (3,2) none (0,0)",
    "max_pool2d_grad x[1,2,3,3] i[1,2,3,3]<36 (1,2,6,6)",
    "max_pool1d s[1,2,9] 2 none 0", "avg_pool2d x[1,2,6,7] (2,2) none (0,0)",
    "avg_pool2d x[1,2,6,7] (3,3) (2,2) (1,1)", "avg_pool2d_grad x[1,2,3,3] (1,2,6,7) (2,2) none (0,0)",
    "avg_pool1d x[1,2,9] 3 2 0", "adaptive_avg_pool2d x[1,2,6,7] (3,2)",
    "adaptive_max_pool2d s[1,2,6,7] (3,2)", "interpolate2d x[1,2,3,4] (6,8) 'nearest' false",
    "interpolate2d x[1,2,3,4] (5,7) 'bilinear' false",
    // Normalisation, losses, attention
    "batch_norm x[4,3,5] x[3] u[3] 0.001", "batch_norm_inference x[4,3,5] u[3] x[3] x[3] u[3] 0.001",
    "layer_norm x[4,6] x[6] u[6] 1 0.001", "layer_norm x[4,2,3] none none 2 0.001",
    "group_norm x[2,4,3] 2 x[4] u[4] 0.001", "rms_norm x[4,6] x[6] 0.001", "normalize x[3,4] 2.0 1",
    "mse_loss x[4,5] u[4,5] 'mean'", "l1_loss s[4,5] u[4,5] 'sum'", "smooth_l1_loss x[4,5] u[4,5] 'mean' 0.7",
    "huber_loss x[4,5] u[4,5] 'mean' 0.7", "binary_cross_entropy_with_logits u[4,5] x[4,5]",
    "nll_loss u[4,5] i[4]<5 none -100 'mean'", "cross_entropy u[4,5] i[4]<5 none -100 'mean'",
    "softmax_cross_entropy u[4,5] i[4]<5 -100", "kl_div u[4,5] x[4,5] 'sum' false",
    "scaled_dot_product_attention u[2,4,3] u[2,5,3] u[2,5,6] none 0.0 false",
    "scaled_dot_product_attention u[2,4,3] u[2,4,3] u[2,4,2] none 0.0 true",
    // Optimisers
    "sgd_update x[33] u[33] 0.1 0.01", "momentum_update x[33] u[33] u[33] 0.1 0.9",
    "adam_update x[33] u[33] u[33] x[33] 3 0.01", "adamw_update x[33] u[33] u[33] x[33] 3 0.01",
    "rmsprop_update x[33] u[33] x[33] 0.01", "adagrad_update x[33] u[33] x[33] 0.01",
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
    case SampleKind::kOdd:
      return {std::begin(kOdd), std::end(kOdd)};
    case SampleKind::kLarge:
      return {std::begin(kLarge), std::end(kLarge)};
  }
  return {};
}

const std::map<std::string, std::string> kDomains = {
    {"lgamma", "x"},
    {"digamma", "x"},
    {"asin", "u"},
    {"acos", "u"},
    {"atanh", "u"},
    {"acosh", "x"},
    {"log", "x"},
    {"log2", "x"},
    {"log10", "x"},
    {"sqrt", "x"},
    {"rsqrt", "x"},
    {"reciprocal", "x"},
    {"divide", "x"},
    {"floor_divide", "x"},
    {"remainder", "x"},
    {"fmod", "x"},
    {"xlogy", "x"},
    {"pow_grad", "x"},
    {"pow_exponent_grad", "x"},
    {"bitwise_left_shift", "x"},
    {"bitwise_right_shift", "x"},
    {"nextafter", "x"},
    {"atan2", "x"},
    {"tan", "u"},
    {"isclose", "x"},
};

const std::set<std::string> kExact = {
    "add",         "subtract",   "multiply",    "divide",        "maximum", "minimum",  "fmax",
    "fmin",        "negative",   "abs",         "sqrt",          "square",  "equal",    "not_equal",
    "less",        "less_equal", "greater",     "greater_equal", "isnan",   "isinf",    "isfinite",
    "exp",         "log",        "tanh",        "relu",          "floor",   "ceil",     "trunc",
    "logical_and", "logical_or", "logical_not", "logical_xor",   "where",   "positive", "copysign",
    "signbit",     "reciprocal", "atan",        "exp2",
};

const std::set<std::string> kNoNan = {"hardshrink", "softshrink",   "sign",
                                      "nextafter",  "floor_divide", "remainder",
                                      "nan_to_num", "xlogy",        "isclose"};

}  // namespace tenon::kit
