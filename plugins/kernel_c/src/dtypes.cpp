// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include <tenon/dtypes.h>

#include <array>

namespace tenon::kernel_c {
namespace {

constexpr const char* unsigned_type(uint32_t bytes) {
  switch (bytes) {
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

// How programs compute with a dtype; those of the table that are not here are moved only.
struct Arithmetic {
  int dtype;
  const char *storage, *compute, *load, *store, *traits;
};
constexpr Arithmetic kArithmetic[] = {
    {TENON_DTYPE_BOOL, "tk_u8", "tk_u8", "", "0 != ", "#define T_UNSIGNED 8\n"},
    {TENON_DTYPE_U8, "tk_u8", "tk_u8", "", "", "#define T_UNSIGNED 8\n"},
    {TENON_DTYPE_I8, "tk_i8", "tk_i8", "", "", "#define T_SIGNED 8\n"},
    {TENON_DTYPE_U16, "tk_u16", "tk_u16", "", "", "#define T_UNSIGNED 16\n"},
    {TENON_DTYPE_I16, "tk_i16", "tk_i16", "", "", "#define T_SIGNED 16\n"},
    {TENON_DTYPE_U32, "tk_u32", "tk_u32", "", "", "#define T_UNSIGNED 32\n"},
    {TENON_DTYPE_I32, "tk_i32", "tk_i32", "", "", "#define T_SIGNED 32\n"},
    {TENON_DTYPE_U64, "tk_u64", "tk_u64", "", "", "#define T_UNSIGNED 64\n"},
    {TENON_DTYPE_I64, "tk_i64", "tk_i64", "", "", "#define T_SIGNED 64\n"},
    {TENON_DTYPE_F16, "tk_u16", "tk_f32", "load_f16", "store_f16", "#define T_FLOAT 32\n"},
    {TENON_DTYPE_BF16, "tk_u16", "tk_f32", "load_bf16", "store_bf16", "#define T_FLOAT 32\n"},
    {TENON_DTYPE_F32, "tk_f32", "tk_f32", "", "", "#define T_FLOAT 32\n"},
    {TENON_DTYPE_F64, "tk_f64", "tk_f64", "", "", "#define T_FLOAT 64\n"},
    {TENON_DTYPE_C64, "tk_c64", "tk_c64", "", "", "#define T_COMPLEX\n#define T_FLOAT 32\n"},
    {TENON_DTYPE_C128, "tk_c128", "tk_c128", "", "", "#define T_COMPLEX\n#define T_FLOAT 64\n"},
};

constexpr auto kDtypes = [] {
  std::array<DtypeText, TENON_DTYPE_COUNT> table{};
  for (const DtypeRow& row : kDtypeTable)
    table[static_cast<size_t>(row.id)] = {row.suffix, unsigned_type(row.size), nullptr, "", "", "",
                                          row.size};
  for (const Arithmetic& each : kArithmetic) {
    DtypeText& text = table[static_cast<size_t>(each.dtype)];
    text = {text.suffix, each.storage, each.compute, each.load,
            each.store,  each.traits,  text.bytes};
  }
  return table;
}();

}  // namespace

const DtypeText& dtype_text(int dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

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

const char* bits_type(int dtype) { return unsigned_type(dtype_text(dtype).bytes); }

}  // namespace tenon::kernel_c
