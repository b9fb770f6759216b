// SPDX-License-Identifier: Apache-2.0
// A plugin with one operator in the host's namespace. A test puts in its name and schema.
#include <tenon/plugin.hpp>

TENON_PLUGIN_NOTE("@name@", "1.0.0", "{\"kind\":\"operators\",\"namespaces\":[\"tenon\"]}");

namespace {

constexpr char kSchema[] = "@schema@";

constexpr uint64_t hash() {
  uint64_t value = 0xcbf29ce484222325u;
  for (const char* c = kSchema; *c; ++c)
    value = (value ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return value;
}

struct Name {
  char text[sizeof kSchema] = {};
  constexpr Name() {
    for (int i = 0; kSchema[i] != '('; ++i) text[i] = kSchema[i];
  }
};
constexpr Name kName;

constexpr tenon_param_def kParam = {.name = "x",
                                    .kind = TENON_PARAM_TENSOR,
                                    .flags = TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST};
constexpr const char* kOuts[] = {"out"};

constexpr tenon_op_def kOp = {.struct_size = sizeof(tenon_op_def),
                              .flags = TENON_OP_ELEMENTWISE,
                              .name = kName.text,
                              .schema = kSchema,
                              .schema_hash = hash(),
                              .origin = "reserved.cpp:1",
                              .params = &kParam,
                              .nparams = 1,
                              .param_size = sizeof(tenon_param_def),
                              .nouts = 1,
                              .compute = TENON_COMPUTE_PROMOTE,
                              .shape = TENON_SHAPE_BROADCAST,
                              .dtype_mask = uint64_t{1} << TENON_DTYPE_F32,
                              .out_names = kOuts};

constexpr tenon_plugin kPlugin = {.struct_size = sizeof(tenon_plugin),
                                  .revision = TENON_ABI_REVISION,
                                  .name = "@name@",
                                  .version = "1.0.0",
                                  .vendor = "Tests",
                                  .ops = &kOp,
                                  .nops = 1,
                                  .op_size = sizeof(tenon_op_def)};

}  // namespace

TENON_PLUGIN(kPlugin)
