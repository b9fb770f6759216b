/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of element types: what host, codegen, plugins and bindings know of each dtype, once.
 *
 * abi.h numbers the dtypes; this header says the rest. A new dtype is a number there and a row here (two for a floating
 * one), and, if its numbers are of less than 32 bits, a C++ type with a row in storage_float.hpp. Everything that lists
 * dtypes expands these macros. C11 and C++20.
 */
#ifndef TENON_DTYPES_H
#define TENON_DTYPES_H

#include <tenon/abi.h>

/* Codes of DLPack's types (DLDataTypeCode). */
enum {
  TENON_DL_INT = 0,
  TENON_DL_UINT = 1,
  TENON_DL_FLOAT = 2,
  TENON_DL_BFLOAT = 4,
  TENON_DL_COMPLEX = 5,
  TENON_DL_BOOL = 6,
  TENON_DL_FLOAT8_E4M3FN = 10,
  TENON_DL_FLOAT8_E4M3FNUZ = 11,
  TENON_DL_FLOAT8_E5M2 = 12,
  TENON_DL_FLOAT8_E5M2FNUZ = 13,
  TENON_DL_FLOAT8_E8M0FNU = 14,
  TENON_DL_FLOAT4_E2M1FN = 17
};

/* X(id, name, suffix, class, size, code, bits, lanes, safetensors, alias), in the order of the ids:
 *   id           TENON_DTYPE_<id>
 *   name         in Python, YAML and messages
 *   suffix       in the names of generated functions and programs
 *   class        Bool, Unsigned, Signed, Floating, Complex, or Storage: stored and moved, and computed with in no operator
 *   size         bytes of an element
 *   code         TENON_DL_<code>: DLPack's type
 *   bits, lanes  of a number, and numbers of an element: DLPack's, too
 *   safetensors  what files of that format call it; "" if they do not have it
 *   alias        the name of NumPy, ml_dtypes or PyTorch where it is another one; "" otherwise
 */
#define TENON_DTYPES(X)                                                                            \
  X(BOOL, "bool", "bool", Bool, 1, BOOL, 8, 1, "BOOL", "bool_")                                    \
  X(U8, "uint8", "u8", Unsigned, 1, UINT, 8, 1, "U8", "")                                          \
  X(I8, "int8", "i8", Signed, 1, INT, 8, 1, "I8", "")                                              \
  X(U16, "uint16", "u16", Unsigned, 2, UINT, 16, 1, "U16", "")                                     \
  X(I16, "int16", "i16", Signed, 2, INT, 16, 1, "I16", "")                                         \
  X(U32, "uint32", "u32", Unsigned, 4, UINT, 32, 1, "U32", "")                                     \
  X(I32, "int32", "i32", Signed, 4, INT, 32, 1, "I32", "")                                         \
  X(U64, "uint64", "u64", Unsigned, 8, UINT, 64, 1, "U64", "")                                     \
  X(I64, "int64", "i64", Signed, 8, INT, 64, 1, "I64", "")                                         \
  X(F8E4M3, "float8_e4m3", "f8e4m3", Floating, 1, FLOAT8_E4M3FN, 8, 1, "F8_E4M3", "float8_e4m3fn") \
  X(F8E5M2, "float8_e5m2", "f8e5m2", Floating, 1, FLOAT8_E5M2, 8, 1, "F8_E5M2", "")                \
  X(F16, "float16", "f16", Floating, 2, FLOAT, 16, 1, "F16", "")                                   \
  X(BF16, "bfloat16", "bf16", Floating, 2, BFLOAT, 16, 1, "BF16", "")                              \
  X(F32, "float32", "f32", Floating, 4, FLOAT, 32, 1, "F32", "")                                   \
  X(F64, "float64", "f64", Floating, 8, FLOAT, 64, 1, "F64", "")                                   \
  X(C64, "complex64", "c64", Complex, 8, COMPLEX, 64, 1, "C64", "")                                \
  X(C128, "complex128", "c128", Complex, 16, COMPLEX, 128, 1, "", "")                              \
  X(F8E4M3FNUZ, "float8_e4m3fnuz", "f8e4m3fnuz", Storage, 1, FLOAT8_E4M3FNUZ, 8, 1, "F8_E4M3FNUZ", \
    "")                                                                                            \
  X(F8E5M2FNUZ, "float8_e5m2fnuz", "f8e5m2fnuz", Storage, 1, FLOAT8_E5M2FNUZ, 8, 1, "F8_E5M2FNUZ", \
    "")                                                                                            \
  X(F8E8M0, "float8_e8m0", "f8e8m0", Storage, 1, FLOAT8_E8M0FNU, 8, 1, "F8_E8M0",                  \
    "float8_e8m0fnu")                                                                              \
  X(F4E2M1X2, "float4_e2m1_x2", "f4e2m1x2", Storage, 1, FLOAT4_E2M1FN, 4, 2, "F4",                 \
    "float4_e2m1fn_x2")                                                                            \
  X(I4X2, "int4_x2", "i4x2", Storage, 1, INT, 4, 2, "", "")                                        \
  X(U4X2, "uint4_x2", "u4x2", Storage, 1, UINT, 4, 2, "", "")

/* X(id, eps, max, min, smallest_normal), of the dtypes whose numbers are floating: the distance from 1 to the next
 * number above it, the largest finite number, the least one, and the smallest with all bits of the mantissa. */
#define TENON_FLOAT_DTYPES(X)                                                 \
  X(F8E4M3, 0x1p-3, 448.0, -448.0, 0x1p-6)                                    \
  X(F8E5M2, 0x1p-2, 57344.0, -57344.0, 0x1p-14)                               \
  X(F16, 0x1p-10, 65504.0, -65504.0, 0x1p-14)                                 \
  X(BF16, 0x1p-7, 0x1.fep127, -0x1.fep127, 0x1p-126)                          \
  X(F32, 0x1p-23, 0x1.fffffep127, -0x1.fffffep127, 0x1p-126)                  \
  X(F64, 0x1p-52, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 0x1p-1022) \
  X(F8E4M3FNUZ, 0x1p-3, 240.0, -240.0, 0x1p-7)                                \
  X(F8E5M2FNUZ, 0x1p-2, 57344.0, -57344.0, 0x1p-15)                           \
  X(F8E8M0, 1.0, 0x1p127, 0x1p-127, 0x1p-127)                                 \
  X(F4E2M1X2, 0.5, 6.0, -6.0, 1.0)

/* The same in C++: kDtypeTable[TENON_DTYPE_F32].size. */
#ifdef __cplusplus
namespace tenon {

/* kStorage: no operator computes with it. */
enum class DtypeClass : uint8_t { kBool, kUnsigned, kSigned, kFloating, kComplex, kStorage };

struct DtypeRow {
  int32_t id;
  const char *name, *suffix;
  DtypeClass type_class;
  uint8_t size;
  tenon_dl_dtype dl;
  const char *safetensors, *alias;
};

#define TENON_DTYPE_ROW(id, name, suffix, type_class, size, code, bits, lanes, safetensors, alias) \
  {                                                                                                \
      TENON_DTYPE_##id,                                                                            \
      name,                                                                                        \
      suffix,                                                                                      \
      DtypeClass::k##type_class,                                                                   \
      size,                                                                                        \
      {TENON_DL_##code, bits, lanes},                                                              \
      safetensors,                                                                                 \
      alias},
inline constexpr DtypeRow kDtypeTable[] = {TENON_DTYPES(TENON_DTYPE_ROW)};
#undef TENON_DTYPE_ROW

static_assert(
    [] {
      int32_t id = 0;
      for (const DtypeRow& row : kDtypeTable)
        if (row.id != id++) return false;
      return id == TENON_DTYPE_COUNT;
    }(),
    "TENON_DTYPES: expected a row for each dtype of abi.h, in the order of their numbers");

/* The bits 1 << id of the dtypes for which `is_wanted(row)` is true. */
template <class Predicate>
constexpr uint64_t dtype_mask(Predicate is_wanted) {
  uint64_t mask = 0;
  for (const DtypeRow& row : kDtypeTable)
    if (is_wanted(row)) mask |= uint64_t{1} << row.id;
  return mask;
}
constexpr uint64_t dtypes_of(DtypeClass type_class) {
  return dtype_mask([=](const DtypeRow& row) { return row.type_class == type_class; });
}

}  // namespace tenon
#endif

#endif /* TENON_DTYPES_H */
