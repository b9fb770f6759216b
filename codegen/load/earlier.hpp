// SPDX-License-Identifier: Apache-2.0
// `earlier`: signatures that an operator had in earlier versions, whose calls programs on disk may hold.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Fills op.earlier; the signature of now is known. Throws Error where a call by the earlier signature cannot be translated to
// the one of now.
void read_earlier(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
