// SPDX-License-Identifier: Apache-2.0
// An operator package in C++, as somebody shipped it: an operator in terms of the host's, through the
// C++ headers of its day, and a service.
#include <tenon/plugin.hpp>

TENON_PLUGIN_NOTE("kept_operators", "1.0.0", "{\"kind\":\"operators\",\"namespaces\":[\"kept\"]}");

namespace {

using tenon::host;

tenon_status infer_twice(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t, tenon_err*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  outs[0] = {};
  outs[0].ndim = x->ndim;
  outs[0].dtype = x->dtype;
  outs[0].kind = TENON_META_NEW;
  for (int32_t d = 0; d < x->ndim; ++d) outs[0].shape[d] = x->shape[d];
  return TENON_OK;
}

// twice(x) = x + x, on whatever device x is.
tenon_status decompose_twice(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t nouts,
                             tenon_err* err) {
  const tenon_op* add = host->op_find("tenon::add");
  if (!add) return tenon::fail(err, TENON_NOT_FOUND, "kept::twice needs tenon::add");
  tenon::Tensor x = tenon::Tensor::borrow(static_cast<tenon_tensor*>(args[0].v.p));
  tenon_value both[2] = {tenon::TensorArg(x).value(), tenon::TensorArg(x).value()};
  return host->op_call(add, both, 2, outs, nouts, err);
}

const tenon_param_def kParams[] = {{.name = "x", .kind = TENON_PARAM_TENSOR, .flags = 0, .default_value = {}}};
constexpr char kSchema[] = "kept::twice(Tensor x) -> Tensor";
constexpr uint64_t hash(const char* text) {  // FNV-1a
  uint64_t value = 0xcbf29ce484222325;
  for (; *text; ++text) value = (value ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  return value;
}
const char* const kOutNames[] = {"out"};
const tenon_op_def kOps[] = {{.struct_size = sizeof(tenon_op_def),
                              .flags = TENON_OP_COMPOSITE,
                              .name = "kept::twice",
                              .schema = kSchema,
                              .schema_hash = hash(kSchema),
                              .doc = "`x` and `x` again.",
                              .origin = "kept_operators.cpp",
                              .params = kParams,
                              .nparams = 1,
                              .param_size = sizeof(tenon_param_def),
                              .nouts = 1,
                              .compute = TENON_COMPUTE_FIRST,
                              .shape = TENON_SHAPE_INFER,
                              .out_dtype = TENON_OUT_COMPUTE,
                              .reserved = 0,
                              .dtype_mask = (1u << TENON_DTYPE_COUNT) - 1,
                              .out_names = kOutNames,
                              .infer = infer_twice,
                              .decompose = decompose_twice,
                              .invoke = nullptr}};

struct KeptService {
  uint32_t struct_size;
  int32_t (*answer)();
};
const KeptService kService = {sizeof(KeptService), [] { return int32_t{42}; }};

tenon_status start(const tenon_host* table, tenon_err* err) {
  return table->service_register("kept/1", 1, &kService, err);
}
tenon_status stop(tenon_err*) { return TENON_OK; }

const tenon_plugin kPlugin = {.struct_size = sizeof(tenon_plugin),
                              .revision = TENON_ABI_REVISION,
                              .features = 0,
                              .name = "kept_operators",
                              .version = "1.0.0",
                              .vendor = "Yesterday Ltd.",
                              .device = nullptr,
                              .ops = kOps,
                              .kernels = nullptr,
                              .nops = 1,
                              .op_size = sizeof(tenon_op_def),
                              .nkernels = 0,
                              .kernel_size = sizeof(tenon_kernel_def),
                              .start = start,
                              .stop = stop};

}  // namespace

TENON_PLUGIN(kPlugin)
