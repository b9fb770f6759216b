// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <tenon/services/autotune.h>
#include <tenon/error.hpp>

#include <algorithm>
#include <atomic>
#include <memory>

#include "choices.hpp"

namespace tenon::autotune {

int32_t layer = -1;
constinit thread_local ThreadState state;
uint32_t default_flags = 0;

namespace {

std::atomic<uint64_t> clears{0};

// A small table for each thread, indexed by hashes: most calls find their choice here.
struct Slot {
  uint64_t hash;
  uint64_t generation;
  const void* handle;
};
constexpr uint64_t kSlots = 512;
constexpr uint32_t kMaxParams = 32;  // of an operator
// On the heap: there is little room for variables of threads in a library that is opened late.
thread_local std::unique_ptr<Slot[]> slots;

Slot& slot_of(uint64_t hash) {
  if (!slots) slots = std::make_unique<Slot[]>(kSlots);
  return slots[hash % kSlots];
}

class Measuring {
 public:
  Measuring() { state.is_measuring = true; }
  ~Measuring() { state.is_measuring = false; }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;
};

// Never 0, which is what an empty slot holds.
uint64_t generation() {
  return (candidates()->generation() << 20) + clears.load(std::memory_order_relaxed) + 1;
}

const void* find_handle(const Call& call, const tenon_value* outs) {
  const CallHash hash = hash_call(call.op, call.args, call.nargs, outs, call.nouts);
  if (hash.device == TENON_DEVICE_NONE) return nullptr;
  const uint64_t now = generation();
  for (uint64_t known : {hash.dtypes, hash.call})
    if (const Slot& slot = slot_of(known); slot.hash == known && slot.generation == now)
      return slot.handle;
  Call on_device = call;
  on_device.device = hash.device;
  Measuring own;
  const uint32_t flags = state.has_flags ? state.flags : default_flags;
  const bool may_measure = flags & TENON_AUTOTUNE_MEASURE;
  const Choice choice = choose(on_device, hash, outs, may_measure);
  if (choice.is_final) {
    const uint64_t key = choice.is_single ? hash.dtypes : hash.call;
    slot_of(key) = {.hash = key, .generation = now, .handle = choice.handle};
  }
  return choice.handle;
}

// A call by the chosen kernel. Where that refuses it, as a library may refuse an algorithm that an old file names, the
// dispatcher's own choice runs it, now and later.
tenon_status call_chosen(const Call& call, const void* handle, tenon_value* outs, tenon_err* err) {
  tenon_value kept[kMaxParams];  // a call may rewrite its arguments
  const bool can_repeat = call.nargs <= kMaxParams;
  if (can_repeat) std::copy_n(call.args, call.nargs, kept);
  const tenon_status status =
      candidates()->call(call.layer, call.op, call.args, call.nargs, outs, call.nouts, handle, err);
  if (status != TENON_UNSUPPORTED || !can_repeat) return status;
  std::copy_n(kept, call.nargs, call.args);
  const tenon_status given_up = guarded(err, [&] {
    const CallHash hash = hash_call(call.op, call.args, call.nargs, outs, call.nouts);
    Call on_device = call;
    on_device.device = hash.device;
    give_up(on_device, hash, outs, err ? host->err_text(err) : "");
    slot_of(hash.call) = {.hash = hash.call, .generation = generation(), .handle = nullptr};
    if (err) host->err_clear(err);
  });
  if (given_up != TENON_OK) return given_up;
  return host->op_call_below(call.layer, call.op, call.args, call.nargs, outs, call.nouts, err);
}

}  // namespace

void forget_choices_of_threads() { clears.fetch_add(1, std::memory_order_relaxed); }

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const void* handle = nullptr;
  const Call call{.layer = layer,
                  .op = op,
                  .args = args,
                  .nargs = nargs,
                  .nouts = nouts,
                  .device = TENON_DEVICE_NONE};
  if (!state.is_measuring) {
    const tenon_status status = guarded(err, [&] { handle = find_handle(call, outs); });
    if (status != TENON_OK) return status;
  }
  return handle ? call_chosen(call, handle, outs, err)
                : host->op_call_below(layer, op, args, nargs, outs, nouts, err);
}

}  // namespace tenon::autotune
