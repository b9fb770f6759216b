// SPDX-License-Identifier: Apache-2.0
#include "model/dtype.hpp"

#include <tenon/abi.h>

#include <utility>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

constexpr DtypeMask bit(int id) { return DtypeMask{1} << id; }

constexpr DtypeMask kBool = bit(TENON_DTYPE_BOOL);
constexpr DtypeMask kUnsigned =
    bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_U16) | bit(TENON_DTYPE_U32) | bit(TENON_DTYPE_U64);
constexpr DtypeMask kSigned =
    bit(TENON_DTYPE_I8) | bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_I64);
constexpr DtypeMask kFloating = bit(TENON_DTYPE_F8E4M3) | bit(TENON_DTYPE_F8E5M2) |
                                bit(TENON_DTYPE_F16) | bit(TENON_DTYPE_BF16) |
                                bit(TENON_DTYPE_F32) | bit(TENON_DTYPE_F64);
constexpr DtypeMask kComplex = bit(TENON_DTYPE_C64) | bit(TENON_DTYPE_C128);
constexpr DtypeMask kStorage = bit(TENON_DTYPE_COUNT) - bit(TENON_DTYPE_F8E4M3FNUZ);

// Widest first, so that describe() finds the shortest text.
const std::vector<std::pair<const char*, DtypeMask>>& classes() {
  static const std::vector<std::pair<const char*, DtypeMask>> table = {
      {"any", kBool | kUnsigned | kSigned | kFloating | kComplex | kStorage},
      {"all", kBool | kUnsigned | kSigned | kFloating | kComplex},
      {"numeric", kUnsigned | kSigned | kFloating | kComplex},
      {"real", kUnsigned | kSigned | kFloating},
      {"integer", kUnsigned | kSigned},
      {"floating", kFloating},
      {"complex", kComplex},
      {"unsigned", kUnsigned},
      {"signed", kSigned},
      {"storage", kStorage},
      {"bool", kBool}};
  return table;
}

}  // namespace

const std::vector<DtypeInfo>& dtypes() {
#define ROW(id, suffix) \
  { schema::kDtypeNames[id], #id, suffix }
  static const std::vector<DtypeInfo> table = {ROW(TENON_DTYPE_BOOL, "bool"),
                                               ROW(TENON_DTYPE_U8, "u8"),
                                               ROW(TENON_DTYPE_I8, "i8"),
                                               ROW(TENON_DTYPE_U16, "u16"),
                                               ROW(TENON_DTYPE_I16, "i16"),
                                               ROW(TENON_DTYPE_U32, "u32"),
                                               ROW(TENON_DTYPE_I32, "i32"),
                                               ROW(TENON_DTYPE_U64, "u64"),
                                               ROW(TENON_DTYPE_I64, "i64"),
                                               ROW(TENON_DTYPE_F8E4M3, "f8e4m3"),
                                               ROW(TENON_DTYPE_F8E5M2, "f8e5m2"),
                                               ROW(TENON_DTYPE_F16, "f16"),
                                               ROW(TENON_DTYPE_BF16, "bf16"),
                                               ROW(TENON_DTYPE_F32, "f32"),
                                               ROW(TENON_DTYPE_F64, "f64"),
                                               ROW(TENON_DTYPE_C64, "c64"),
                                               ROW(TENON_DTYPE_C128, "c128"),
                                               ROW(TENON_DTYPE_F8E4M3FNUZ, "f8e4m3fnuz"),
                                               ROW(TENON_DTYPE_F8E5M2FNUZ, "f8e5m2fnuz"),
                                               ROW(TENON_DTYPE_F8E8M0, "f8e8m0"),
                                               ROW(TENON_DTYPE_F4E2M1X2, "f4e2m1x2"),
                                               ROW(TENON_DTYPE_I4X2, "i4x2"),
                                               ROW(TENON_DTYPE_U4X2, "u4x2")};
#undef ROW
  static_assert(TENON_DTYPE_COUNT == 23, "a new dtype needs a row here");
  return table;
}

std::optional<DtypeMask> find_dtype_class(std::string_view name) {
  for (const auto& [class_name, mask] : classes())
    if (name == class_name) return mask;
  if (auto id = find_dtype(name)) return bit(*id);
  return std::nullopt;
}

std::vector<std::string> dtype_class_names() {
  std::vector<std::string> names;
  for (const auto& entry : classes()) names.push_back(entry.first);
  for (const DtypeInfo& info : dtypes()) names.push_back(info.name);
  return names;
}

DtypeMask bool_dtypes() { return kBool; }
DtypeMask integer_dtypes() { return kUnsigned | kSigned; }
DtypeMask floating_dtypes() { return kFloating; }
DtypeMask complex_dtypes() { return kComplex; }
DtypeMask all_dtypes() { return any_dtypes() & ~kStorage; }
DtypeMask any_dtypes() { return classes().front().second; }

std::string describe(DtypeMask mask) {
  std::vector<std::string> parts;
  for (const auto& [name, class_mask] : classes()) {
    if ((mask & class_mask) == class_mask) {
      parts.push_back(name);
      mask &= ~class_mask;
    }
  }
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (mask & bit(static_cast<int>(id))) parts.push_back(dtypes()[id].name);
  return join(parts, "|");
}

}  // namespace tenon::codegen
