// SPDX-License-Identifier: Apache-2.0
// The plugin: the service, its layer, and the kinds of sparse tensors.
#include "rules.hpp"

#include <tenon/error.hpp>

namespace tenon::parts {
namespace {

void drop(void* composed) { delete static_cast<Composed*>(composed); }

// Of several kinds, whose rules know what to do with all of them.
int rank_of(const Kind* kind) { return kind == &kRagged ? 2 : is_compressed(kind) ? 1 : 0; }

const Kind* find_kind(const Call& call) {
  const Kind* found = nullptr;
  const auto look = [&](const tenon_value& value) {
    const Composed* composed = composed_of(value);
    if (composed && composed->kind->call && (!found || rank_of(composed->kind) > rank_of(found)))
      found = composed->kind;
  };
  for (uint32_t i = 0; i < call.nargs; ++i) {
    look(call.args[i]);
    if (call.args[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(call.args[i].v.p);
    for (uint32_t k = 0; k < call.args[i].aux; ++k)
      if (list[k]) look(boxed(list[k]));
  }
  for (uint32_t i = 0; i < call.nouts; ++i) look(call.outs[i]);
  return found;
}

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const Call call{op, args, nargs, outs, nouts, err};
  tenon_status status = TENON_LAYER_DECLINED;
  const tenon_status escaped = guarded(err, [&] {
    if ((status = call_with_number(call)) != TENON_LAYER_DECLINED) return;
    // A result that is written into a composed tensor, of arguments that are plain.
    bool has_composed = false, has_list = false;
    for (uint32_t i = 0; i < nargs; ++i) {
      has_composed |= composed_of(args[i]) != nullptr;
      has_list |= args[i].tag == TENON_VALUE_TENSORS;
    }
    if (const Kind* kind = find_kind(call); kind && (has_composed || has_list))
      status = kind->call(op, args, nargs, outs, nouts, err);
    if (status == TENON_LAYER_DECLINED && has_composed) status = call_elementwise(call);
  });
  if (escaped != TENON_OK) return escaped;
  return status == TENON_LAYER_DECLINED ? call_common(op, args, nargs, outs, nouts, err) : status;
}

// Above mixed precision (50) and autograd (100), which see what becomes of the parts.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_ENABLED | TENON_LAYER_COMPOSITES,
    .name = "parts",
    .order = 25,
    .call = layer_call,
};

const Kind* kind(const tenon_tensor* tensor) {
  const Composed* composed = composed_of(tensor);
  return composed ? composed->kind : nullptr;
}
tenon_tensor* part(const tenon_tensor* tensor, uint32_t index) {
  const Composed* composed = composed_of(tensor);
  return composed && index < composed->parts.size() ? composed->parts[index].get() : nullptr;
}
int64_t word(const tenon_tensor* tensor, uint32_t index) {
  const Composed* composed = composed_of(tensor);
  return composed && index < composed->words.size() ? composed->words[index] : 0;
}

tenon_status tensor_with_values(const tenon_tensor* like, tenon_tensor* values, tenon_tensor** out,
                                tenon_err* err) {
  return guarded(err, [&] {
    if (!composed_of(like) || !values)
      throw Error(TENON_INVALID_ARGUMENT, "with_values: expected a composed tensor and a tensor");
    Scope scope(err);
    Tensor result = with_values(scope, like, Tensor::borrow(values));
    if (!scope.ok()) throw Error(scope.status(), "");
    *out = result.release();
  });
}

constexpr tenon_parts_api kService = {.struct_size = sizeof(tenon_parts_api),
                                      .version = TENON_PARTS_VERSION,
                                      .kind_register = kind_register,
                                      .kind_find = kind_find,
                                      .kind = kind,
                                      .part = part,
                                      .word = word,
                                      .create = create,
                                      .replace = replace,
                                      .with_values = tensor_with_values,
                                      .call_common = call_common,
                                      .convert = convert,
                                      .coalesce = coalesce};

tenon_status start(const tenon_host*, tenon_err* err) {
  slot = host->ext_register("parts", drop);
  if (slot < 0)
    return fail(err, TENON_OUT_OF_RANGE,
                "parts: all extension slots of tensors are taken; run without one of the plugins "
                "that register one");
  layer = host->layer_register(&kLayer, err);
  if (layer < 0) return host->err_code(err);
  for (const Kind* own : {&kCoo, &kCsr, &kCsc, &kBsr, &kRagged})
    if (!kind_find(own->name))
      if (tenon_status status = kind_register(own, err)) return status;
  return host->service_register(TENON_PARTS_SERVICE, TENON_PARTS_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "parts",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::parts

TENON_PLUGIN(tenon::parts::kPlugin)
