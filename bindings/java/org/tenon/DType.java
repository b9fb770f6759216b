// SPDX-License-Identifier: Apache-2.0
package org.tenon;

/** Element types, in the order of TENON_DTYPE_ in tenon/abi.h. */
public enum DType {
  BOOL,
  UINT8,
  INT8,
  UINT16,
  INT16,
  UINT32,
  INT32,
  UINT64,
  INT64,
  FLOAT8_E4M3,
  FLOAT8_E5M2,
  FLOAT16,
  BFLOAT16,
  FLOAT32,
  FLOAT64,
  COMPLEX64,
  COMPLEX128
}
