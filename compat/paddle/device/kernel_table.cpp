// SPDX-License-Identifier: Apache-2.0
// The table itself. To add a kernel, add its row: what Tenon calls it, and its arguments in
// Paddle's order, each with the parameter of the operator that it is made of. An operator that is
// new here goes into operators.hpp first.
#include "device/kernel_table.hpp"

#include <tenon/unbox.h>

#include <algorithm>
#include <cstring>

namespace tenon::paddle {
namespace {

// -- arguments, as the rows write them: those made of a parameter name it
using Text = std::string_view;
constexpr Argument made_of(PD_KernelArgumentType type, How how, Text parameter) {
  return {type, how, 0, parameter};
}
constexpr Argument tensor(Text name) { return made_of(PD_ARG_TYPE_TENSOR, How::kTensor, name); }
constexpr Argument column(Text name) { return made_of(PD_ARG_TYPE_TENSOR, How::kColumn, name); }
constexpr Argument number(Text name) { return made_of(PD_ARG_TYPE_TENSOR, How::kNumber, name); }
constexpr Argument tensors(Text name) {
  return made_of(PD_ARG_TYPE_LIST_TENSOR, How::kTensors, name);
}
constexpr Argument no_tensor() { return {PD_ARG_TYPE_OPTIONAL_TENSOR, How::kAbsent}; }
constexpr Argument flag(Text name) { return made_of(PD_ARG_TYPE_BOOL, How::kArgument, name); }
constexpr Argument yes() { return {PD_ARG_TYPE_BOOL, How::kConstant, 1}; }
constexpr Argument no() { return {PD_ARG_TYPE_BOOL, How::kConstant, 0}; }
constexpr Argument integer(Text name) { return made_of(PD_ARG_TYPE_INT32, How::kArgument, name); }
constexpr Argument constant(int8_t value) { return {PD_ARG_TYPE_INT32, How::kConstant, value}; }
constexpr Argument axis(Text name) { return made_of(PD_ARG_TYPE_INT32, How::kAxis, name); }
constexpr Argument scalar_axis(Text name) { return made_of(PD_ARG_TYPE_SCALAR, How::kAxis, name); }
constexpr Argument axes(Text name) { return made_of(PD_ARG_TYPE_INT_ARRAY, How::kAxes, name); }
constexpr Argument all_axes(Text name) { return made_of(PD_ARG_TYPE_BOOL, How::kAllAxes, name); }
constexpr Argument scalar(Text name) { return made_of(PD_ARG_TYPE_SCALAR, How::kArgument, name); }
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
// The value of an operator's parameter.
template <const Operator& kOperator>
const tenon_value& value(const tenon_value* args, auto name) {
  constexpr int index = kOperator.find(name());
  static_assert(index >= 0, "the operator has no parameter of this name");
  return args[index];
}
#define TENON_PADDLE_VALUE(OP, NAME) value<op_##OP>(args, [] { return std::string_view(NAME); })

// Sums over no axis, of a number or of nothing: crash or are undefined in existing plugins.
int32_t can_reduce(const tenon_value* args, uint32_t) {
  const tenon_tensor& x = arg(args, 0);
  const tenon_value& axis = TENON_PADDLE_VALUE(sum, "axis");  // mean, max, min have it there too
  const bool names_none = axis.tag != TENON_VALUE_NONE && tenon_arg_count(&axis) == 0;
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
  return TENON_PADDLE_VALUE(linear, "bias").tag == TENON_VALUE_NONE && x.ndim == 2 &&
         weight.ndim == 2 && x.numel > 0 && weight.numel > 0;
}

// Paddle has no dtype for some of ours, which a tensor may still be cast to.
int32_t can_cast(const tenon_value* args, uint32_t) {
  const auto dtype = static_cast<int32_t>(tenon_arg_int(&TENON_PADDLE_VALUE(cast, "dtype")));
  return to_paddle_dtype(dtype) != UNDEFINED;
}

int32_t can_join(const tenon_value* args, uint32_t) {
  const auto* list = tenon_arg_tensors(&args[0]);
  for (uint64_t i = 0; i < tenon_arg_count(&args[0]); ++i)
    if (!list[i] || list[i]->ndim == 0 || list[i]->numel == 0) return 0;
  return 1;
}

int32_t has_no_weight_decay(const tenon_value* args, uint32_t) {
  return tenon_arg_float(&TENON_PADDLE_VALUE(sgd_update, "weight_decay")) == 0;
}

// The kernel makes one loss for each row: a sum or a mean of them is another operator's, and the
// result that this operator has then is too small for what the kernel writes.
int32_t can_cross_entropy(const tenon_value* args, uint32_t) {
  const tenon_value& reduction = TENON_PADDLE_VALUE(softmax_cross_entropy, "reduction");
  const int64_t ignored = tenon_arg_int(&TENON_PADDLE_VALUE(softmax_cross_entropy, "ignore_index"));
  if (ignored != static_cast<int32_t>(ignored)) return 0;  // the kernel's is an int
  return arg(args, 0).ndim == 2 && arg(args, 0).numel > 0 &&
         arg(args, 1).dtype == TENON_DTYPE_I64 &&
         std::string_view(tenon_arg_string(&reduction), reduction.aux) == "none";
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
constexpr Row unary(const char* name, const Operator& op) {
  return {.kernel = name,
          .op = &op,
          .inputs = {tensor("x")},
          .attributes = {},
          .outputs = {out()},
          .dtypes = kFloating};
}
constexpr Row binary(const char* name, const Operator& op,
                     uint64_t dtypes = kFloating | kIntegers) {
  return {.kernel = name,
          .op = &op,
          .inputs = {tensor("x"), tensor("y")},
          .attributes = {},
          .outputs = {out()},
          .traits = TENON_KERNEL_BROADCAST,
          .dtypes = dtypes};
}
constexpr Row in_place(Row row) {
  row.in_place = true;
  return row;
}
constexpr Row reduction(const char* name, const Operator& op, uint64_t dtypes) {
  return {.kernel = name,
          .op = &op,
          .inputs = {tensor("x")},
          .attributes = {axes("axis"), flag("keepdim")},
          .outputs = {out()},
          .dtypes = dtypes,
          .can_run = can_reduce};
}
constexpr Row reduction_raw(const char* name, const Operator& op, uint64_t dtypes) {
  Row row = reduction(name, op, dtypes);
  row.attributes = {axes("axis"), flag("keepdim"), all_axes("axis")};
  return row;
}
// Gradients in terms of the result: Paddle's (out, out_grad) are Tenon's (grad_out, y) the other
// way round.
constexpr Row gradient_of_result(const char* name, const Operator& op) {
  return {.kernel = name,
          .op = &op,
          .inputs = {tensor("y"), tensor("grad_out")},
          .attributes = {},
          .outputs = {out()},
          .dtypes = kFloating};
}

constexpr Row kRows[] = {
    // Arithmetic. Integers divide otherwise than in Tenon, and the extremes and order of floats
    // have no rule
    // for NaN in Paddle, so that kernels of that kind serve integers alone.
    in_place(binary("add", op_add)),
    in_place(binary("multiply", op_multiply)),
    binary("subtract", op_subtract),
    binary("divide", op_divide, kFloating),
    binary("maximum", op_maximum, kIntegers),
    binary("minimum", op_minimum, kIntegers),
    // Comparison. Equality of floats is approximate in existing plugins.
    binary("equal", op_equal, kExact),
    binary("not_equal", op_not_equal, kExact),
    binary("less_than", op_less, kFloating | kExact),
    binary("less_equal", op_less_equal, kFloating | kExact),
    binary("greater_than", op_greater, kFloating | kExact),
    binary("greater_equal", op_greater_equal, kFloating | kExact),
    // Functions of one tensor, and the gradients of some.
    unary("abs", op_abs),
    unary("ceil", op_ceil),
    unary("cos", op_cos),
    unary("exp", op_exp),
    unary("floor", op_floor),
    unary("log", op_log),
    unary("reciprocal", op_reciprocal),
    unary("relu", op_relu),
    unary("rsqrt", op_rsqrt),
    unary("sigmoid", op_sigmoid),
    unary("sign", op_sign),
    unary("silu", op_silu),
    unary("sin", op_sin),
    unary("sqrt", op_sqrt),
    unary("square", op_square),
    unary("tanh", op_tanh),
    gradient_of_result("relu_grad", op_relu_grad),
    gradient_of_result("sigmoid_grad", op_sigmoid_grad),
    gradient_of_result("tanh_grad", op_tanh_grad),
    // Reductions.
    {.kernel = "sum",
     .op = &op_sum,
     .inputs = {tensor("x")},
     .attributes = {axes("axis"), out_dtype(), flag("keepdim")},
     .outputs = {out()},
     .dtypes = kFloating,  // how integers accumulate is the plugin's affair
     .can_run = can_reduce},
    {.kernel = "sum_raw",
     .op = &op_sum,
     .inputs = {tensor("x")},
     .attributes = {axes("axis"), flag("keepdim"), all_axes("axis"), out_dtype()},
     .outputs = {out()},
     .dtypes = kFloating,  // how integers accumulate is the plugin's affair
     .can_run = can_reduce},
    reduction("mean", op_mean, kFloating),
    reduction_raw("mean_raw", op_mean, kFloating),
    reduction("max", op_max, kIntegers),
    reduction_raw("max_raw", op_max, kIntegers),
    reduction("min", op_min, kIntegers),
    reduction_raw("min_raw", op_min, kIntegers),
    // Along an axis.
    {.kernel = "softmax",
     .op = &op_softmax,
     .inputs = {tensor("x")},
     .attributes = {axis("axis")},
     .outputs = {out()},
     .can_run = has_axis},
    {.kernel = "softmax_grad",
     .op = &op_softmax_grad,
     .inputs = {tensor("y"), tensor("grad_out")},
     .attributes = {axis("axis")},
     .outputs = {out()},
     .can_run = has_axis},
    {.kernel = "argsort",
     .op = &op_sort_with_indices,
     .inputs = {tensor("x")},
     .attributes = {axis("axis"), flag("descending"), yes()},
     .outputs = {out(0), out(1)},
     .dtypes = kIntegers,
     .can_run = has_axis},
    {.kernel = "concat",
     .op = &op_concat,
     .inputs = {tensors("tensors")},
     .attributes = {scalar_axis("axis")},
     .outputs = {out()},
     .can_run = can_join},
    // Matrices.
    {.kernel = "matmul",
     .op = &op_matmul,
     .inputs = {tensor("x"), tensor("y")},
     .attributes = {no(), no()},
     .outputs = {out()},
     .can_run = can_multiply_matrices},
    {.kernel = "matmul",
     .op = &op_linear,
     .inputs = {tensor("x"), tensor("weight")},
     .attributes = {no(), yes()},
     .outputs = {out()},
     .settled = {"bias"},
     .can_run = can_be_linear},
    // Dtype and layout.
    {.kernel = "cast",
     .op = &op_cast,
     .inputs = {tensor("x")},
     .attributes = {out_dtype()},
     .outputs = {out()},
     .settled = {"dtype"},
     .dtypes = kFitsFloat,
     .can_run = can_cast},
    {.kernel = "contiguous",
     .op = &op_clone,
     .inputs = {tensor("x")},
     .attributes = {},
     .outputs = {out()},
     .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
     .can_run = can_gather_strides},
    // Made from nothing.
    {.kernel = "full",
     .op = &op_full,
     .inputs = {},
     .attributes = {out_shape(), scalar("value"), out_dtype()},
     .outputs = {out()},
     .settled = {"shape", "dtype", "device"},
     .can_run = makes_something},
    {.kernel = "fill",
     .op = &op_full,
     .inputs = {},
     .attributes = {scalar("value")},
     .outputs = {out()},
     .settled = {"shape", "dtype", "device"},
     .can_run = makes_something},
    {.kernel = "uniform",
     .op = &op_uniform,
     .inputs = {},
     .attributes = {out_shape(), out_dtype(), scalar("low"), scalar("high"), seed()},
     .outputs = {out()},
     .settled = {"shape", "dtype", "device"},
     .traits = TENON_KERNEL_NONDETERMINISTIC,
     .can_run = makes_something},
    // Training.
    {.kernel = "sgd",
     .op = &op_sgd_update,
     .inputs = {tensor("param"), number("lr"), tensor("grad"), no_tensor()},
     .attributes = {no()},
     .outputs = {out(), no_out()},
     .settled = {"weight_decay"},
     .dtypes = kFloating,
     .can_run = has_no_weight_decay,
     .in_place = true},
    {.kernel = "cross_entropy_with_softmax",
     .op = &op_softmax_cross_entropy,
     .inputs = {tensor("x"), column("target")},
     .attributes = {no(), yes(), yes(), integer("ignore_index"), constant(1)},
     .outputs = {scratch(), out()},
     .settled = {"reduction"},
     .can_run = can_cross_entropy},
};

// -- checks of the build: each parameter of a row's operator is accounted for

constexpr bool names_all_parameters(const Row& row) {
  const int count = row.op->parameter_count();
  uint32_t named = 0;
  auto name = [&](Text parameter) {
    const int index = row.op->find(parameter);
    if (index < 0 || index >= count) return false;
    named |= 1u << index;
    return true;
  };
  for (const Arguments* list : {&row.inputs, &row.attributes, &row.outputs})
    for (const Argument& argument : *list)
      if (!argument.parameter.empty() && !name(argument.parameter)) return false;
  for (Text parameter : row.settled)
    if (!name(parameter)) return false;
  return named == (1u << count) - 1;
}

struct RowName {
  char text[32] = {};
  constexpr explicit RowName(const char* name) {
    for (size_t i = 0; name[i]; ++i) text[i] = name[i];
  }
};
template <RowName kKernel, RowName kOperator, bool kNamesAll>
struct CheckedRow {
  static_assert(kNamesAll,
                "a row of the kernel table (its kernel and its operator stand in the template's "
                "name) names a parameter that the operator has not, or leaves one out: make a "
                "kernel's argument of it, or decide on it in can_run and put it into `settled`");
  static constexpr bool is_checked = true;
};
template <size_t... kIndex>
constexpr bool check_rows(std::index_sequence<kIndex...>) {
  return (CheckedRow<RowName(kRows[kIndex].kernel), RowName(kRows[kIndex].op->name),
                     names_all_parameters(kRows[kIndex])>::is_checked &&
          ...);
}
static_assert(check_rows(std::make_index_sequence<std::size(kRows)>()));

// The rows with the positions of their parameters.
constexpr auto kPlacedRows = [] {
  auto rows = std::to_array(kRows);
  for (Row& row : rows)
    for (Arguments* list : {&row.inputs, &row.attributes, &row.outputs})
      for (Argument& argument : *list)
        if (!argument.parameter.empty())
          argument.index = static_cast<int8_t>(row.op->find(argument.parameter));
  return rows;
}();

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

std::span<const Row> kernel_rows() { return kPlacedRows; }

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
