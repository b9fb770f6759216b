// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/arguments.hpp"

#include <algorithm>

#include "kernel_core/dispatch/host_scalar.hpp"

namespace tenon::core {
namespace {

// By TENON_PARAM_*: the tag of values that fit as they are. -1: not one tag alone.
constexpr int32_t kPlainTags[] = {-1,
                                  TENON_VALUE_TENSOR,
                                  TENON_VALUE_TENSORS,
                                  TENON_VALUE_INT,
                                  TENON_VALUE_FLOAT,
                                  TENON_VALUE_BOOL,
                                  -1,
                                  TENON_VALUE_STRING,
                                  -1,
                                  TENON_VALUE_DEVICE,
                                  TENON_VALUE_INTS,
                                  TENON_VALUE_FLOATS};

// The index of the first NULL in a list of tensors; its length if there is none.
uint32_t first_null(const tenon_value& list) {
  auto* tensors = static_cast<tenon_tensor* const*>(list.v.p);
  uint32_t i = 0;
  while (i < list.aux && tensors && tensors[i]) ++i;
  return i;
}

// A NULL handle, or a list that holds one: no kernel, shape rule or layer expects that.
bool has_null(const tenon_value& value, int32_t kind) {
  return kind == TENON_PARAM_TENSOR ? !value.v.p : first_null(value) != value.aux;
}

[[gnu::always_inline]] inline bool is_plain(const tenon_value& value,
                                            const tenon_param_def& param) {
  if (value.tag == kPlainTags[param.kind])
    return param.kind > TENON_PARAM_TENSORS || !has_null(value, param.kind);
  if (value.tag == TENON_VALUE_NONE) return param.flags & TENON_PARAM_FLAG_OPTIONAL;
  return (param.kind == TENON_PARAM_SCALAR || param.kind == TENON_PARAM_TENSOR) &&
         is_scalar_tag(value.tag);
}

}  // namespace

bool has_plain_defaults(const tenon_op_def& def) {
  return std::none_of(def.params, def.params + def.nparams, [](const tenon_param_def& param) {
    return param.flags & TENON_PARAM_FLAG_HAS_DEFAULT && !is_plain(param.default_value, param);
  });
}

bool accept_value(const tenon_param_def& param, tenon_value& value, int64_t& integer) {
  if (value.tag == TENON_VALUE_NONE) return param.flags & TENON_PARAM_FLAG_OPTIONAL;
  switch (param.kind) {
    case TENON_PARAM_TENSOR:
      return (value.tag == TENON_VALUE_TENSOR && value.v.p) || is_scalar_tag(value.tag);
    case TENON_PARAM_TENSORS:
      return value.tag == TENON_VALUE_TENSORS && !has_null(value, param.kind);
    case TENON_PARAM_INT:
      return value.tag == TENON_VALUE_INT;
    case TENON_PARAM_FLOAT:
      if (value.tag == TENON_VALUE_INT) value = boxed(static_cast<double>(value.v.i));
      return value.tag == TENON_VALUE_FLOAT;
    case TENON_PARAM_BOOL:
      return value.tag == TENON_VALUE_BOOL;
    case TENON_PARAM_SCALAR:
      return is_scalar_tag(value.tag);
    case TENON_PARAM_STRING:
      return value.tag == TENON_VALUE_STRING;
    case TENON_PARAM_DTYPE:
      return value.tag == TENON_VALUE_DTYPE && is_dtype(value.v.i);
    case TENON_PARAM_DEVICE:
      return value.tag == TENON_VALUE_DEVICE;
    case TENON_PARAM_INTS:
      if (value.tag == TENON_VALUE_INT) {
        integer = value.v.i;
        value = {TENON_VALUE_INTS, 1, {.p = &integer}};
      }
      return value.tag == TENON_VALUE_INTS;
    case TENON_PARAM_FLOATS:
      return value.tag == TENON_VALUE_FLOATS;
    default:
      return false;
  }
}

tenon_status complete_arguments(const Operator& op, tenon_value* args, uint32_t nargs,
                                Arguments& out, tenon_value** complete, tenon_err* err) {
  // Not copied without need: that would wait until what the caller has just written is in memory.
  if (nargs == op.def.nparams && std::equal(args, args + nargs, op.def.params, is_plain)) {
    *complete = args;
    return TENON_OK;
  }
  *complete = out.values;
  if (nargs > op.def.nparams)
    return fail(err, TENON_TYPE_MISMATCH,
                "[%s] expected at most %u arguments, got %u; the signature is %s", short_name(op),
                op.def.nparams, nargs, op.def.schema);
  for (uint32_t i = 0; i < op.def.nparams; ++i) {
    const tenon_param_def& param = op.def.params[i];
    if (i < nargs) {
      out.values[i] = args[i];
    } else if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT) {
      out.values[i] = param.default_value;
    } else if (param.flags & TENON_PARAM_FLAG_OPTIONAL) {
      out.values[i] = kNoValue;
    } else {
      return fail(err, TENON_TYPE_MISMATCH, "[%s] argument `%s` is missing; the signature is %s",
                  short_name(op), param.name, op.def.schema);
    }
    if (is_plain(out.values[i], param) || accept_value(param, out.values[i], out.integers[i]))
        [[likely]]
      continue;
    if (param.kind == TENON_PARAM_TENSORS && out.values[i].tag == TENON_VALUE_TENSORS)
      return fail(err, TENON_TYPE_MISMATCH,
                  "[%s] argument `%s`: expected a Tensor at every index of the list, got none at "
                  "index %u; the signature is %s",
                  short_name(op), param.name, first_null(out.values[i]), op.def.schema);
    return fail(err, TENON_TYPE_MISMATCH,
                "[%s] argument `%s`: expected %s, got %s; the signature is %s", short_name(op),
                param.name, param_kind_name(param.kind), value_kind_name(out.values[i].tag),
                op.def.schema);
  }
  return TENON_OK;
}

const char* value_kind_name(int32_t tag) {
  static constexpr const char* kPlain[] = {"none",   "int",   "bool",   "float",
                                           "opaque", "dtype", "device", "Tensor"};
  static constexpr const char* kPointers[] = {"int[]", "str", "Tensor[]", "float[]", "complex"};
  if (tag >= TENON_VALUE_NONE && tag <= TENON_VALUE_TENSOR) return kPlain[tag];
  bool is_pointer = tag >= TENON_VALUE_INTS && tag <= TENON_VALUE_COMPLEX;
  return is_pointer ? kPointers[tag - TENON_VALUE_INTS] : "an unknown value";
}

const char* param_kind_name(int32_t kind) {
  static constexpr const char* kNames[] = {"?",     "Tensor", "Tensor[]", "int",
                                           "float", "bool",   "number",   "str",
                                           "dtype", "device", "int[]",    "float[]"};
  return kind >= 1 && kind <= TENON_PARAM_FLOATS ? kNames[kind] : kNames[0];
}

}  // namespace tenon::core
