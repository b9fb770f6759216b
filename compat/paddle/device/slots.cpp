// SPDX-License-Identifier: Apache-2.0
// enumerate and open are given nothing to tell one plugin from another by: one pair for each slot.
#include <array>
#include <utility>

#include "device/plugin.hpp"

namespace tenon::paddle {
namespace {

std::array<std::atomic<DevicePlugin*>, kMaxPlugins> plugins{};

template <uint32_t kSlot>
tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err* err) {
  return plugins[kSlot].load()->enumerate(out, capacity, count, err);
}
template <uint32_t kSlot>
tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  return plugins[kSlot].load()->open(index, out, err);
}

struct Functions {
  decltype(tenon_device_api::enumerate) enumerate;
  decltype(tenon_device_api::open) open;
};
template <uint32_t... kSlot>
constexpr std::array<Functions, kMaxPlugins> make_functions(
    std::integer_sequence<uint32_t, kSlot...>) {
  return {Functions{enumerate<kSlot>, open<kSlot>}...};
}
constexpr auto kFunctions = make_functions(std::make_integer_sequence<uint32_t, kMaxPlugins>());

}  // namespace

void fill_slot_functions(DevicePlugin& plugin, uint32_t slot) {
  plugins[slot] = &plugin;
  plugin.device_api_.enumerate = kFunctions[slot].enumerate;
  plugin.device_api_.open = kFunctions[slot].open;
}

}  // namespace tenon::paddle
