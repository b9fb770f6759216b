// SPDX-License-Identifier: Apache-2.0
// What would serve a call, and why: the decision of resolve(), told without running anything.
#include "formats/json_writer.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/fallback_policy.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/types/dtype.hpp"

namespace tenon::core {
namespace {

constexpr const char* kRoutes[] = {"native", "native", "lowered", "host", "none"};
constexpr const char* kPolicies[] = {"deny", "warn_once", "allow"};

const char* route_name(Route route) { return kRoutes[static_cast<int>(route)]; }

}  // namespace

namespace slots {

tenon_status op_explain(const tenon_op* handle, tenon_device_id device_id, int32_t dtype,
                        tenon_sink_fn sink, void* user, tenon_err* err) {
  auto* op = const_cast<Operator*>(handle);
  Device* device = find_device(device_id);
  if (!op || !op->is_defined) return core::fail(err, TENON_NOT_FOUND, "no such operator");
  if (!device) return core::fail(err, TENON_NOT_FOUND, "no device has id %u", device_id);
  if (!is_dtype(dtype)) return core::fail(err, TENON_INVALID_ARGUMENT, "no dtype has id %d", dtype);
  uint32_t kind = TENON_DEVICE_KIND(device_id);
  JsonWriter json;
  json.object("", [&] {
    json.string("op", op->name);
    json.string("schema", op->def.schema);
    json.string("origin", op->def.origin ? op->def.origin : "");
    json.string("definer", op->definer);
    json.string("device", device->name);
    json.string("dtype", core::dtype_name(dtype));
    json.boolean("composite", op->def.flags & TENON_OP_COMPOSITE);
    if (op->def.flags & TENON_OP_VIEW) return json.string("route", "view");
    const Resolution* cell = resolve(*op, kind, dtype);
    json.string("route", route_name(cell->route));
    if (cell->route == Route::kChoose) json.string("if_all_decline", route_name(cell->otherwise));
    if (cell->route == Route::kHost)
      json.string("policy",
                  kPolicies[static_cast<int>(fallback_policy(*op, device_kind_name(kind)))]);
    json.array("kernels", [&] {
      for (KernelState state : {KernelState::kUsed, KernelState::kOptional, KernelState::kHeldBack})
        for (const Kernel* kernel : kernels_for(*op, kind, dtype, state))
          json.object("", [&] {
            json.string("plugin", kernel->plugin);
            json.string("for", kernel->device_kind);
            json.number("score", kernel->def.score);
            json.boolean("may_decline", kernel->def.can_run);
            json.boolean("typed",
                         kernel->def.typed && kernel->def.schema_hash == op->def.schema_hash);
            json.boolean("override", kernel->is_override);
            json.boolean("deterministic", !(kernel->def.traits & TENON_KERNEL_NONDETERMINISTIC));
            json.boolean("held_back", state == KernelState::kHeldBack);
            json.boolean("optional", state == KernelState::kOptional);
          });
    });
    json.boolean("has_decomposition", op->can_decompose());
  });
  sink(user, json.text().data(), json.text().size());
  return TENON_OK;
}

}  // namespace slots
}  // namespace tenon::core
