// SPDX-License-Identifier: Apache-2.0
#include "element.hpp"

#include "dtypes.hpp"

#include <tenon/unbox.h>
#include <tenon/value.hpp>

#include <cstring>

namespace tenon::kernel_c {
namespace {

uint16_t half_bits(float x,
                   int mantissa_bits) {  // of the IEEE format with that many, to nearest even
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (mantissa_bits == 7) {  // bfloat16: the upper half
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below the normal numbers: the adder rounds
    float scaled;
    std::memcpy(&scaled, &magnitude, sizeof scaled);
    scaled += 0.5f;
    uint32_t low;
    std::memcpy(&low, &scaled, sizeof low);
    return static_cast<uint16_t>(sign | (low - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign |
                               ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

template <class T>
Element element_of(T value) {
  Element element;
  std::memcpy(element.bytes, &value, sizeof value);
  return element;
}

double as_double(const tenon_value& value) {
  if (value.tag == TENON_VALUE_COMPLEX) return *static_cast<const double*>(value.v.p);
  return tenon_arg_float(&value);
}

}  // namespace

Element element_of(const tenon_value& value, int dtype) {
  const double number = as_double(value);
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return element_of<uint8_t>(number != 0);
    case TENON_DTYPE_F16:
      return element_of(half_bits(static_cast<float>(number), 10));
    case TENON_DTYPE_BF16:
      return element_of(half_bits(static_cast<float>(number), 7));
    case TENON_DTYPE_F32:
      return element_of(static_cast<float>(number));
    case TENON_DTYPE_F64:
      return element_of(number);
    case TENON_DTYPE_C64:
    case TENON_DTYPE_C128: {
      const bool complex = value.tag == TENON_VALUE_COMPLEX;
      const double imaginary = complex ? static_cast<const double*>(value.v.p)[1] : 0;
      struct Pair {
        double parts[2];
      };
      struct Floats {
        float parts[2];
      };
      if (dtype == TENON_DTYPE_C128) return element_of(Pair{{number, imaginary}});
      return element_of(Floats{{static_cast<float>(number), static_cast<float>(imaginary)}});
    }
    default:  // the low bytes come first on every platform we serve
      return element_of(value.tag == TENON_VALUE_INT || value.tag == TENON_VALUE_BOOL
                            ? value.v.i
                            : static_cast<int64_t>(number));
  }
}

Element element_of(const tenon_tensor* host_scalar, int dtype) {
  const void* data = host_scalar->data;
  if (host_scalar->dtype == dtype) {
    Element element;
    std::memcpy(element.bytes, data, dtype_text(dtype).bytes);
    return element;
  }
  // A number given for a tensor arrives as bool, int64, float32 or complex64, beside float64 and
  // complex128 tensors as float64 or complex128.
  tenon_value value = boxed(0);
  double parts[2];
  switch (host_scalar->dtype) {
    case TENON_DTYPE_F32:
      value = boxed(*static_cast<const float*>(data));
      break;
    case TENON_DTYPE_F64:
      value = boxed(*static_cast<const double*>(data));
      break;
    case TENON_DTYPE_C64:
      parts[0] = static_cast<const float*>(data)[0];
      parts[1] = static_cast<const float*>(data)[1];
      value = {TENON_VALUE_COMPLEX, 0, {.p = parts}};
      break;
    case TENON_DTYPE_C128:
      parts[0] = static_cast<const double*>(data)[0];
      parts[1] = static_cast<const double*>(data)[1];
      value = {TENON_VALUE_COMPLEX, 0, {.p = parts}};
      break;
    case TENON_DTYPE_BOOL:
      value = boxed(*static_cast<const uint8_t*>(data) != 0);
      break;
    default:
      value.v.i = *static_cast<const int64_t*>(data);
  }
  return element_of(value, dtype);
}

}  // namespace tenon::kernel_c
