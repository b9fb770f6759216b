// SPDX-License-Identifier: Apache-2.0
// Reads Python numbers that are passed where an operator takes a tensor and promotes nothing, such
// as the source of scatter.
#pragma once

#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Converts the number in a 0-d tensor of host memory to T. The tensor has dtype bool, int64,
// float32 or complex64; beside float64 and complex128 tensors it has float64 or complex128.
template <class T>
T host_number(const tenon_tensor* scalar) {
  double parts[2] = {};
  switch (scalar->dtype) {
    case TENON_DTYPE_BOOL:
      return scalar_as<T>({TENON_VALUE_BOOL, 0, {.i = *data_of<uint8_t>(scalar)}});
    case TENON_DTYPE_F32:
      return scalar_as<T>({TENON_VALUE_FLOAT, 0, {.f = *data_of<float>(scalar)}});
    case TENON_DTYPE_F64:
      return scalar_as<T>({TENON_VALUE_FLOAT, 0, {.f = *data_of<double>(scalar)}});
    case TENON_DTYPE_C64:
      parts[0] = data_of<float>(scalar)[0];
      parts[1] = data_of<float>(scalar)[1];
      return scalar_as<T>({TENON_VALUE_COMPLEX, 0, {.p = parts}});
    case TENON_DTYPE_C128:
      parts[0] = data_of<double>(scalar)[0];
      parts[1] = data_of<double>(scalar)[1];
      return scalar_as<T>({TENON_VALUE_COMPLEX, 0, {.p = parts}});
    default:
      return scalar_as<T>({TENON_VALUE_INT, 0, {.i = *data_of<int64_t>(scalar)}});
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
