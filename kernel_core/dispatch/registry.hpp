// SPDX-License-Identifier: Apache-2.0
// The operator table: what plugins registered, and which kernel serves which cell.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

// A plugin's tables after validation: full-size copies that live until registry_remove.
struct PluginTable {
  std::string name;         // of the plugin, for messages
  std::string device_kind;  // kernels with device == NULL are for this kind; empty: none
  std::span<const tenon_op_def> ops;
  std::span<const tenon_kernel_def> kernels;
  std::string origin = name;                     // "acme 1.4.2 (/path/libtenon_acme.so)"
  std::span<const std::string> namespaces = {};  // its own operators' ...
  bool needs_consent = false;                    // ... for kernels of others' on others' devices
  bool is_optional = false;                      // those kernels run only where they are chosen
};

// Add every operator and kernel of a plugin, or none. A second definition of an operator with the
// same schema hash is ignored; with another hash it refuses the plugin, naming both origins.
// Kernels whose operator or device kind is not known yet wait for it.
tenon_status registry_add(const PluginTable& table, const void* owner, tenon_err* err);

// Take everything of `owner` out again. An operator it defined goes on with the equal definition of
// another plugin; without one it stays as a name until a plugin defines it: ids are never reused.
void registry_remove(const void* owner);

// Use or hold back the overrides of a plugin, loaded or not; "*": of every one that was not named.
void allow_overrides(const std::string& plugin, bool allowed);

// Hold back kernels whose results may differ from run to run (TENON_KERNEL_NONDETERMINISTIC): what they
// would serve is lowered or run on the host.
void set_deterministic(bool on);
bool is_deterministic();

// What there is to say about a plugin's kernels besides their number.
struct KernelReport {
  uint32_t overrides = 0, held_back = 0;
  std::vector<std::string> unknown_operators;  // kernels of operators that are not defined
};
KernelReport report_kernels(const void* owner);

// NULL if unknown. "add" is short for "tenon::add".
Operator* find_operator(std::string_view name);
uint32_t operator_count();
Operator* operator_at(uint32_t id);

// The operators that carry TENON_OP_CONVERT and TENON_OP_MATERIALIZE; NULL before one is loaded.
Operator* convert_operator();
Operator* materialize_operator();

// Whether the dispatcher uses a kernel: an optional one waits until the user names its plugin, an
// override of a plugin that is not Tenon's is held back until then, one that is not deterministic
// while the user wants results that are.
enum class KernelState : uint8_t { kUsed, kOptional, kHeldBack };

// The kernels of a cell that are in this state, best score first.
std::vector<const Kernel*> kernels_for(const Operator& op, uint32_t device_kind, int32_t dtype,
                                       KernelState state = KernelState::kUsed);

// The same as answers that a call can be given. They are never freed.
std::vector<const Resolution*> resolutions_for(Operator& op, uint32_t device_kind, int32_t dtype,
                                               KernelState state);

// Counts the changes after which another kernel may serve a call.
uint64_t kernel_generation();

// Every answer that was ever given for an operator on a device kind, candidates included: they
// count calls, and cells forget them when a plugin comes or goes.
std::vector<const Resolution*> answers_for(const Operator& op, uint32_t device_kind);

// Decide what serves a cell and publish the answer. Never NULL.
const Resolution* resolve(Operator& op, uint32_t device_kind, int32_t dtype);

}  // namespace tenon::core
