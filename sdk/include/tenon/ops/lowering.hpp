// SPDX-License-Identifier: Apache-2.0
// How operators defined by a scalar expression run on primitives. tenon-codegen writes each
// expression as a short program; here the program is run, one primitive for each step
// whose value differs between elements. Numbers are computed here until a step combines them with a
// tensor.
#pragma once

#include <tenon/ops/primitive_calls.hpp>
#include <tenon/ops/shapes.hpp>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

namespace tenon::lowering {

enum class Do : uint8_t {
  Input,      // tensor parameter a
  Attribute,  // parameter a, a number
  IsNone,     // is parameter a none?
  Float,      // number
  Int,        // number
  Bool,       // number
  Lowest,     // of the dtype
  Highest,    // of the dtype
  Partial,    // result of the reduction
  Count,      // elements reduced to one
  Unary,      // opcode of a
  Binary,     // opcode of a and b
  Compare,    // opcode of a and b
  Select      // a ? b : c
};
// Operands are numbers of earlier steps; the last step is the result.
struct Step {
  Do what;
  uint8_t opcode = 0;
  uint16_t a = 0, b = 0, c = 0;
  double number = 0;
};
struct Program {
  const Step* steps;
  uint32_t count;
};

// A tensor, or a number if there is none.
struct Value {
  Tensor tensor;
  tenon_value number = kNoValue;
  Value(Tensor x) : tensor(std::move(x)) {}
  Value(const ScalarArg& x) : number(x.value()) {}
  bool is_number() const { return !tensor; }
  bool truth() const { return number.tag == TENON_VALUE_FLOAT ? number.v.f != 0 : number.v.i != 0; }
};

constexpr bool is_integer(int32_t dtype) {
  return dtype > TENON_DTYPE_BOOL && dtype <= TENON_DTYPE_I64;
}

// A number as an element beside others of `dtype`: of its class, so that it promotes nothing.
inline ScalarArg number_for(const tenon_value& value, int32_t dtype) {
  if (value.tag == TENON_VALUE_COMPLEX) return value;
  const double real = ScalarArg(value).number();
  if (dtype == TENON_DTYPE_BOOL) return real != 0;
  if (!is_integer(dtype)) return real;
  return value.tag == TENON_VALUE_FLOAT ? static_cast<int64_t>(real) : value.v.i;
}

inline ScalarArg limit(bool highest, int32_t dtype) {
  if (dtype == TENON_DTYPE_BOOL) return highest;
  if (!is_integer(dtype)) return (highest ? 1 : -1) * std::numeric_limits<double>::infinity();
  const int32_t bits = static_cast<int32_t>(host->dtype_size(dtype)) * 8;
  const bool is_signed = (dtype - TENON_DTYPE_U8) % 2 == 1;  // u8, i8, u16, i16, ...
  if (!is_signed && !highest) return int64_t{0};
  const int64_t top = bits == 64 ? INT64_MAX : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return highest ? top : -top - 1;
}

// The arithmetic of attributes: what decompositions do with numbers alone.
inline std::optional<ScalarArg> fold(const Step& step, const tenon_value& a, const tenon_value& b) {
  const double x = ScalarArg(a).number(), y = ScalarArg(b).number();
  const bool ints = !ScalarArg(a).is_float() && !ScalarArg(b).is_float();
  auto number = [&](double value) -> ScalarArg {
    if (ints) return static_cast<int64_t>(value);
    return value;
  };
  if (step.what == Do::Compare) switch (step.opcode) {
      case TENON_COMPARE_EQUAL:
        return x == y;
      case TENON_COMPARE_NOT_EQUAL:
        return x != y;
      case TENON_COMPARE_LESS:
        return x < y;
      case TENON_COMPARE_LESS_EQUAL:
        return x <= y;
    }
  if (step.what == Do::Unary && step.opcode == TENON_UNARY_NEGATIVE) return number(-x);
  if (step.what == Do::Binary) switch (step.opcode) {
      case TENON_BINARY_ADD:
        return number(x + y);
      case TENON_BINARY_SUBTRACT:
        return number(x - y);
      case TENON_BINARY_MULTIPLY:
        return number(x * y);
      case TENON_BINARY_DIVIDE:
        return x / y;
      case TENON_BINARY_AND:
        if (a.tag == TENON_VALUE_BOOL) return x != 0 && y != 0;
        break;
      case TENON_BINARY_OR:
        if (a.tag == TENON_VALUE_BOOL) return x != 0 || y != 0;
        break;
    }
  return std::nullopt;
}

// What a program may read.
struct Surroundings {
  Scope& scope;
  const tenon_value* args;
  uint64_t promoted;  // bit of every parameter that is converted to `work`
  int32_t work;       // dtype of elements
  tenon_device_id device;
  Value partial = ScalarArg(0);
  int64_t count = 0;
};

class Run {
 public:
  Run(const Program& program, const Surroundings& around)
      : program_(program), around_(around), known_(program.count), readers_(program.count, 0) {
    for (uint32_t i = 0; i < program.count; ++i)
      for_each_operand(program.steps[i], [&](uint32_t operand) { ++readers_[operand]; });
  }
  Value result() { return value(program_.count - 1); }

 private:
  template <class Visit>
  static void for_each_operand(const Step& step, Visit visit) {
    if (step.what < Do::Unary) return;
    visit(step.a);
    if (step.what != Do::Unary) visit(step.b);
    if (step.what == Do::Select) visit(step.c);
  }

  Value value(uint32_t index) {
    if (!known_[index]) known_[index].emplace(compute(program_.steps[index]));
    Value result = *known_[index];
    // The last reader moves it out, so that its memory is freed as soon as possible.
    if (readers_[index] > 0 && --readers_[index] == 0) known_[index].reset();
    return result;
  }

  Value compute(const Step& step) {
    Scope& scope = around_.scope;
    if (!scope.ok()) return ScalarArg(0);
    switch (step.what) {
      case Do::Input:
        return input(step.a);
      case Do::Attribute:
        return ScalarArg(around_.args[step.a]);
      case Do::IsNone:
        return ScalarArg(around_.args[step.a].tag == TENON_VALUE_NONE);
      case Do::Float:
        return ScalarArg(step.number);
      case Do::Int:
        return ScalarArg(static_cast<int64_t>(step.number));
      case Do::Bool:
        return ScalarArg(step.number != 0);
      case Do::Lowest:
      case Do::Highest:
        return limit(step.what == Do::Highest, around_.work);
      case Do::Partial:
        return around_.partial;
      case Do::Count:
        return ScalarArg(around_.count);
      case Do::Select:
        return select(step);
      default:
        break;
    }
    Value a = value(step.a), b = step.what == Do::Unary ? a : value(step.b);
    if (a.is_number() && b.is_number()) {
      if (auto number = fold(step, a.number, b.number)) return *number;
      a = as_tensor(a);
    }
    if (step.what == Do::Unary) return primitive::unary(scope, step.opcode, a.tensor);
    auto call = step.what == Do::Binary ? &primitive::binary : &primitive::compare;
    return call(scope, step.opcode, beside(a, b), beside(b, a));
  }

  Value input(uint32_t index) {
    const tenon_value& arg = around_.args[index];
    if (arg.tag != TENON_VALUE_TENSOR) return ScalarArg(arg);
    Tensor x = Tensor::borrow(static_cast<tenon_tensor*>(arg.v.p));
    return around_.promoted >> index & 1 ? primitive::to_dtype(around_.scope, x, around_.work) : x;
  }

  Value select(const Step& step) {
    Value condition = value(step.a);
    if (condition.is_number()) return value(condition.truth() ? step.b : step.c);
    Value x = value(step.b), y = value(step.c);
    if (x.is_number() && y.is_number()) x = as_tensor(x);
    return primitive::select(around_.scope, condition.tensor, beside(x, y), beside(y, x));
  }

  Value as_tensor(const Value& x) {
    const int32_t dtype =
        x.number.tag == TENON_VALUE_BOOL ? int32_t{TENON_DTYPE_BOOL} : around_.work;
    return primitive::full(around_.scope, {}, number_for(x.number, dtype), dtype, around_.device);
  }

  static TensorArg beside(const Value& x, const Value& other) {
    if (!x.is_number()) return x.tensor;
    return number_for(x.number,
                      other.tensor ? int32_t{other.tensor->dtype} : int32_t{TENON_DTYPE_F32})
        .value();
  }

  const Program& program_;
  const Surroundings& around_;
  std::vector<std::optional<Value>> known_;
  std::vector<uint32_t> readers_;
};

// The result in the form that the operator's rules give it.
inline tenon_status give(Scope& scope, Value value, const std::vector<int64_t>& shape,
                         int32_t dtype, tenon_device_id device, tenon_value* outs) {
  Tensor result = std::move(value.tensor);
  if (scope.ok() && !result)
    result = primitive::full(scope, shape, number_for(value.number, dtype), dtype, device);
  if (!scope.ok()) return scope.status();
  if (static_cast<size_t>(result->ndim) != shape.size() ||
      !std::equal(shape.begin(), shape.end(), result->shape))
    result = primitive::copy(scope, primitive::expand(scope, result, shape), dtype);
  result = primitive::wrap_to_dtype(scope, result, dtype);
  if (!scope.ok()) return scope.status();
  outs[0] = boxed(result.release());
  return TENON_OK;
}

// -- elementwise operators ----------------------------------------------------------------------

enum class Out : uint8_t { Same, Bool, Int64, Real, Accumulate, Float };

inline int32_t out_dtype(Out out, int32_t compute) {
  switch (out) {
    case Out::Bool:
      return TENON_DTYPE_BOOL;
    case Out::Int64:
      return TENON_DTYPE_I64;
    case Out::Real:
      return shapes::real_dtype(compute);
    case Out::Accumulate:
      return shapes::accumulate_dtype(compute);
    case Out::Float:
      return shapes::float_dtype(compute);
    default:
      return compute;
  }
}

struct Case {
  uint64_t dtypes;
  Program program;
};
struct Elementwise {
  const char* name;
  uint64_t tensors;   // bit of every tensor parameter
  uint64_t promoted;  // of those converted to the compute dtype
  int32_t compute;    // TENON_COMPUTE_
  Out out;
  uint32_t ncases;
  const Case* cases;
};

// dtype of a call among tensors and weak numbers, as the host finds it.
inline int32_t compute_dtype(const tenon_value* args, uint64_t promoted, int32_t rule) {
  int32_t dtype = -1;
  for (uint32_t i = 0; promoted >> i; ++i)
    if (promoted >> i & 1 && args[i].tag == TENON_VALUE_TENSOR) {
      const int32_t other = tenon_arg_tensor(&args[i])->dtype;
      dtype = dtype < 0 || dtype == other ? other : host->dtype_promote(dtype, other);
    }
  for (uint32_t i = 0; promoted >> i; ++i) {
    if (!(promoted >> i & 1)) continue;
    const int32_t tag = args[i].tag;
    const int32_t least = tag == TENON_VALUE_INT       ? int32_t{TENON_DTYPE_I64}
                          : tag == TENON_VALUE_FLOAT   ? int32_t{TENON_DTYPE_F32}
                          : tag == TENON_VALUE_COMPLEX ? int32_t{TENON_DTYPE_C64}
                                                       : int32_t{TENON_DTYPE_BOOL};
    if (tag == TENON_VALUE_TENSOR || tag == TENON_VALUE_BOOL) continue;
    auto rank = [](int32_t id) {
      return id <= TENON_DTYPE_BOOL ? 0 : id <= TENON_DTYPE_I64 ? 1 : id <= TENON_DTYPE_F64 ? 2 : 3;
    };
    if (dtype < 0 || rank(least) > rank(dtype))
      dtype = dtype == TENON_DTYPE_F64 ? int32_t{TENON_DTYPE_C128} : least;
  }
  if (dtype < 0) dtype = TENON_DTYPE_F32;
  return rule == TENON_COMPUTE_PROMOTE_FLOAT ? shapes::float_dtype(dtype) : dtype;
}

inline tenon_status run(const Elementwise& op, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) try {
  Scope scope(err);
  tenon_meta meta;
  meta.ndim = 0;
  tenon_device_id device = TENON_DEVICE_NONE;
  for (uint32_t i = 0; op.tensors >> i; ++i)
    if (op.tensors >> i & 1 && args[i].tag == TENON_VALUE_TENSOR) {
      const tenon_tensor* tensor = tenon_arg_tensor(&args[i]);
      device = tensor->device;
      TENON_TRY(shapes::broadcast_with(op.name, tensor, meta, err));
    }
  const int32_t compute = compute_dtype(args, op.promoted, op.compute);
  for (uint32_t i = 0; i < op.ncases; ++i) {
    if (!(op.cases[i].dtypes >> compute & 1)) continue;
    const Surroundings around{scope, args, op.promoted, primitive::work_dtype(compute), device};
    Value result = Run(op.cases[i].program, around).result();
    return give(scope, std::move(result), {meta.shape, meta.shape + meta.ndim},
                out_dtype(op.out, compute), device, outs);
  }
  return shapes::fail(err, TENON_UNSUPPORTED, op.name, "no decomposition for %s",
                      host->dtype_name(compute));
} catch (const std::bad_alloc&) {
  return shapes::fail(err, TENON_OUT_OF_MEMORY, op.name, "out of host memory");
}

// -- reductions -----------------------------------------------------------------------------------

struct Reduction {
  const char* name;
  uint32_t axis, keepdim;  // parameters; ~0: none, which is false
  int32_t compute;
  Out out;
  uint8_t opcode;  // TENON_REDUCTION_
  bool truth;      // partial results are bools
  Program init;    // without steps: an empty tensor cannot be reduced
  Program map, finish;
};

// `x` as [outer, n, inner] with the axes of `mask` in the middle, in one piece.
inline Tensor reduced_in_middle(Scope& scope, const Tensor& x, uint32_t mask) {
  if (!scope.ok()) return {};
  int32_t first = x->ndim, last = -1;
  for (int32_t i = 0; i < x->ndim; ++i)
    if (mask >> i & 1) first = std::min(first, i), last = i;
  int64_t outer = 1, n = 1, inner = 1;
  bool in_one_piece = true;
  for (int32_t i = 0; i < x->ndim; ++i) {
    const bool reduced = mask >> i & 1;
    if (!reduced && i > first && i < last && x->shape[i] != 1) in_one_piece = false;
    (reduced ? n : i < first ? outer : inner) *= x->shape[i];
  }
  if (in_one_piece) return primitive::reshape(scope, x, {outer, n, inner});
  std::vector<int64_t> shape, strides;
  for (bool reduced : {false, true})
    for (int32_t i = 0; i < x->ndim; ++i)
      if ((mask >> i & 1) == reduced) {
        shape.push_back(x->shape[i]);
        strides.push_back(x->strides[i]);
      }
  Tensor moved = primitive::view(scope, x, shape, strides);
  return primitive::reshape(scope, moved, {outer * inner, n, 1});
}

// The dtype of partial results. Integers add up and multiply in int64, which devices need anyway:
// the bits are those of uint64. For a mean that is exact where float32 is not; integers of 64 bits,
// whose sums may not fit, are averaged in float32.
inline int32_t partial_dtype(Out out, bool truth, bool plain_sum, int32_t compute) {
  const int32_t work = primitive::work_dtype(compute);
  if (truth || compute > TENON_DTYPE_I64) return work;
  if (out == Out::Accumulate) return TENON_DTYPE_I64;
  if (out != Out::Float) return work;
  const bool wide = compute == TENON_DTYPE_I64 || compute == TENON_DTYPE_U64;
  return plain_sum && !wide ? int32_t{TENON_DTYPE_I64} : int32_t{TENON_DTYPE_F32};
}

inline tenon_status run(const Reduction& op, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) try {
  Scope scope(err);
  const tenon_value none = kNoValue;
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (!x) return shapes::fail(err, TENON_TYPE_MISMATCH, op.name, "expected a tensor, got a number");
  const int32_t compute = compute_dtype(args, 1, op.compute);
  const int32_t result_dtype = out_dtype(op.out, compute);
  // Elements are widened before they are mapped, unless the map asks about them (x != 0).
  const bool plain_sum =
      op.opcode == TENON_REDUCTION_SUM && op.map.count == 1 && op.map.steps[0].what == Do::Input;
  const int32_t work = partial_dtype(op.out, op.truth, plain_sum, compute);
  uint32_t mask = 0;
  const tenon_value& axes = op.axis == ~uint32_t{0} ? none : args[op.axis];
  TENON_TRY(shapes::reduction_mask(op.name, "axis", axes, x->ndim, &mask, err));
  const bool keepdim = op.keepdim != ~uint32_t{0} && tenon_arg_bool(&args[op.keepdim]);
  int64_t n = 1;
  std::vector<int64_t> shape;
  for (int32_t i = 0; i < x->ndim; ++i) {
    if (mask >> i & 1) n *= x->shape[i];
    if (!(mask >> i & 1) || keepdim) shape.push_back(mask >> i & 1 ? 1 : x->shape[i]);
  }
  Surroundings around{scope, args, 1, work, x->device};
  around.count = n;
  if (n == 0) {
    if (op.init.count == 0 && primitive::count_of(shape) > 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op.name, "expected elements to reduce");
    const int32_t partial = op.truth ? int32_t{TENON_DTYPE_BOOL} : work;
    const Value init = op.init.count ? Run(op.init, around).result() : Value(ScalarArg(0));
    around.partial =
        primitive::full(scope, shape, number_for(init.number, partial), partial, x->device);
  } else {
    Tensor mapped = Run(op.map, around).result().tensor;
    Tensor reduced = primitive::reduce(scope, op.opcode, reduced_in_middle(scope, mapped, mask));
    around.partial = primitive::reshape(scope, reduced, shape);
  }
  if (op.out == Out::Float) {
    around.work = primitive::work_dtype(result_dtype);
    around.partial.tensor = primitive::to_dtype(scope, around.partial.tensor, around.work);
  }
  Value result = Run(op.finish, around).result();
  return give(scope, std::move(result), shape, result_dtype, x->device, outs);
} catch (const std::bad_alloc&) {
  return shapes::fail(err, TENON_OUT_OF_MEMORY, op.name, "out of host memory");
}

}  // namespace tenon::lowering
