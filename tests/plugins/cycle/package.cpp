// SPDX-License-Identifier: Apache-2.0
// A package of operators: one, and no kernel.
#include <tenon/plugin.hpp>

#include "parts.hpp"

const tenon_host* host;

namespace {

tenon_plugin& table() {
  static Parts parts;
  make_sound(parts);
  parts.op.name = "package::twice";
  parts.op.schema = "package::twice(Tensor x) -> Tensor";
  parts.op.schema_hash = schema_hash(parts.op.schema);
  parts.plugin.name = "package";
  parts.plugin.device = nullptr;
  parts.plugin.nkernels = 0;
  parts.plugin.start = nullptr;
  return parts.plugin;
}

}  // namespace

TENON_PLUGIN(table())
