// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/layers.hpp"

#include <bit>
#include <mutex>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/owner.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

LayerTable layer_table;
constinit thread_local ThreadLayers thread_layers;

namespace {
std::mutex layer_mutex;

LayerSet other_layers_of(const tenon_tensor& tensor) {
  LayerSet bits = tensor.flags & TENON_TENSOR_COMPOSED ? kRefusesComposedBit : 0;
  if (tensor.flags & TENON_TENSOR_FOLLOWS_BASE)
    if (const TensorImpl* base = base_of(*impl(&tensor))) bits |= base->layers;
  return bits;
}

// Which layer would have served the tensor, for messages.
std::string composing_layer(const tenon_value* values, uint32_t count) {
  std::string names;
  visit_tensors(values, count, [&](const tenon_tensor& tensor) {
    for (LayerSet rest = tensor.flags & TENON_TENSOR_COMPOSED ? tensor.layers : 0;
         rest && names.empty(); rest &= rest - 1)
      names = layer_table.defs[std::countr_zero(rest)].name;
  });
  return names.empty() ? "no layer" : "the layer `" + names + "`";
}

tenon_status refuse_composed(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                             tenon_value* outs, uint32_t nouts, tenon_err* err) {
  std::string layer = composing_layer(args, nargs);
  if (layer == "no layer") layer = composing_layer(outs, nouts);
  return fail(err, TENON_UNSUPPORTED,
              "[%s] expected tensors with memory, got one that is composed of others, which %s "
              "would serve and did not; use to_dense() first",
              short_name(*op), layer.c_str());
}

}  // namespace

bool is_seen_by_enabled(const tenon_tensor& tensor) {
  LayerSet bits = layer_table.every_call.load(std::memory_order_relaxed) | tensor.layers;
  return (bits | other_layers_of(tensor)) & enabled_layers();
}

LayerSet other_layers(const tenon_value* values, uint32_t count) {
  LayerSet bits = 0;
  visit_tensors(values, count,
                [&](const tenon_tensor& tensor) { bits |= other_layers_of(tensor); });
  return bits;
}

void refuse_composed_below_layers() {
  if (layer_table.default_enabled.load(std::memory_order_acquire) & kRefusesComposedBit) return;
  std::lock_guard lock(layer_mutex);
  layer_table.defs[kRefusesComposed] = {.struct_size = sizeof(tenon_layer_def),
                                        .name = "memory",
                                        .order = INT32_MAX,
                                        .call = refuse_composed};
  for (int32_t i = 0; i < kMaxLayers; ++i) layer_table.after[i] |= kRefusesComposedBit;
  layer_table.default_enabled.fetch_or(kRefusesComposedBit, std::memory_order_release);
}

namespace slots {

int32_t layer_register(const tenon_layer_def* def, tenon_err* err) {
  if (!def || def->struct_size < sizeof(tenon_layer_def) || !def->name || !def->call) {
    core::fail(err, TENON_INVALID_ARGUMENT, "a layer needs struct_size, name and call");
    return -1;
  }
  std::lock_guard lock(layer_mutex);
  const bool has_bit = !(def->flags & TENON_LAYER_NO_BIT);
  const int32_t first = has_bit ? 0 : kTensorLayers;
  const int32_t last = has_bit ? kTensorLayers : kMaxLayers;
  const LayerSet registered = layer_table.registered.load(std::memory_order_relaxed);
  const LayerSet taken = registered >> first;
  int32_t id = first + std::countr_one(taken);
  for (int32_t i = first; i < last; ++i)  // a plugin that is loaded again takes its old place
    if (registered >> i & 1 && std::string_view(layer_table.defs[i].name) == def->name) id = i;
  if (id >= last) {
    core::fail(err, TENON_OUT_OF_RANGE,
               "layer %s: expected at most %d layers that %s, and that many are registered; %s",
               def->name, last - first, has_bit ? "mark tensors" : "mark no tensors",
               has_bit ? "register it with TENON_LAYER_NO_BIT if it marks none"
                       : "run without one of the plugins that register a layer");
    return -1;
  }
  const LayerSet bit = LayerSet{1} << id;
  layer_table.defs[id] = *def;
  layer_table.owners[id] = starting_plugin;
  layer_table.after[id] =
      layer_table.default_enabled.load(std::memory_order_relaxed) & kRefusesComposedBit;
  for (int32_t i = 0; i < kMaxLayers; ++i) {
    if (i == id || !(registered >> i & 1)) continue;
    bool later = layer_table.defs[i].order > def->order ||
                 (layer_table.defs[i].order == def->order && i > id);
    if (later)
      layer_table.after[id] |= LayerSet{1} << i;
    else
      layer_table.after[i] |= bit;
  }
  layer_table.registered.fetch_or(bit, std::memory_order_release);
  if (def->flags & TENON_LAYER_EVERY_CALL) layer_table.every_call.fetch_or(bit);
  if (def->flags & TENON_LAYER_KERNELS) layer_table.kernels.fetch_or(bit);
  if (def->flags & (TENON_LAYER_KERNELS | TENON_LAYER_WHOLE)) layer_table.wholes.fetch_or(bit);
  if (def->flags & TENON_LAYER_COMPOSITES) layer_table.composites.fetch_or(bit);
  if (def->flags & TENON_LAYER_ENABLED) layer_table.default_enabled.fetch_or(bit);
  return id;
}

uint32_t layers_every_call() {
  return static_cast<uint32_t>(layer_table.every_call.load(std::memory_order_relaxed) &
                               enabled_layers());
}

int32_t layer_enabled(int32_t layer) { return static_cast<int32_t>(enabled_layers() >> layer & 1); }

int32_t layer_enable(int32_t layer, int32_t on) {
  int32_t before = layer_enabled(layer);
  const LayerSet bit = LayerSet{1} << layer;
  (on ? thread_layers.on : thread_layers.off) |= bit;
  (on ? thread_layers.off : thread_layers.on) &= ~bit;
  return before;
}

}  // namespace slots
}  // namespace tenon::core
