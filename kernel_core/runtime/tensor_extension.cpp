// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/tensor_extension.hpp"

#include <bit>
#include <mutex>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/owner.hpp"

namespace tenon::core {
namespace {

struct Slot {
  std::string name;
  std::atomic<tenon_drop_fn> drop{nullptr};
  const void* owner = nullptr;  // the plugin that was starting, if one was
  std::atomic<bool> is_used{false};
};
Slot slot_table[kExtensionSlots];
int32_t slot_count = kBaseSlot + 1;
std::mutex slot_mutex;

constexpr uint32_t kOnHeap = ((1u << kExtensionSlots) - 1) & ~((1u << kInlineExtensions) - 1);

void*& extension(const TensorImpl* tensor, int32_t slot) {
  if (slot < kInlineExtensions) return const_cast<TensorImpl*>(tensor)->extensions[slot];
  return tensor->more_extensions[slot - kInlineExtensions];
}

}  // namespace

void drop_extensions(TensorImpl* tensor) noexcept {
  for (uint32_t rest = tensor->has_extensions & ~(1u << kBaseSlot); rest; rest &= rest - 1) {
    int32_t slot = std::countr_zero(rest);
    if (tenon_drop_fn drop = slot_table[slot].drop.load(std::memory_order_acquire))
      drop(extension(tensor, slot));
  }
  if (tensor->has_extensions & kOnHeap) delete[] tensor->more_extensions;
  tensor->has_extensions = 0;
}

std::vector<std::string> used_extension_slots(const void* owner) {
  std::vector<std::string> names;
  std::lock_guard lock(slot_mutex);
  for (const Slot& slot : slot_table)
    if (slot.owner == owner && slot.is_used.load(std::memory_order_relaxed))
      names.push_back(slot.name);
  return names;
}

namespace slots {

int32_t ext_register(const char* name, tenon_drop_fn drop) {
  if (!name) return -1;
  std::lock_guard lock(slot_mutex);
  // A service that is loaded again finds its slot: tensors may still carry values in it.
  for (int32_t slot = kBaseSlot + 1; slot < slot_count; ++slot)
    if (slot_table[slot].name == name) {
      slot_table[slot].drop.store(drop, std::memory_order_release);
      slot_table[slot].owner = starting_plugin;
      return slot;
    }
  if (slot_count == kExtensionSlots) return -1;
  slot_table[slot_count].name = name;
  slot_table[slot_count].owner = starting_plugin;
  slot_table[slot_count].drop.store(drop, std::memory_order_release);
  return slot_count++;
}

void* ext_get(const tenon_tensor* tensor, int32_t slot) {
  const TensorImpl* self = impl(tensor);
  return self->has_extensions & (1u << slot) ? extension(self, slot) : nullptr;
}

void ext_set(tenon_tensor* tensor, int32_t slot, void* value) {
  TensorImpl* self = impl(tensor);
  const bool had_heap = self->has_extensions & kOnHeap;
  if (!value) {
    self->has_extensions &= static_cast<uint16_t>(~(1u << slot));
    if (had_heap && !(self->has_extensions & kOnHeap)) delete[] self->more_extensions;
    return;
  }
  if (slot >= kInlineExtensions && !had_heap)
    self->more_extensions = new void*[kExtensionSlots - kInlineExtensions];
  extension(self, slot) = value;
  self->has_extensions |= static_cast<uint16_t>(1u << slot);
  std::atomic<bool>& is_used = slot_table[slot].is_used;
  if (!is_used.load(std::memory_order_relaxed)) is_used.store(true, std::memory_order_relaxed);
}

}  // namespace slots
}  // namespace tenon::core
