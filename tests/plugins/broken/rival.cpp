// SPDX-License-Identifier: Apache-2.0
// Defines the operator of plugin "faulty" once more: with a signature of its own, or, if
// TENON_TEST_FAULT is "same_operator", with the same one.
#include <cstdlib>
#include <cstring>

#include "parts.hpp"

const tenon_host* host;

extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t, uint32_t,
                                                               const tenon_host* table,
                                                               tenon_err*) {
  static Parts parts;
  host = table;
  make_sound(parts);
  const char* fault = std::getenv("TENON_TEST_FAULT");
  if (!fault || std::strcmp(fault, "same_operator") != 0) {
    parts.op.schema = "faulty::twice(Tensor y) -> Tensor";
    parts.op.schema_hash = 0xcbf29ce484222325u;
    for (const char* c = parts.op.schema; *c; ++c)
      parts.op.schema_hash =
          (parts.op.schema_hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  }
  parts.op.origin = "rival.cpp:1";
  parts.plugin.name = "rival";
  parts.plugin.device = nullptr;
  parts.plugin.nkernels = 0;
  parts.plugin.start = nullptr;
  return &parts.plugin;
}
