// SPDX-License-Identifier: Apache-2.0
// Element types as the operator files name them: ids, names, classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/schema/words.hpp>
#include <vector>

namespace tenon::codegen {

using DtypeMask = uint64_t;  // bit 1 << TENON_DTYPE_*

struct DtypeInfo {
  const char* name;    // "float32": Python and YAML
  const char* macro;   // "TENON_DTYPE_F32"
  const char* suffix;  // "f32"
};
const std::vector<DtypeInfo>& dtypes();  // indexed by id

using schema::find_dtype;
// A class ("floating") or a dtype name ("int64"); nothing if it is neither.
std::optional<DtypeMask> find_dtype_class(std::string_view name);
std::vector<std::string> dtype_class_names();

DtypeMask bool_dtypes();
DtypeMask integer_dtypes();
DtypeMask floating_dtypes();
DtypeMask complex_dtypes();
DtypeMask all_dtypes();  // that have arithmetic
DtypeMask any_dtypes();  // those that are only stored, too

// "bool|integer" or "floating" or "int32|int64": for people.
std::string describe(DtypeMask mask);

}  // namespace tenon::codegen
