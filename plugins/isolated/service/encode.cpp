// SPDX-License-Identifier: Apache-2.0
#include "service/encode.hpp"

#include <cmath>
#include <tenon/tensor.hpp>

namespace tenon::isolated {
namespace {

template <class T>
T load(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// A float of 8 or 16 bits. `has_infinity`: false for E4M3, whose highest exponent holds numbers
// too.
double small_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  const int highest = (1 << exponent_bits) - 1, bias = highest >> 1;
  if (exponent == highest) {
    if (has_infinity) return mantissa ? NAN : sign * INFINITY;
    if (mantissa == (1u << mantissa_bits) - 1) return NAN;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa | 1u << mantissa_bits, exponent - bias - mantissa_bits);
}

double to_double(uint8_t dtype, const void* data) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return small_float(load<uint8_t>(data), 4, 3, false);
    case TENON_DTYPE_F8E5M2:
      return small_float(load<uint8_t>(data), 5, 2, true);
    case TENON_DTYPE_F16:
      return small_float(load<uint16_t>(data), 5, 10, true);
    case TENON_DTYPE_BF16:
      return small_float(load<uint16_t>(data), 8, 7, true);
    case TENON_DTYPE_F32:
      return load<float>(data);
    default:
      return load<double>(data);
  }
}

int64_t to_integer(uint8_t dtype, const void* data) {
  switch (dtype) {
    case TENON_DTYPE_BOOL:
    case TENON_DTYPE_U8:
      return load<uint8_t>(data);
    case TENON_DTYPE_I8:
      return load<int8_t>(data);
    case TENON_DTYPE_U16:
      return load<uint16_t>(data);
    case TENON_DTYPE_I16:
      return load<int16_t>(data);
    case TENON_DTYPE_U32:
      return load<uint32_t>(data);
    case TENON_DTYPE_I32:
      return load<int32_t>(data);
    default:
      return load<int64_t>(data);
  }
}

void put_scalar(Writer& message, const tenon_tensor& scalar) {
  const void* data = scalar.data;
  auto put = [&](int32_t tag, auto value) {
    message.put(tag);
    message.put(value);
  };
  if (scalar.dtype == TENON_DTYPE_BOOL) {
    put(TENON_VALUE_BOOL, to_integer(scalar.dtype, data));
  } else if (scalar.dtype <= TENON_DTYPE_I64) {
    put(TENON_VALUE_INT, to_integer(scalar.dtype, data));
  } else if (scalar.dtype <= TENON_DTYPE_F64) {
    put(TENON_VALUE_FLOAT, to_double(scalar.dtype, data));
  } else {
    const bool is_double = scalar.dtype == TENON_DTYPE_C128;
    const double real = is_double ? load<double>(data) : load<float>(data);
    const char* second = static_cast<const char*>(data) + (is_double ? 8 : 4);
    put(TENON_VALUE_COMPLEX, real);
    message.put(is_double ? load<double>(second) : load<float>(second));
  }
}

}  // namespace

void put_tensor(Writer& message, const tenon_tensor& tensor) {
  const TensorHead head = {.data = reinterpret_cast<uint64_t>(tensor.data),
                           .byte_offset = tensor.byte_offset,
                           .flags = tensor.flags,
                           .dtype = tensor.dtype,
                           .ndim = static_cast<uint8_t>(tensor.ndim),
                           .reserved = 0};
  const auto ndim = static_cast<uint64_t>(tensor.ndim);
  message.put(head);
  message.put_array(tensor.shape, ndim);
  if (!(tensor.flags & TENON_TENSOR_CONTIGUOUS)) message.put_array(tensor.strides, ndim);
  if (tensor.flags & TENON_TENSOR_HOST_SCALAR) {
    ScalarBytes scalar = {};
    std::memcpy(scalar.bytes, tensor.data, host->dtype_size(tensor.dtype));
    message.put(scalar);
  }
}

bool put_value(Writer& message, const tenon_value& value, uint32_t own_kind, Scalars scalars) {
  if (value.tag == TENON_VALUE_TENSOR) {
    auto* tensor = static_cast<const tenon_tensor*>(value.v.p);
    if (tensor->flags & TENON_TENSOR_HOST_SCALAR && scalars == Scalars::kNumbers)
      return put_scalar(message, *tensor), true;
    message.put(value.tag);
    put_tensor(message, *tensor);
    return true;
  }
  message.put(value.tag);
  switch (value.tag) {
    case TENON_VALUE_NONE:
      return true;
    case TENON_VALUE_INT:
    case TENON_VALUE_BOOL:
    case TENON_VALUE_DTYPE:
      return message.put(value.v.i), true;
    case TENON_VALUE_FLOAT:
      return message.put(value.v.f), true;
    case TENON_VALUE_COMPLEX:
      return message.put_array(static_cast<const double*>(value.v.p), 2), true;
    case TENON_VALUE_DEVICE: {
      const auto id = static_cast<tenon_device_id>(value.v.i);
      if (id != TENON_DEVICE_NONE && TENON_DEVICE_KIND(id) != own_kind) return false;
      const int64_t index = id == TENON_DEVICE_NONE ? -1 : TENON_DEVICE_INDEX(id);
      return message.put(index), true;
    }
    default:
      break;
  }
  message.put(value.aux);
  switch (value.tag) {
    case TENON_VALUE_INTS:
      return message.put_array(static_cast<const int64_t*>(value.v.p), value.aux), true;
    case TENON_VALUE_FLOATS:
      return message.put_array(static_cast<const double*>(value.v.p), value.aux), true;
    case TENON_VALUE_STRING:
      return message.put_array(static_cast<const char*>(value.v.p), value.aux), true;
    case TENON_VALUE_TENSORS: {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      for (uint32_t i = 0; i < value.aux; ++i) {
        message.put(static_cast<uint8_t>(list[i] != nullptr));
        if (list[i]) put_tensor(message, *list[i]);
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace tenon::isolated
