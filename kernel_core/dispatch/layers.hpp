// SPDX-License-Identifier: Apache-2.0
// Interceptors of operator calls, and the per-thread mask that says which are on.
#pragma once

#include <tenon/abi.h>

#include <atomic>

#include "kernel_core/dispatch/operator.hpp"

namespace tenon::core {

inline constexpr int32_t kMaxLayers = 8;  // a bit each in tenon_tensor.layers

struct LayerTable {
  tenon_layer_def defs[kMaxLayers];
  const void* owners[kMaxLayers];           // the plugin that was starting, if one was
  uint8_t after[kMaxLayers];                // bits of the layers that come later than layer i
  std::atomic<uint8_t> every_call{0};       // want calls whatever the arguments carry
  std::atomic<uint8_t> default_enabled{0};
  std::atomic<uint8_t> kernels{0};         // watch kernels: see what lowering and host runs call as well
  std::atomic<int32_t> count{0};
};
extern LayerTable layer_table;

// Deviations of this thread from default_enabled.
struct ThreadLayers {
  uint8_t on = 0, off = 0;
};
extern constinit thread_local ThreadLayers thread_layers;

inline uint8_t enabled_layers() {
  ThreadLayers mine = thread_layers;
  return static_cast<uint8_t>(
      (layer_table.default_enabled.load(std::memory_order_relaxed) | mine.on) & ~mine.off);
}

// The layer bits of all tensor arguments.
inline uint8_t argument_layers(const tenon_value* args, uint32_t nargs) {
  uint8_t bits = 0;
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) {
      bits |= static_cast<const tenon_tensor*>(args[i].v.p)->layers;
    } else if (args[i].tag == TENON_VALUE_TENSORS) [[unlikely]] {
      auto* list = static_cast<tenon_tensor* const*>(args[i].v.p);
      for (uint32_t k = 0; k < args[i].aux; ++k)
        if (list[k]) bits |= list[k]->layers;
    }
  }
  return bits;
}

// Layers that want this call, out of `allowed`. Outputs count too: writing into a tensor that a layer
// watches is its business.
inline uint8_t wanted_layers(const tenon_value* args, uint32_t nargs, const tenon_value* outs,
                             uint32_t nouts, uint8_t allowed) {
  uint8_t every = layer_table.every_call.load(std::memory_order_relaxed);
  return static_cast<uint8_t>((argument_layers(args, nargs) | argument_layers(outs, nouts) | every) & allowed);
}

// Enter the first of the `wanted` layers (not zero).
tenon_status enter_layer(uint8_t wanted, const Operator& op, tenon_value* args, uint32_t nargs,
                         tenon_value* outs, uint32_t nouts, tenon_err* err);

// Everything called in this scope goes straight to kernels, and to the layers that watch those.
class LayersOff {
 public:
  LayersOff() : saved_(thread_layers) {
    uint8_t kept = layer_table.kernels.load(std::memory_order_relaxed);
    thread_layers.on &= kept;
    thread_layers.off |= static_cast<uint8_t>(~kept);
  }
  ~LayersOff() { thread_layers = saved_; }
  LayersOff(const LayersOff&) = delete;

 private:
  ThreadLayers saved_;
};

}  // namespace tenon::core
