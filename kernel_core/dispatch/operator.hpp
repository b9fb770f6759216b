// SPDX-License-Identifier: Apache-2.0
// One operator as the dispatcher sees it: its definition, and a table from (device kind, dtype) to
// what serves it. The table is read without a lock; an empty cell is resolved once.
#pragma once

#include <tenon/abi.h>

#include <atomic>
#include <string>

#include "kernel_core/types/status.hpp"

namespace tenon::core {

inline constexpr uint32_t kMaxParams = 32;
inline constexpr uint32_t kMaxOutputs = 8;
inline constexpr uint32_t kMaxDeviceKinds = 256;  // the high byte of a tenon_device_id

struct Kernel {
  tenon_kernel_def def;
  const void* owner;
  std::string plugin;  // for explanations
  std::string op;
  std::string device_kind;
  bool is_override;        // of another plugin's operator on another plugin's device: needs consent
  bool is_optional;        // runs only where it is chosen, or once the user names its plugin
  const tenon_op* target;  // the operator
  std::string origin;      // of the plugin: "acme 1.4.2 (/path/libtenon_acme.so)"
};

// How a cell is served.
enum class Route : uint8_t {
  kNative,   // one kernel, always
  kChoose,   // several kernels, or one that may decline: asked at every call
  kLowered,  // the operator's decomposition
  kHost,     // copies to the host device and back
  kNone,     // nothing can serve it
};

struct Answer {
  Route route = Route::kNone;
  uint32_t traits = 0;
  tenon_boxed_fn boxed = nullptr;
  tenon_invoke_fn invoke = nullptr;  // set if `typed` may be used: schema hashes agree
  tenon_typed_fn typed = nullptr;
  const Kernel* kernel = nullptr;
  const struct Resolution* const* candidates = nullptr;  // kChoose: NULL-terminated, best first
  Route otherwise = Route::kNone;                        // kChoose: when every candidate declines

  bool operator==(const Answer&) const = default;
};

struct Resolution : Answer {
  explicit Resolution(const Answer& answer) : Answer(answer) {}

  // Calls served, for the fallback report. Plain stores: under concurrency counts may be low.
  mutable std::atomic<uint64_t> native_calls{0}, lowered_calls{0}, host_calls{0}, host_bytes{0};
};

inline void count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

using CellRow = std::atomic<const Resolution*>[TENON_DTYPE_SLOTS];

}  // namespace tenon::core

// The handle that plugins hold.
struct tenon_op {
  tenon_op_def def;  // full-size; name == NULL: known by name only, not defined
  uint32_t id;
  uint8_t is_defined;
  uint8_t tensor_params_only;  // every parameter is a plain Tensor that promotes and broadcasts
  uint8_t views_first;  // one result, which may be a view of the first parameter, the only Tensor,
                        // whatever its dtype: of a composite where its rule says so
  uint8_t plain_defaults;  // the defaults are of their parameters' kinds
  uint8_t is_its_parts;    // a composite of one result that no kernel computes as a whole
  int8_t in_place;         // the parameter whose tensor the result may be written over, or -1
  // TENON_CREATION_* << 8 | dtype of an operator that was declared as a creation, or 0
  std::atomic<uint16_t> creation;
  std::string name;
  const void* owner;
  std::string definer;  // "acme 1.4.2 (/path/libtenon_acme.so)", for messages
  std::atomic<tenon::core::CellRow*> rows[tenon::core::kMaxDeviceKinds];

  const tenon::core::Resolution* cell(uint32_t kind, int32_t dtype) const {
    auto* row = rows[kind].load(std::memory_order_acquire);
    return row ? (*row)[dtype].load(std::memory_order_acquire) : nullptr;
  }
  bool can_infer() const { return def.infer || def.infer_self; }
  tenon_status infer(const tenon_value* args, tenon_meta* outs, tenon_err* err) const try {
    return def.infer ? def.infer(args, def.nparams, outs, def.nouts, err)
                     : def.infer_self(args, def.nparams, outs, def.nouts, err, def.self);
  } catch (...) {
    return tenon::core::fail_escaped(err, "[" + name + "] its shape rule");
  }
  bool can_decompose() const { return def.decompose || def.decompose_self; }
  tenon_status decompose(const tenon_value* args, tenon_value* outs, tenon_err* err) const try {
    return def.decompose ? def.decompose(nullptr, args, def.nparams, outs, def.nouts, err)
                         : def.decompose_self(args, def.nparams, outs, def.nouts, err, def.self);
  } catch (...) {
    return tenon::core::fail_escaped(err, "[" + name + "] its decomposition");
  }
};

namespace tenon::core {
using Operator = ::tenon_op;
}  // namespace tenon::core
