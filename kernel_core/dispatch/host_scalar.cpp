// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/host_scalar.hpp"

#include <tenon/reduced_float.hpp>

#include <complex>
#include <cstring>

namespace tenon::core {
namespace {

template <class T>
void store(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

// Out-of-range floats to integers are undefined in C++; saturate, NaN to 0.
int64_t to_integer(double value) {
  if (!(value == value)) return 0;
  if (value >= 9223372036854775807.0) return INT64_MAX;
  if (value <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

void write_scalar(const tenon_value& value, int32_t dtype, void* out) {
  double real, imaginary = 0;
  int64_t integer;
  if (value.tag == TENON_VALUE_FLOAT || value.tag == TENON_VALUE_COMPLEX) {
    auto* parts = static_cast<const double*>(value.v.p);
    real = value.tag == TENON_VALUE_FLOAT ? value.v.f : parts[0];
    imaginary = value.tag == TENON_VALUE_FLOAT ? 0 : parts[1];
    integer = to_integer(real);
  } else {
    integer = value.v.i;
    real = static_cast<double>(integer);
  }
  if (is_integer_dtype(dtype))  // the low bytes come first
    return void(std::memcpy(out, &integer, kDtypes[dtype].size));
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return store<uint8_t>(out, real != 0 || imaginary != 0);
    case TENON_DTYPE_F8E4M3:
      return store(out, Float8E4M3(static_cast<float>(real)));
    case TENON_DTYPE_F8E5M2:
      return store(out, Float8E5M2(static_cast<float>(real)));
    case TENON_DTYPE_F16:
      return store(out, Float16(static_cast<float>(real)));
    case TENON_DTYPE_BF16:
      return store(out, BFloat16(static_cast<float>(real)));
    case TENON_DTYPE_F32:
      return store(out, static_cast<float>(real));
    case TENON_DTYPE_F64:
      return store(out, real);
    case TENON_DTYPE_C64:
      return store(out, std::complex(static_cast<float>(real), static_cast<float>(imaginary)));
    case TENON_DTYPE_C128:
      return store(out, std::complex(real, imaginary));
    default:
      return;
  }
}

void HostScalar::set(const tenon_value& value, int32_t dtype, const Device& device) {
  constexpr uint16_t kFlags =
      TENON_TENSOR_CONTIGUOUS | TENON_TENSOR_HOST_SCALAR | TENON_TENSOR_READONLY;
  view = {.data = bytes,
          .dl_device_type = device.info.dl_device_type,
          .dl_device_id = static_cast<int32_t>(TENON_DEVICE_INDEX(device.id)),
          .dl_dtype = kDtypes[dtype].dl,
          .flags = kFlags,
          .dtype = static_cast<uint8_t>(dtype),
          .device = device.id,
          .numel = 1};
  if (dtype == TENON_DTYPE_F32 && value.tag == TENON_VALUE_FLOAT) [[likely]]
    store(bytes, static_cast<float>(value.v.f));
  else
    write_scalar(value, dtype, bytes);
}

}  // namespace tenon::core
