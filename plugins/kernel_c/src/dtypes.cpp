// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

namespace tenon::kernel_c {
namespace {

constexpr DtypeText kDtypes[TENON_DTYPE_COUNT] = {
    {"bool", "tk_u8", "tk_u8", "", "0 != ", "#define T_UNSIGNED 8\n", 1},
    {"u8", "tk_u8", "tk_u8", "", "", "#define T_UNSIGNED 8\n", 1},
    {"i8", "tk_i8", "tk_i8", "", "", "#define T_SIGNED 8\n", 1},
    {"u16", "tk_u16", "tk_u16", "", "", "#define T_UNSIGNED 16\n", 2},
    {"i16", "tk_i16", "tk_i16", "", "", "#define T_SIGNED 16\n", 2},
    {"u32", "tk_u32", "tk_u32", "", "", "#define T_UNSIGNED 32\n", 4},
    {"i32", "tk_i32", "tk_i32", "", "", "#define T_SIGNED 32\n", 4},
    {"u64", "tk_u64", "tk_u64", "", "", "#define T_UNSIGNED 64\n", 8},
    {"i64", "tk_i64", "tk_i64", "", "", "#define T_SIGNED 64\n", 8},
    {"f8e4m3", "tk_u8", nullptr, "", "", "", 1},
    {"f8e5m2", "tk_u8", nullptr, "", "", "", 1},
    {"f16", "tk_u16", "tk_f32", "load_f16", "store_f16", "#define T_FLOAT 32\n", 2},
    {"bf16", "tk_u16", "tk_f32", "load_bf16", "store_bf16", "#define T_FLOAT 32\n", 2},
    {"f32", "tk_f32", "tk_f32", "", "", "#define T_FLOAT 32\n", 4},
    {"f64", "tk_f64", "tk_f64", "", "", "#define T_FLOAT 64\n", 8},
    {"c64", "tk_c64", "tk_c64", "", "", "#define T_COMPLEX\n#define T_FLOAT 32\n", 8},
    {"c128", "tk_c128", "tk_c128", "", "", "#define T_COMPLEX\n#define T_FLOAT 64\n", 16},
    {"f8e4m3fnuz", "tk_u8", nullptr, "", "", "", 1},
    {"f8e5m2fnuz", "tk_u8", nullptr, "", "", "", 1},
    {"f8e8m0", "tk_u8", nullptr, "", "", "", 1},
    {"f4e2m1x2", "tk_u8", nullptr, "", "", "", 1},
    {"i4x2", "tk_u8", nullptr, "", "", "", 1},
    {"u4x2", "tk_u8", nullptr, "", "", "", 1},
};

}  // namespace

const DtypeText& dtype_text(int dtype) { return kDtypes[dtype]; }

std::string converted(int from, int to, const std::string& value) {
  if (from == to) return value;
  if (!is_complex(from) && !is_complex(to)) return value;
  if (!is_complex(to))
    return to == TENON_DTYPE_BOOL ? "(" + value + ".re != 0 || " + value + ".im != 0)"
                                  : "(" + value + ".re)";
  const std::string part = std::string("(") + dtype_text(real_dtype(to)).compute + ")(" + value;
  const std::string make = std::string("tk_make_") + dtype_text(to).suffix + "(";
  return is_complex(from) ? make + part + ".re), " + part + ".im))" : make + part + "), 0)";
}

const char* bits_type(int dtype) {
  switch (kDtypes[dtype].bytes) {
    case 1:
      return "tk_u8";
    case 2:
      return "tk_u16";
    case 4:
      return "tk_u32";
    case 8:
      return "tk_u64";
    default:
      return "tk_bits128";
  }
}

}  // namespace tenon::kernel_c
