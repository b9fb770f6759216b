// SPDX-License-Identifier: Apache-2.0
#include "model/dtype.hpp"

#include <tenon/dtypes.h>

#include <utility>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

constexpr DtypeMask bit(int id) { return DtypeMask{1} << id; }

constexpr DtypeMask kBool = dtypes_of(DtypeClass::kBool),
                    kUnsigned = dtypes_of(DtypeClass::kUnsigned),
                    kSigned = dtypes_of(DtypeClass::kSigned),
                    kFloating = dtypes_of(DtypeClass::kFloating),
                    kComplex = dtypes_of(DtypeClass::kComplex),
                    kStorage = dtypes_of(DtypeClass::kStorage);

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
#define ROW(id, name, suffix, ...) {name, "TENON_DTYPE_" #id, suffix},
  static const std::vector<DtypeInfo> table = {TENON_DTYPES(ROW)};
#undef ROW
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
