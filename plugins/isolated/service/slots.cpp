// SPDX-License-Identifier: Apache-2.0
// Functions that are given nothing to tell one proxy from another by: one set for each slot.
#include <array>
#include <tenon/tensor.hpp>
#include <utility>

#include "service/proxy.hpp"

namespace tenon::isolated {
namespace {

std::array<std::atomic<Proxy*>, kMaxProxies> slots{};

tenon_status enumerate(Proxy& proxy, tenon_device_info* out, uint32_t capacity, uint32_t* count) {
  const auto& devices = proxy.description.devices;
  for (uint32_t i = 0; i < capacity && i < devices.size(); ++i) out[i] = devices[i];
  *count = static_cast<uint32_t>(devices.size());
  return TENON_OK;
}

tenon_status open(Proxy& proxy, uint32_t index, tenon_device* out, tenon_err* err) {
  Request call(proxy.connection);
  call.message().put(index);
  const tenon_status status = call.run(Command::kOpen, err);
  if (status != TENON_OK) return status;
  std::lock_guard lock(proxy.lifetime);
  ++proxy.open_devices;
  *out = &proxy.devices[index];
  return TENON_OK;
}

// After a failed unload: all goes on.
tenon_status start(Proxy& proxy) {
  std::lock_guard lock(proxy.lifetime);
  proxy.is_stopping = false;
  return TENON_OK;
}

template <uint32_t kSlot>
struct Functions {
  // Run with the slot's proxy. The host calls none of these before the slot is taken.
  static Proxy& proxy() { return *slots[kSlot].load(std::memory_order_acquire); }

  static tenon_status enumerate_slot(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                                     tenon_err*) {
    return enumerate(proxy(), out, capacity, count);
  }
  static tenon_status open_slot(uint32_t index, tenon_device* out, tenon_err* err) {
    return open(proxy(), index, out, err);
  }
  static tenon_status start_slot(const tenon_host*, tenon_err*) { return start(proxy()); }
  static tenon_status stop_slot(tenon_err* err) { return stop_proxy(proxy(), err); }
};

template <uint32_t kSlot>
void fill_tables(Proxy& proxy) {
  proxy.device.enumerate = Functions<kSlot>::enumerate_slot;
  proxy.device.open = Functions<kSlot>::open_slot;
  proxy.plugin.start = Functions<kSlot>::start_slot;
  proxy.plugin.stop = Functions<kSlot>::stop_slot;
}

template <uint32_t... kSlot>
constexpr std::array<void (*)(Proxy&), kMaxProxies> make_fillers(
    std::integer_sequence<uint32_t, kSlot...>) {
  return {fill_tables<kSlot>...};
}
constexpr auto kFillers = make_fillers(std::make_integer_sequence<uint32_t, kMaxProxies>());

tenon_status take_slot(Proxy& proxy, tenon_err* err) {
  for (uint32_t slot = 0; slot < kMaxProxies; ++slot) {
    Proxy* expected = nullptr;
    if (!slots[slot].compare_exchange_strong(expected, &proxy)) continue;
    proxy.slot = slot;
    kFillers[slot](proxy);
    return TENON_OK;
  }
  return fail(err, TENON_OUT_OF_RANGE,
              "isolated: expected at most " + std::to_string(kMaxProxies) +
                  " isolated plugins at one time; unload one");
}

void fill_plugin_table(Proxy& proxy) {
  tenon_plugin& table = proxy.plugin;
  const Description& description = proxy.description;
  table.struct_size = sizeof table;
  table.revision = TENON_ABI_REVISION;
  table.name = description.name.c_str();
  table.version = description.version.c_str();
  table.vendor = description.vendor.c_str();
  table.device = &proxy.device;
  table.op_size = sizeof(tenon_op_def);
  table.kernels = proxy.kernels.data();
  table.nkernels = static_cast<uint32_t>(proxy.kernels.size());
  table.kernel_size = sizeof(tenon_kernel_def);
}

}  // namespace

tenon_status build_tables(Proxy& proxy, tenon_err* err) {
  for (uint32_t i = 0; i < proxy.description.devices.size(); ++i)
    proxy.devices.push_back({&proxy, i});
  if (const tenon_status status = take_slot(proxy, err); status != TENON_OK) return status;
  if (const tenon_status status = build_kernels(proxy, err); status != TENON_OK) return status;
  fill_device_table(proxy);
  fill_plugin_table(proxy);
  return TENON_OK;
}

void give_slots_back(Proxy& proxy) {
  give_decliners_back(proxy);
  if (proxy.slot < kMaxProxies) slots[proxy.slot].store(nullptr, std::memory_order_release);
  proxy.slot = kMaxProxies;
}

}  // namespace tenon::isolated
