// SPDX-License-Identifier: Apache-2.0
#include "subject/guarded.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

struct Tables {
  tenon_plugin plugin{};
  tenon_device_api device{};
#define TENON_KIT_TABLE(number, NAME, member, type) type member{};
  TENON_DEVICE_GROUPS(TENON_KIT_TABLE)
#undef TENON_KIT_TABLE
};

// A function in a table has no pointer of its own to carry, so each member gets a function of its
// own, which remembers what stood there.
template <auto Member>
struct Slot;
template <class Table, class Result, class... Args, Result (*Table::*Member)(Args...)>
struct Slot<Member> {
  static inline Result (*original)(Args...) = nullptr;
  static inline WatchedFunction function;

  static Result call(Args... args) {
    Watch watch(function);
    if constexpr (std::is_same_v<Result, tenon_status>)
      return watch.status(original(args...));
    else
      return original(args...);
  }
  static void put(Table& table, const char* name) {
    if (!(table.*Member)) return;
    original = table.*Member;
    function.name = name;
    table.*Member = call;
  }
};

// The members of the original table, up to the last that this program was compiled with.
template <class Table>
void copy(const Table* from, Table& to) {
  std::memcpy(&to, from, std::min<size_t>(from->struct_size, sizeof to));
  to.struct_size = static_cast<uint32_t>(std::min<size_t>(from->struct_size, sizeof to));
}

#define WATCH(type, member) Slot<&type::member>::put(table, #member)

void watch(tenon_device_api& table) {
  WATCH(tenon_device_api, enumerate);
  WATCH(tenon_device_api, open);
  WATCH(tenon_device_api, close);
  WATCH(tenon_device_api, alloc);
  WATCH(tenon_device_api, free);
  WATCH(tenon_device_api, copy);
  WATCH(tenon_device_api, fill);
  WATCH(tenon_device_api, sync);
}
void watch(tenon_async_api& table) {
  WATCH(tenon_async_api, stream_create);
  WATCH(tenon_async_api, stream_destroy);
  WATCH(tenon_async_api, event_create);
  WATCH(tenon_async_api, event_destroy);
  WATCH(tenon_async_api, event_record);
  WATCH(tenon_async_api, stream_wait);
  WATCH(tenon_async_api, event_query);
  WATCH(tenon_async_api, event_sync);
}
void watch(tenon_pool_api& table) {
  WATCH(tenon_pool_api, pool_alloc);
  WATCH(tenon_pool_api, pool_free);
  WATCH(tenon_pool_api, pool_trim);
  WATCH(tenon_pool_api, pool_usage);
}
void watch(tenon_graph_api& table) {
  WATCH(tenon_graph_api, capture_begin);
  WATCH(tenon_graph_api, capture_end);
  WATCH(tenon_graph_api, graph_launch);
  WATCH(tenon_graph_api, graph_destroy);
}
void watch(tenon_profile_api& table) {
  WATCH(tenon_profile_api, profile_start);
  WATCH(tenon_profile_api, profile_stop);
  WATCH(tenon_profile_api, profile_drain);
  WATCH(tenon_profile_api, clock_pair);
}
void watch(tenon_collective_api& table) {
  WATCH(tenon_collective_api, comm_id_create);
  WATCH(tenon_collective_api, comm_create);
  WATCH(tenon_collective_api, comm_destroy);
  WATCH(tenon_collective_api, comm_abort);
  WATCH(tenon_collective_api, all_reduce);
  WATCH(tenon_collective_api, all_gather);
  WATCH(tenon_collective_api, reduce_scatter);
  WATCH(tenon_collective_api, broadcast);
  WATCH(tenon_collective_api, send);
  WATCH(tenon_collective_api, recv);
}
void watch(tenon_ipc_api& table) {
  WATCH(tenon_ipc_api, ipc_export);
  WATCH(tenon_ipc_api, ipc_open);
  WATCH(tenon_ipc_api, ipc_close);
}
void watch(tenon_quiesce_api& table) { WATCH(tenon_quiesce_api, quiesce); }
void watch(tenon_compile_api& table) {
  WATCH(tenon_compile_api, limits);
  WATCH(tenon_compile_api, program_create);
  WATCH(tenon_compile_api, program_destroy);
  WATCH(tenon_compile_api, program_kernel);
  WATCH(tenon_compile_api, kernel_launch);
}
void watch(tenon_exchange_api& table) {
  WATCH(tenon_exchange_api, transfer);
  WATCH(tenon_exchange_api, reduce);
  WATCH(tenon_exchange_api, comm_split);
  WATCH(tenon_exchange_api, comm_error);
}
void watch(tenon_subgraph_api& table) {
  WATCH(tenon_subgraph_api, claim);
  WATCH(tenon_subgraph_api, executable_create);
  WATCH(tenon_subgraph_api, executable_destroy);
  WATCH(tenon_subgraph_api, executable_run);
}

}  // namespace

const tenon_plugin* guarded(const tenon_plugin& original) {
  Tables* tables = new Tables;
  copy(&original, tables->plugin);
  tenon_plugin& table = tables->plugin;
  WATCH(tenon_plugin, start);
  WATCH(tenon_plugin, stop);
  if (!table.device) return &table;
  copy(table.device, tables->device);
  table.device = &tables->device;
#define TENON_KIT_WATCH(number, NAME, member, type) \
  if (tables->device.member) {                      \
    copy(tables->device.member, tables->member);    \
    watch(tables->member);                          \
    tables->device.member = &tables->member;        \
  }
  TENON_DEVICE_GROUPS(TENON_KIT_WATCH)
#undef TENON_KIT_WATCH
  watch(tables->device);
  return &table;
}

}  // namespace tenon::kit
