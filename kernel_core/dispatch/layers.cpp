// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/layers.hpp"

#include <mutex>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/owner.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

LayerTable layer_table;
constinit thread_local ThreadLayers thread_layers;

namespace {
std::mutex layer_mutex;
}

bool is_seen_by_enabled(const tenon_tensor& tensor) {
  uint8_t bits = layer_table.every_call.load(std::memory_order_relaxed) | tensor.layers;
  if (tensor.flags & TENON_TENSOR_FOLLOWS_BASE)
    if (const TensorImpl* base = base_of(*impl(&tensor))) bits |= base->layers;
  return bits & enabled_layers();
}

uint8_t base_layers(const tenon_value* values, uint32_t count) {
  uint8_t bits = 0;
  visit_tensors(values, count, [&](const tenon_tensor& tensor) {
    const TensorImpl* base =
        tensor.flags & TENON_TENSOR_FOLLOWS_BASE ? base_of(*impl(&tensor)) : nullptr;
    if (base) bits |= base->layers;
  });
  return bits;
}

namespace slots {

int32_t layer_register(const tenon_layer_def* def, tenon_err* err) {
  if (!def || def->struct_size < sizeof(tenon_layer_def) || !def->name || !def->call) {
    core::fail(err, TENON_INVALID_ARGUMENT, "a layer needs struct_size, name and call");
    return -1;
  }
  std::lock_guard lock(layer_mutex);
  int32_t count = layer_table.count.load(std::memory_order_relaxed);
  int32_t id = count;
  for (int32_t i = 0; i < count; ++i)  // a plugin that is loaded again takes its old place
    if (std::string_view(layer_table.defs[i].name) == def->name) id = i;
  if (id == kMaxLayers) {
    core::fail(
        err, TENON_OUT_OF_RANGE,
        "layer %s: expected at most %d layers, and that many are registered; run without one "
        "of the plugins that register a layer",
        def->name, kMaxLayers);
    return -1;
  }
  uint8_t bit = static_cast<uint8_t>(1u << id);
  layer_table.defs[id] = *def;
  layer_table.owners[id] = starting_plugin;
  layer_table.after[id] = 0;
  if (id == count) layer_table.count.store(count + 1, std::memory_order_release);
  for (int32_t i = 0; i <= count && i < layer_table.count.load(); ++i) {
    if (i == id) continue;
    bool later = layer_table.defs[i].order > def->order ||
                 (layer_table.defs[i].order == def->order && i > id);
    if (later)
      layer_table.after[id] |= static_cast<uint8_t>(1u << i);
    else
      layer_table.after[i] |= bit;
  }
  if (def->flags & TENON_LAYER_EVERY_CALL) layer_table.every_call.fetch_or(bit);
  if (def->flags & TENON_LAYER_KERNELS) layer_table.kernels.fetch_or(bit);
  if (def->flags & (TENON_LAYER_KERNELS | TENON_LAYER_WHOLE)) layer_table.wholes.fetch_or(bit);
  if (def->flags & TENON_LAYER_ENABLED) layer_table.default_enabled.fetch_or(bit);
  return id;
}

uint32_t layers_every_call() {
  return layer_table.every_call.load(std::memory_order_relaxed) & enabled_layers();
}

int32_t layer_enabled(int32_t layer) { return enabled_layers() >> layer & 1; }

int32_t layer_enable(int32_t layer, int32_t on) {
  int32_t before = layer_enabled(layer);
  uint8_t bit = static_cast<uint8_t>(1u << layer);
  (on ? thread_layers.on : thread_layers.off) |= bit;
  (on ? thread_layers.off : thread_layers.on) &= static_cast<uint8_t>(~bit);
  return before;
}

}  // namespace slots
}  // namespace tenon::core
