// SPDX-License-Identifier: Apache-2.0
#include "capi/objects.hpp"

namespace tenon::paddle {
namespace {

struct Row {
  PD_DataType paddle;
  int32_t tenon;
};
constexpr Row kRows[] = {
    {BOOL, TENON_DTYPE_BOOL},     {UINT8, TENON_DTYPE_U8},      {UINT16, TENON_DTYPE_U16},
    {UINT32, TENON_DTYPE_U32},    {UINT64, TENON_DTYPE_U64},    {INT8, TENON_DTYPE_I8},
    {INT16, TENON_DTYPE_I16},     {INT32, TENON_DTYPE_I32},     {INT64, TENON_DTYPE_I64},
    {FLOAT16, TENON_DTYPE_F16},   {FLOAT32, TENON_DTYPE_F32},   {FLOAT64, TENON_DTYPE_F64},
    {BFLOAT16, TENON_DTYPE_BF16}, {COMPLEX64, TENON_DTYPE_C64}, {COMPLEX128, TENON_DTYPE_C128},
};

}  // namespace

int32_t to_tenon_dtype(PD_DataType dtype) {
  for (const Row& row : kRows)
    if (row.paddle == dtype) return row.tenon;
  return -1;
}

PD_DataType to_paddle_dtype(int32_t dtype) {
  for (const Row& row : kRows)
    if (row.tenon == dtype) return row.paddle;
  return UNDEFINED;
}

size_t dtype_bytes(PD_DataType dtype) {
  const int32_t id = to_tenon_dtype(dtype);
  if (id < 0)
    throw Error(TENON_TYPE_MISMATCH,
                "expected a dtype, got C_DataType " + std::to_string(static_cast<int>(dtype)));
  return host->dtype_size(id);
}

const char* dtype_text(PD_DataType dtype) {
  const int32_t id = to_tenon_dtype(dtype);
  return id < 0 ? "undefined" : host->dtype_name(id);
}

}  // namespace tenon::paddle
