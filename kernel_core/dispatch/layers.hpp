// SPDX-License-Identifier: Apache-2.0
// Interceptors of operator calls, and the per-thread mask that says which are on.
#pragma once

#include <tenon/abi.h>

#include <atomic>
#include <bit>

#include "kernel_core/dispatch/arguments.hpp"
#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/runtime/tensor.hpp"

namespace tenon::core {

// Sets of layers, a bit for each id.
using LayerSet = uint64_t;
inline constexpr int32_t kMaxLayers = 32;    // of plugins
inline constexpr int32_t kTensorLayers = 8;  // the first, which have a bit in tenon_tensor.layers
// The host's own layer, behind all others and never off: it refuses calls that would bring a composed
// tensor to kernels. Every such call wants it, whatever the tensor's layers have done before.
inline constexpr int32_t kRefusesComposed = kMaxLayers;
inline constexpr LayerSet kRefusesComposedBit = LayerSet{1} << kRefusesComposed;
// Flags for which more than `layers` of the tensor says which layers want it.
inline constexpr uint16_t kOtherLayers = TENON_TENSOR_FOLLOWS_BASE | TENON_TENSOR_COMPOSED;

struct LayerTable {
  tenon_layer_def defs[kMaxLayers + 1];
  const void* owners[kMaxLayers];       // the plugin that was starting, if one was
  LayerSet after[kMaxLayers + 1];       // the layers that come later than layer i
  std::atomic<LayerSet> every_call{0};  // want calls whatever the arguments carry
  std::atomic<LayerSet> default_enabled{0};
  std::atomic<LayerSet> wholes{0};   // see composites whole where one kernel serves the whole
  std::atomic<LayerSet> kernels{0};  // watch kernels: see what lowering and host runs call as well
  std::atomic<LayerSet> composites{0};  // are asked about composites that take composed tensors
  std::atomic<LayerSet> registered{0};
};
extern LayerTable layer_table;

// Deviations of this thread from default_enabled.
struct ThreadLayers {
  LayerSet on = 0, off = 0;
};
extern constinit thread_local ThreadLayers thread_layers;

inline LayerSet enabled_layers() {
  ThreadLayers mine = thread_layers;
  return (layer_table.default_enabled.load(std::memory_order_relaxed) | mine.on) & ~mine.off;
}

// The layers that want a call for other reasons than `layers` of its tensors: those of the bases of
// views that follow theirs, and the one that refuses composed tensors.
LayerSet other_layers(const tenon_value* values, uint32_t count);

// Turns on the layer that refuses composed tensors, before the first one is made: until then no call
// needs to look for one.
void refuse_composed_below_layers();

// Does an enabled layer want to see a call which takes the tensor alone?
bool is_seen_by_enabled(const tenon_tensor& tensor);
[[gnu::always_inline]] inline bool is_seen(const tenon_tensor& tensor) {
  const LayerSet bits = layer_table.every_call.load(std::memory_order_relaxed) | tensor.layers;
  if (bits == 0 && !(tensor.flags & kOtherLayers)) [[likely]]
    return false;
  return is_seen_by_enabled(tensor);
}

// Layers that want this call, out of `allowed`. Outputs count too: writing into a tensor that a
// layer watches is its business.
inline LayerSet wanted_layers(const tenon_value* args, uint32_t nargs, const tenon_value* outs,
                              uint32_t nouts, LayerSet allowed) {
  LayerSet bits = layer_table.every_call.load(std::memory_order_relaxed);
  uint16_t flags = 0;
  auto add = [&](const tenon_tensor& tensor) { bits |= tensor.layers, flags |= tensor.flags; };
  visit_tensors(args, nargs, add);
  visit_tensors(outs, nouts, add);
  if (flags & kOtherLayers) [[unlikely]]
    bits |= other_layers(args, nargs) | other_layers(outs, nouts);
  return bits & allowed;
}

// The first in order of the `wanted` layers (not zero): the one that no other wanted layer precedes.
inline int32_t first_layer(LayerSet wanted) {
  int32_t first = std::countr_zero(wanted);
  for (LayerSet rest = wanted & (wanted - 1); rest; rest &= rest - 1) {
    int32_t other = std::countr_zero(rest);
    if (layer_table.after[other] >> first & 1) first = other;
  }
  return first;
}

// Enter the first of the `wanted` layers (not zero).
inline tenon_status enter_layer(LayerSet wanted, const Operator& op, tenon_value* args,
                                uint32_t nargs, tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const tenon_layer_def& layer = layer_table.defs[first_layer(wanted)];
  return layer.call(layer.self, &op, args, nargs, outs, nouts, err);
}

// Everything called in this scope goes straight to kernels, and to the layers that watch those.
class LayersOff {
 public:
  LayersOff() : saved_(thread_layers) {
    LayerSet kept = layer_table.kernels.load(std::memory_order_relaxed) | kRefusesComposedBit;
    thread_layers.on &= kept;
    thread_layers.off |= ~kept;
  }
  ~LayersOff() { thread_layers = saved_; }
  LayersOff(const LayersOff&) = delete;

 private:
  ThreadLayers saved_;
};

}  // namespace tenon::core
