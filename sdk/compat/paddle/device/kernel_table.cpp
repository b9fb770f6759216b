// SPDX-License-Identifier: Apache-2.0
// The table itself. To add a kernel, add its row: what Tenon calls it, and its arguments in
// Paddle's order.
#include "device/kernel_table.hpp"

#include <tenon/unbox.h>

#include <algorithm>
#include <cstring>

namespace tenon::paddle {
namespace {

// -- arguments, as the rows write them
constexpr Argument tensor(int8_t index) { return {PD_ARG_TYPE_TENSOR, How::kTensor, index}; }
constexpr Argument column(int8_t index) { return {PD_ARG_TYPE_TENSOR, How::kColumn, index}; }
constexpr Argument number(int8_t index) { return {PD_ARG_TYPE_TENSOR, How::kNumber, index}; }
constexpr Argument tensors(int8_t index) { return {PD_ARG_TYPE_LIST_TENSOR, How::kTensors, index}; }
constexpr Argument no_tensor() { return {PD_ARG_TYPE_OPTIONAL_TENSOR, How::kAbsent}; }
constexpr Argument flag(int8_t index) { return {PD_ARG_TYPE_BOOL, How::kArgument, index}; }
constexpr Argument yes() { return {PD_ARG_TYPE_BOOL, How::kConstant, 1}; }
constexpr Argument no() { return {PD_ARG_TYPE_BOOL, How::kConstant, 0}; }
constexpr Argument integer(int8_t index) { return {PD_ARG_TYPE_INT32, How::kArgument, index}; }
constexpr Argument constant(int8_t value) { return {PD_ARG_TYPE_INT32, How::kConstant, value}; }
constexpr Argument axis(int8_t index) { return {PD_ARG_TYPE_INT32, How::kAxis, index}; }
constexpr Argument scalar_axis(int8_t index) { return {PD_ARG_TYPE_SCALAR, How::kAxis, index}; }
constexpr Argument axes(int8_t index) { return {PD_ARG_TYPE_INT_ARRAY, How::kAxes, index}; }
constexpr Argument all_axes(int8_t index) { return {PD_ARG_TYPE_BOOL, How::kAllAxes, index}; }
constexpr Argument scalar(int8_t index) { return {PD_ARG_TYPE_SCALAR, How::kArgument, index}; }
constexpr Argument out_dtype() { return {PD_ARG_TYPE_DATA_TYPE, How::kOutputDtype}; }
constexpr Argument out_shape() { return {PD_ARG_TYPE_INT_ARRAY, How::kOutputShape}; }
constexpr Argument seed() { return {PD_ARG_TYPE_INT32, How::kSeed}; }
constexpr Argument out(int8_t index = 0) { return {PD_ARG_TYPE_TENSOR, How::kOutput, index}; }
constexpr Argument scratch() { return {PD_ARG_TYPE_TENSOR, How::kScratch}; }
constexpr Argument no_out() { return {PD_ARG_TYPE_TENSOR, How::kAbsent}; }

// -- dtypes
constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kFloating =
    bit(TENON_DTYPE_F16) | bit(TENON_DTYPE_BF16) | bit(TENON_DTYPE_F32) | bit(TENON_DTYPE_F64);
constexpr uint64_t kExact = bit(TENON_DTYPE_BOOL) | bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_I8) |
                            bit(TENON_DTYPE_U16) | bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_U32) |
                            bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_U64) | bit(TENON_DTYPE_I64);
constexpr uint64_t kIntegers = kExact & ~bit(TENON_DTYPE_BOOL);
// Existing plugins convert through float32.
constexpr uint64_t kFitsFloat = bit(TENON_DTYPE_BOOL) | bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_I8) |
                                bit(TENON_DTYPE_U16) | bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_F16) |
                                bit(TENON_DTYPE_BF16) | bit(TENON_DTYPE_F32);

// -- what kernels are known not to do
const tenon_tensor& arg(const tenon_value* args, int index) {
  return *tenon_arg_tensor(&args[index]);
}

// Sums over no axis, of a number or of nothing: crash or are undefined in existing plugins.
int32_t can_reduce(const tenon_value* args, uint32_t) {
  const tenon_tensor& x = arg(args, 0);
  const bool names_none = args[1].tag != TENON_VALUE_NONE && tenon_arg_count(&args[1]) == 0;
  return x.ndim > 0 && x.numel > 0 && !names_none;
}

// Something along an axis.
int32_t has_axis(const tenon_value* args, uint32_t) {
  return arg(args, 0).ndim > 0 && arg(args, 0).numel > 0;
}

// Two matrices. Batches come out wrong, and with rank 4 undone, without an error.
int32_t can_multiply_matrices(const tenon_value* args, uint32_t) {
  const tenon_tensor &x = arg(args, 0), &y = arg(args, 1);
  return x.ndim == 2 && y.ndim == 2 && x.numel > 0 && y.numel > 0;
}
int32_t can_be_linear(const tenon_value* args, uint32_t) {
  const tenon_tensor &x = arg(args, 0), &weight = arg(args, 1);
  return args[2].tag == TENON_VALUE_NONE && x.ndim == 2 && weight.ndim == 2 && x.numel > 0 &&
         weight.numel > 0;
}

int32_t can_join(const tenon_value* args, uint32_t) {
  const auto* list = tenon_arg_tensors(&args[0]);
  for (uint64_t i = 0; i < tenon_arg_count(&args[0]); ++i)
    if (!list[i] || list[i]->ndim == 0 || list[i]->numel == 0) return 0;
  return 1;
}

int32_t has_no_weight_decay(const tenon_value* args, uint32_t) {
  return tenon_arg_float(&args[3]) == 0;
}

int32_t can_cross_entropy(const tenon_value* args, uint32_t) {
  return arg(args, 0).ndim == 2 && arg(args, 0).numel > 0 && arg(args, 1).dtype == TENON_DTYPE_I64;
}

// Dense tensors are copied by the device; strides that go backwards do not exist in Paddle.
int32_t can_gather_strides(const tenon_value* args, uint32_t) {
  const tenon_tensor& x = arg(args, 0);
  if (x.ndim == 0 || x.numel == 0 || x.flags & TENON_TENSOR_CONTIGUOUS) return 0;
  return std::none_of(x.strides, x.strides + x.ndim, [](int64_t stride) { return stride < 0; });
}

int32_t makes_something(const tenon_value* args, uint32_t) {
  const int64_t* shape = tenon_arg_ints(&args[0]);
  const auto rank = static_cast<int64_t>(tenon_arg_count(&args[0]));
  return rank > 0 && std::none_of(shape, shape + rank, [](int64_t extent) { return extent == 0; });
}

// -- rows
Row unary(const char* name, uint64_t dtypes = kFloating) {
  static std::deque<std::string> names;
  names.push_back(std::string("tenon::") + name);
  return {.kernel = name,
          .op = names.back().c_str(),
          .inputs = {tensor(0)},
          .attributes = {},
          .outputs = {out()},
          .dtypes = dtypes};
}
Row binary(const char* name, const char* op, uint64_t dtypes = kFloating | kIntegers) {
  return {.kernel = name,
          .op = op,
          .inputs = {tensor(0), tensor(1)},
          .attributes = {},
          .outputs = {out()},
          .traits = TENON_KERNEL_BROADCAST,
          .dtypes = dtypes};
}
Row reduction(const char* name, const char* op, uint64_t dtypes) {
  return {.kernel = name,
          .op = op,
          .inputs = {tensor(0)},
          .attributes = {axes(1), flag(2)},
          .outputs = {out()},
          .dtypes = dtypes,
          .can_run = can_reduce};
}
Row reduction_raw(const char* name, const char* op, uint64_t dtypes) {
  Row row = reduction(name, op, dtypes);
  row.attributes = {axes(1), flag(2), all_axes(1)};
  return row;
}
// Gradients in terms of the result: Paddle's (out, out_grad) are Tenon's (grad_out, y) the other
// way round.
Row gradient_of_result(const char* name, const char* op) {
  return {.kernel = name,
          .op = op,
          .inputs = {tensor(1), tensor(0)},
          .attributes = {},
          .outputs = {out()},
          .dtypes = kFloating};
}

std::vector<Row> make_rows() {
  Row add = binary("add", "tenon::add"), multiply = binary("multiply", "tenon::multiply");
  add.in_place = multiply.in_place = true;
  return {
      // Arithmetic. Integers divide otherwise than in Tenon, and the extremes and order of floats
      // have no rule
      // for NaN in Paddle, so that kernels of that kind serve integers alone.
      add,
      multiply,
      binary("subtract", "tenon::subtract"),
      binary("divide", "tenon::divide", kFloating),
      binary("maximum", "tenon::maximum", kIntegers),
      binary("minimum", "tenon::minimum", kIntegers),
      // Comparison. Equality of floats is approximate in existing plugins.
      binary("equal", "tenon::equal", kExact),
      binary("not_equal", "tenon::not_equal", kExact),
      binary("less_than", "tenon::less", kFloating | kExact),
      binary("less_equal", "tenon::less_equal", kFloating | kExact),
      binary("greater_than", "tenon::greater", kFloating | kExact),
      binary("greater_equal", "tenon::greater_equal", kFloating | kExact),
      // Functions of one tensor, and the gradients of some.
      unary("abs"),
      unary("ceil"),
      unary("cos"),
      unary("exp"),
      unary("floor"),
      unary("log"),
      unary("reciprocal"),
      unary("relu"),
      unary("rsqrt"),
      unary("sigmoid"),
      unary("sign"),
      unary("silu"),
      unary("sin"),
      unary("sqrt"),
      unary("square"),
      unary("tanh"),
      gradient_of_result("relu_grad", "tenon::relu_grad"),
      gradient_of_result("sigmoid_grad", "tenon::sigmoid_grad"),
      gradient_of_result("tanh_grad", "tenon::tanh_grad"),
      // Reductions.
      {.kernel = "sum",
       .op = "tenon::sum",
       .inputs = {tensor(0)},
       .attributes = {axes(1), out_dtype(), flag(2)},
       .outputs = {out()},
       .dtypes = kFloating,  // how integers accumulate is the plugin's affair
       .can_run = can_reduce},
      {.kernel = "sum_raw",
       .op = "tenon::sum",
       .inputs = {tensor(0)},
       .attributes = {axes(1), flag(2), all_axes(1), out_dtype()},
       .outputs = {out()},
       .dtypes = kFloating,  // how integers accumulate is the plugin's affair
       .can_run = can_reduce},
      reduction("mean", "tenon::mean", kFloating),
      reduction_raw("mean_raw", "tenon::mean", kFloating),
      reduction("max", "tenon::max", kIntegers),
      reduction_raw("max_raw", "tenon::max", kIntegers),
      reduction("min", "tenon::min", kIntegers),
      reduction_raw("min_raw", "tenon::min", kIntegers),
      // Along an axis.
      {.kernel = "softmax",
       .op = "tenon::softmax",
       .inputs = {tensor(0)},
       .attributes = {axis(1)},
       .outputs = {out()},
       .can_run = has_axis},
      {.kernel = "softmax_grad",
       .op = "tenon::softmax_grad",
       .inputs = {tensor(1), tensor(0)},
       .attributes = {axis(2)},
       .outputs = {out()},
       .can_run = has_axis},
      {.kernel = "argsort",
       .op = "tenon::sort_with_indices",
       .inputs = {tensor(0)},
       .attributes = {axis(1), flag(2), yes()},
       .outputs = {out(0), out(1)},
       .dtypes = kIntegers,
       .can_run = has_axis},
      {.kernel = "concat",
       .op = "tenon::concat",
       .inputs = {tensors(0)},
       .attributes = {scalar_axis(1)},
       .outputs = {out()},
       .can_run = can_join},
      // Matrices.
      {.kernel = "matmul",
       .op = "tenon::matmul",
       .inputs = {tensor(0), tensor(1)},
       .attributes = {no(), no()},
       .outputs = {out()},
       .can_run = can_multiply_matrices},
      {.kernel = "matmul",
       .op = "tenon::linear",
       .inputs = {tensor(0), tensor(1)},
       .attributes = {no(), yes()},
       .outputs = {out()},
       .can_run = can_be_linear},
      // Dtype and layout.
      {.kernel = "cast",
       .op = "tenon::cast",
       .inputs = {tensor(0)},
       .attributes = {out_dtype()},
       .outputs = {out()},
       .dtypes = kFitsFloat},
      {.kernel = "contiguous",
       .op = "tenon::clone",
       .inputs = {tensor(0)},
       .attributes = {},
       .outputs = {out()},
       .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
       .can_run = can_gather_strides},
      // Made from nothing.
      {.kernel = "full",
       .op = "tenon::full",
       .inputs = {},
       .attributes = {out_shape(), scalar(1), out_dtype()},
       .outputs = {out()},
       .can_run = makes_something},
      {.kernel = "fill",
       .op = "tenon::full",
       .inputs = {},
       .attributes = {scalar(1)},
       .outputs = {out()},
       .can_run = makes_something},
      {.kernel = "uniform",
       .op = "tenon::uniform",
       .inputs = {},
       .attributes = {out_shape(), out_dtype(), scalar(1), scalar(2), seed()},
       .outputs = {out()},
       .traits = TENON_KERNEL_NONDETERMINISTIC,
       .can_run = makes_something},
      // Training.
      {.kernel = "sgd",
       .op = "tenon::sgd_update",
       .inputs = {tensor(0), number(2), tensor(1), no_tensor()},
       .attributes = {no()},
       .outputs = {out(), no_out()},
       .dtypes = kFloating,
       .can_run = has_no_weight_decay,
       .in_place = true},
      {.kernel = "cross_entropy_with_softmax",
       .op = "tenon::softmax_cross_entropy",
       .inputs = {tensor(0), column(1)},
       .attributes = {no(), yes(), yes(), integer(2), constant(1)},
       .outputs = {scratch(), out()},
       .can_run = can_cross_entropy},
  };
}

struct Otherwise {
  const char* kernel;
  const char* text;
};
constexpr Otherwise kOtherwise[] = {
    {"transpose", "permute is a view in Tenon; `contiguous` runs where one is needed"},
    {"slice", "slice is a view in Tenon; `contiguous` runs where one is needed"},
    {"reshape", "reshape is a view in Tenon"},
    {"reshape_infer", "reshape is a view in Tenon"},
    {"strided_copy", "`contiguous` serves strided copies"},
    {"memcpy_d2h", "the device's own copies serve"},
    {"memcpy_h2d", "the device's own copies serve"},
    {"assign", "the device's own copies serve"},
    {"assign_value", "the device's own copies serve"},
    {"mean_all", "`mean` serves"},
    {"mean_all_grad", "Tenon's gradient of mean needs no kernel of its own"},
    {"matmul_grad", "Tenon's gradient of matmul is made of matmul"},
    {"cross_entropy_with_softmax_grad",
     "Tenon's gradient of cross entropy is made of other operators"},
    {"uniform_raw", "`uniform` serves"},
};

}  // namespace

const std::vector<Row>& kernel_rows() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

const char* served_otherwise(const std::string& kernel) {
  for (const Otherwise& entry : kOtherwise)
    if (kernel == entry.kernel) return entry.text;
  // Elementwise kernels with the axis of an old broadcasting rule.
  if (kernel.size() > 4 && kernel.ends_with("_raw")) {
    const std::string plain = kernel.substr(0, kernel.size() - 4);
    for (const Row& row : kernel_rows())
      if (plain == row.kernel) return "the kernel without _raw serves";
  }
  return nullptr;
}

}  // namespace tenon::paddle
