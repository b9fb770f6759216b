// SPDX-License-Identifier: Apache-2.0
#include "emit/emit.hpp"

namespace tenon::codegen {
std::vector<OutputFile> emit_docs(const Package&, const EmitOptions&) { return {}; }
}  // namespace tenon::codegen
