// SPDX-License-Identifier: Apache-2.0
// Shape and dtype of new tensors.
#include <algorithm>
#include <cmath>

#include <tenon/uniform_range.hpp>

#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

int32_t dtype_or(const tenon_value& dtype, int32_t otherwise) {
  return is_none(dtype) ? otherwise : static_cast<int32_t>(dtype.v.i);
}

// What NumPy users expect of a bare number, with float32 for floats.
int32_t dtype_of_number(const tenon_value& value) {
  switch (value.tag) {
    case TENON_VALUE_BOOL:
      return TENON_DTYPE_BOOL;
    case TENON_VALUE_INT:
      return TENON_DTYPE_I64;
    case TENON_VALUE_COMPLEX:
      return TENON_DTYPE_C64;
    default:
      return TENON_DTYPE_F32;
  }
}

tenon_status expect_size(const char* op, const char* name, int64_t size, tenon_err* err) {
  if (size >= 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of at least 0, got %lld", name,
                      ll(size));
}

tenon_status expect_shape(const char* op, Ints shape, tenon_err* err) {
  for (int64_t extent : shape)
    if (extent < 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected a shape without negative extents, got %s",
                          list_text(shape).c_str());
  if (shape.size() > TENON_MAX_NDIM)
    return shapes::fail(err, TENON_UNSUPPORTED, op, "expected at most %d axes, got %zu",
                        TENON_MAX_NDIM, shape.size());
  return TENON_OK;
}

// How many numbers start, start + step, ... lie before stop; -1 if that is no count.
int64_t count_ints(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // Unsigned, since the distance may not fit a signed number.
  uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                               : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  uint64_t pace =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  uint64_t count = (distance - 1) / pace + 1;
  return count > INT64_MAX ? -1 : static_cast<int64_t>(count);
}

int64_t count_floats(double start, double stop, double step) {
  double count = std::ceil((stop - start) / step);
  if (!(count < 9e18)) return -1;
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

}  // namespace

tenon_status expect_element(const char* op, int32_t dtype, const tenon_value& value,
                            tenon_err* err) {
  if (value.tag == TENON_VALUE_COMPLEX) {
    const auto* parts = static_cast<const double*>(value.v.p);
    if (dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128) return TENON_OK;
    if (parts[1] == 0) return expect_element(op, dtype, boxed(parts[0]), err);
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected a value that %s holds, got the complex number %g%+gi; convert to a "
        "complex dtype, or take its real part",
        host->dtype_name(dtype), parts[0], parts[1]);
  }
  if (!is_integer_dtype(dtype)) return TENON_OK;
  if (value.tag != TENON_VALUE_FLOAT)
    return value.tag == TENON_VALUE_INT ? expect_integer(op, dtype, value.v.i, err) : TENON_OK;
  const double number = std::trunc(value.v.f);
  // 2^63 and more fit uint64 alone, and need no check of digits that a double does not have.
  if (dtype == TENON_DTYPE_U64 && number >= 0x1p63 && number < 0x1p64) return TENON_OK;
  if (number >= -0x1p63 && number < 0x1p63 && holds_integer(dtype, static_cast<int64_t>(number)))
    return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected a value that %s holds, got %g; convert to a dtype that holds it",
                      host->dtype_name(dtype), value.v.f);
}

TENON_INFER(full) {
  TENON_TRY(expect_shape("full", ints_of(args[0]), err));
  const int32_t dtype = dtype_or(args[2], dtype_of_number(args[1]));
  TENON_TRY(expect_element("full", dtype, args[1], err));
  set_new(outs[0], dtype, ints_of(args[0]));
  return TENON_OK;
}

TENON_INFER(arange) {
  const tenon_value zero = boxed(0);
  bool only_stop = is_none(args[1]);
  const tenon_value& start = only_stop ? zero : args[0];
  const tenon_value& stop = only_stop ? args[0] : args[1];
  const tenon_value& step = args[2];
  if (start.tag == TENON_VALUE_COMPLEX || stop.tag == TENON_VALUE_COMPLEX ||
      step.tag == TENON_VALUE_COMPLEX)
    return shapes::fail(err, TENON_TYPE_MISMATCH, "arange",
                        "expected real numbers, got a complex one");
  if (float_of(step) == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "arange", "expected a step other than 0");
  bool floating = start.tag == TENON_VALUE_FLOAT || stop.tag == TENON_VALUE_FLOAT ||
                  step.tag == TENON_VALUE_FLOAT;
  int64_t count = floating ? count_floats(float_of(start), float_of(stop), float_of(step))
                           : count_ints(int_of(start), int_of(stop), int_of(step));
  if (count < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "arange",
                        "expected a countable range, got %g to %g by %g", float_of(start),
                        float_of(stop), float_of(step));
  const int32_t dtype = dtype_or(args[3], floating ? TENON_DTYPE_F32 : TENON_DTYPE_I64);
  if (count > 0 && floating) {
    const double first = float_of(start),
                 last = first + static_cast<double>(count - 1) * float_of(step);
    for (double number : {first, last})
      TENON_TRY(expect_element("arange", dtype, boxed(number), err));
  } else if (count > 0) {
    TENON_TRY(expect_integer("arange", dtype, int_of(start), err));
    TENON_TRY(expect_integer("arange", dtype, int_of(start) + (count - 1) * int_of(step), err));
  }
  set_new(outs[0], dtype, {&count, 1});
  return TENON_OK;
}

TENON_INFER(linspace) {
  int64_t count = int_of(args[2]);
  TENON_TRY(expect_size("linspace", "num", count, err));
  const int32_t dtype = dtype_or(args[4], TENON_DTYPE_F32);
  for (int i = 0; i < 2; ++i) TENON_TRY(expect_element("linspace", dtype, args[i], err));
  set_new(outs[0], dtype, {&count, 1});
  return TENON_OK;
}

TENON_INFER(eye) {
  int64_t shape[] = {int_of(args[0]), is_none(args[1]) ? int_of(args[0]) : int_of(args[1])};
  TENON_TRY(expect_size("eye", "rows", shape[0], err));
  TENON_TRY(expect_size("eye", "columns", shape[1], err));
  set_new(outs[0], dtype_or(args[3], TENON_DTYPE_F32), shape);
  return TENON_OK;
}

TENON_INFER(uniform) {
  const double low = float_of(args[1]), high = float_of(args[2]);
  TENON_TRY(expect_shape("uniform", ints_of(args[0]), err));
  if (!(low <= high && std::isfinite(low) && std::isfinite(high)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "uniform",
                        "expected finite bounds with low <= high, got %g and %g", low, high);
  const int32_t dtype = dtype_or(args[3], TENON_DTYPE_F32);
  const double largest = largest_finite(dtype);
  if (largest > 0 && std::max(std::abs(low), std::abs(high)) > largest)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "uniform",
                        "expected bounds of at most %g in magnitude, the largest number of %s, got "
                        "%g and %g; pass a wider dtype",
                        largest, host->dtype_name(dtype), low, high);
  set_new(outs[0], dtype, ints_of(args[0]));
  return TENON_OK;
}

TENON_INFER(normal) {
  TENON_TRY(expect_shape("normal", ints_of(args[0]), err));
  if (!(float_of(args[2]) >= 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "normal", "expected std of at least 0, got %g",
                        float_of(args[2]));
  set_new(outs[0], dtype_or(args[3], TENON_DTYPE_F32), ints_of(args[0]));
  return TENON_OK;
}

TENON_INFER(randint) {
  if (int_of(args[0]) >= int_of(args[1]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "randint",
                        "expected low < high, got %lld and %lld", ll(int_of(args[0])),
                        ll(int_of(args[1])));
  TENON_TRY(expect_shape("randint", ints_of(args[2]), err));
  const int32_t dtype = dtype_or(args[3], TENON_DTYPE_I64);
  TENON_TRY(expect_integer("randint", dtype, int_of(args[0]), err));
  TENON_TRY(expect_integer("randint", dtype, int_of(args[1]) - 1, err));
  set_new(outs[0], dtype, ints_of(args[2]));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
