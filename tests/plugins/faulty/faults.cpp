// SPDX-License-Identifier: Apache-2.0
// Every way in which a table can be wrong, by name. loader_test.cpp says what each must lead to.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "parts.hpp"

namespace {

struct Fault {
  const char* name;
  void (*apply)(Parts&);
};

tenon_status enumerate_too_many(tenon_device_info*, uint32_t, uint32_t* count, tenon_err*) {
  *count = 4000000000u;
  return TENON_OK;
}
tenon_status enumerate_nothing_said(tenon_device_info*, uint32_t, uint32_t*, tenon_err*) {
  return TENON_OK;  // and leaves *count as it was
}
tenon_status enumerate_no_driver(tenon_device_info*, uint32_t, uint32_t*, tenon_err* err) {
  static const char text[] = "driver library libfaulty_driver.so.1 is not installed";
  host->fail(err, TENON_UNAVAILABLE, 0, text, sizeof text - 1);
  return TENON_UNAVAILABLE;
}
tenon_status enumerate_throws(tenon_device_info*, uint32_t, uint32_t*, tenon_err*) {
  throw std::runtime_error("no hardware today");
}
tenon_status stream_create(tenon_device, int32_t, tenon_stream*, tenon_err*) { return TENON_OK; }

tenon_status start_fails(const tenon_host*, tenon_err* err) {
  if (host->service_register("faulty", 1, &host, err) != TENON_OK) return TENON_INTERNAL;
  static const char text[] = "the licence has expired";
  host->fail(err, TENON_PERMISSION_DENIED, 7, text, sizeof text - 1);
  return TENON_PERMISSION_DENIED;
}
tenon_status start_throws(const tenon_host*, tenon_err*) {
  throw std::runtime_error("start blew up");
}
tenon_status start_fails_silently(const tenon_host*, tenon_err*) { return TENON_UNKNOWN; }
tenon_status start_with_layer(const tenon_host*, tenon_err* err) {
  static const tenon_layer_def layer = {
      .struct_size = sizeof layer,
      .name = "faulty_layer",
      .call = [](void*, const tenon_op*, tenon_value*, uint32_t, tenon_value*, uint32_t,
                 tenon_err*) { return tenon_status{TENON_OK}; }};
  return host->layer_register(&layer, err) < 0 ? TENON_INTERNAL : TENON_OK;
}
tenon_status start_with_layer_fails(const tenon_host*, tenon_err* err) {
  return start_with_layer(host, err) == TENON_OK ? TENON_ABORTED : TENON_INTERNAL;
}
// A plugin that brings another, whose table lies in its library.
tenon_status start_attaches(const tenon_host*, tenon_err* err) {
  static Parts child;
  make_sound(child);
  child.plugin.name = "faulty_child";
  child.device.kind = "child";
  child.plugin.nops = child.plugin.nkernels = 0;
  child.plugin.start = nullptr;
  return host->plugin_attach(&child.plugin, "the child of faulty", err);
}
tenon_status start_attaches_and_fails(const tenon_host*, tenon_err* err) {
  tenon_status status = start_attaches(host, err);
  return status == TENON_OK ? TENON_ABORTED : status;
}
tenon_status start_loads_itself(const tenon_host*, tenon_err* err) {
  return host->plugin_load(std::getenv("TENON_TEST_SELF"), err);
}
tenon_status stop_unloads_itself(tenon_err* err) { return host->plugin_unload("faulty", err); }
tenon_status stop_fails(tenon_err* err) {
  static const char text[] = "a thread is still running";
  host->fail(err, TENON_FAILED_PRECONDITION, 0, text, sizeof text - 1);
  return TENON_FAILED_PRECONDITION;
}

const Fault kFaults[] = {
    {"none", [](Parts&) {}},
    {"plugin_size_zero", [](Parts& p) { p.plugin.struct_size = 0; }},
    {"plugin_size_small", [](Parts& p) { p.plugin.struct_size = 32; }},
    {"plugin_size_odd", [](Parts& p) { p.plugin.struct_size += 1; }},
    {"plugin_size_huge", [](Parts& p) { p.plugin.struct_size = 0xfffffff8u; }},
    {"plugin_features", [](Parts& p) { p.plugin.features = 1; }},
    {"plugin_name_null", [](Parts& p) { p.plugin.name = nullptr; }},
    {"plugin_vendor_null", [](Parts& p) { p.plugin.vendor = nullptr; }},
    {"plugin_name_other", [](Parts& p) { p.plugin.name = "somebody_else"; }},
    {"device_absent", [](Parts& p) { p.plugin.device = nullptr; }},
    {"device_size_zero", [](Parts& p) { p.device.struct_size = 0; }},
    {"device_size_huge", [](Parts& p) { p.device.struct_size = 0xfffffff8u; }},
    {"device_kind_null", [](Parts& p) { p.device.kind = nullptr; }},
    {"device_kind_bad", [](Parts& p) { p.device.kind = "Faulty:0"; }},
    {"device_kind_undeclared", [](Parts& p) { p.device.kind = "other"; }},
    {"device_kind_of_other", [](Parts& p) { p.device.kind = "null"; }},
    {"device_free_null", [](Parts& p) { p.device.free = nullptr; }},
    {"device_sync_null", [](Parts& p) { p.device.sync = nullptr; }},
    {"async_partial",
     [](Parts& p) {
       p.async = {.struct_size = sizeof(tenon_async_api), .stream_create = stream_create};
       p.device.async = &p.async;
     }},
    {"async_reserved",
     [](Parts& p) {
       p.async = {.struct_size = sizeof(tenon_async_api), .reserved = 1};
       p.device.async = &p.async;
     }},
    {"async_size_small",
     [](Parts& p) {
       p.async = {.struct_size = 16, .stream_create = stream_create};
       p.device.async = &p.async;
     }},
    {"enumerate_too_many", [](Parts& p) { p.device.enumerate = enumerate_too_many; }},
    {"enumerate_nothing_said", [](Parts& p) { p.device.enumerate = enumerate_nothing_said; }},
    {"enumerate_no_driver", [](Parts& p) { p.device.enumerate = enumerate_no_driver; }},
    {"enumerate_throws", [](Parts& p) { p.device.enumerate = enumerate_throws; }},
    {"ops_null", [](Parts& p) { p.plugin.ops = nullptr; }},
    {"ops_too_many", [](Parts& p) { p.plugin.nops = 2000000000u; }},
    {"ops_twice_the_same",
     [](Parts& p) {
       static tenon_op_def both[2];
       both[0] = both[1] = p.op;
       p.plugin.ops = both;
       p.plugin.nops = 2;
     }},
    {"op_reserved", [](Parts& p) { p.op.reserved = 1; }},
    {"op_size_small", [](Parts& p) { p.plugin.op_size = 8; }},
    {"op_struct_size_zero", [](Parts& p) { p.op.struct_size = 0; }},
    {"op_struct_size_past_element", [](Parts& p) { p.op.struct_size = sizeof(tenon_op_def) + 64; }},
    {"op_name_null", [](Parts& p) { p.op.name = nullptr; }},
    {"op_name_bare", [](Parts& p) { p.op.name = "twice"; }},
    {"op_namespace_undeclared",
     [](Parts& p) {
       p.op.name = "tenon::twice";
       p.op.schema = "tenon::twice(Tensor x) -> Tensor";
     }},
    {"op_schema_null", [](Parts& p) { p.op.schema = nullptr; }},
    {"op_schema_of_other", [](Parts& p) { p.op.schema = "faulty::thrice(Tensor x) -> Tensor"; }},
    {"op_hash_wrong", [](Parts& p) { p.op.schema_hash ^= 1; }},
    {"op_flags_unknown", [](Parts& p) { p.op.flags |= 1u << 31; }},
    {"op_compute_unknown", [](Parts& p) { p.op.compute = 77; }},
    {"op_mask_empty", [](Parts& p) { p.op.dtype_mask = 0; }},
    {"op_params_null", [](Parts& p) { p.op.params = nullptr; }},
    {"op_params_too_many", [](Parts& p) { p.op.nparams = 1000; }},
    {"op_param_size_zero", [](Parts& p) { p.op.param_size = 0; }},
    {"op_outs_none", [](Parts& p) { p.op.nouts = 0; }},
    {"op_rule_missing", [](Parts& p) { p.op.shape = TENON_SHAPE_INFER; }},
    {"op_composite_of_nothing", [](Parts& p) { p.op.flags = TENON_OP_COMPOSITE; }},
    {"op_list_of_kernel", [](Parts& p) { p.op.flags |= TENON_OP_LIST_OUTPUT; }},
    {"param_name_null", [](Parts& p) { p.param.name = nullptr; }},
    {"param_kind_unknown", [](Parts& p) { p.param.kind = 99; }},
    {"param_flags_unknown", [](Parts& p) { p.param.flags = 1u << 30; }},
    {"param_default_null_list",
     [](Parts& p) {
       p.param.kind = TENON_PARAM_INTS;
       p.param.flags = TENON_PARAM_FLAG_HAS_DEFAULT;
       p.param.default_value = {.tag = TENON_VALUE_INTS, .aux = 4, .v = {.p = nullptr}};
     }},
    {"kernels_null", [](Parts& p) { p.plugin.kernels = nullptr; }},
    {"kernel_size_huge", [](Parts& p) { p.plugin.kernel_size = 0x10000000u; }},
    {"kernel_struct_size_zero", [](Parts& p) { p.kernel.struct_size = 0; }},
    {"kernel_op_null", [](Parts& p) { p.kernel.op = nullptr; }},
    {"kernel_boxed_null", [](Parts& p) { p.kernel.boxed = nullptr; }},
    {"kernel_typed_unguarded",
     [](Parts& p) { p.kernel.typed = reinterpret_cast<tenon_typed_fn>(p.kernel.boxed); }},
    {"kernel_mask_empty", [](Parts& p) { p.kernel.dtype_mask = 0; }},
    {"kernel_mask_unknown", [](Parts& p) { p.kernel.dtype_mask |= uint64_t{1} << 40; }},
    {"kernel_reserved", [](Parts& p) { p.kernel.reserved = 1; }},
    {"kernel_traits_unknown", [](Parts& p) { p.kernel.traits = 1u << 31; }},
    // For an operator of one's own it would be fine.
    {"kernel_device_undeclared",
     [](Parts& p) { p.kernel.op = "tenon::relu", p.kernel.device = "cpu"; }},
    {"start_fails", [](Parts& p) { p.plugin.start = start_fails; }},
    {"start_throws", [](Parts& p) { p.plugin.start = start_throws; }},
    {"start_fails_silently", [](Parts& p) { p.plugin.start = start_fails_silently; }},
    {"start_with_layer", [](Parts& p) { p.plugin.start = start_with_layer; }},
    {"start_with_layer_fails", [](Parts& p) { p.plugin.start = start_with_layer_fails; }},
    {"start_attaches", [](Parts& p) { p.plugin.start = start_attaches; }},
    {"start_attaches_and_fails", [](Parts& p) { p.plugin.start = start_attaches_and_fails; }},
    {"start_loads_itself", [](Parts& p) { p.plugin.start = start_loads_itself; }},
    {"stop_unloads_itself", [](Parts& p) { p.plugin.stop = stop_unloads_itself; }},
    {"stop_absent", [](Parts& p) { p.plugin.stop = nullptr; }},
    {"stop_fails", [](Parts& p) { p.plugin.stop = stop_fails; }},
    // An old plugin: its struct ends before `stop`. Not a fault.
    {"plugin_older", [](Parts& p) { p.plugin.struct_size = offsetof(tenon_plugin, stop); }},
    // A newer one: longer structs, one more dtype, one more trait. Not a fault.
    {"plugin_newer",
     [](Parts& p) {
       p.plugin.revision = TENON_ABI_REVISION + 1;
       p.plugin.features = 1;
       p.kernel.dtype_mask |= uint64_t{1} << TENON_DTYPE_COUNT;
       p.kernel.traits = 1u << 31;
     }},
};

}  // namespace

bool make_faulty(Parts& parts, const char* name) {
  for (const Fault& fault : kFaults)
    if (std::strcmp(fault.name, name) == 0) return fault.apply(parts), true;
  return false;
}
