// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/device_check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {
namespace {

constexpr const char* kRequired = "enumerate open close alloc free copy fill sync";

constexpr size_t count_names(std::string_view names) {
  return 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ' '));
}

// The first of the functions `names`, which lie side by side in a table from `offset` on, that the
// table does not reach to or has NULL for; empty: it has them all.
std::string first_missing(const void* table, uint32_t struct_size, size_t offset,
                          std::string_view names) {
  while (!names.empty()) {
    std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    void* function = nullptr;
    if (offset + sizeof function <= struct_size)
      std::memcpy(&function, static_cast<const char*>(table) + offset, sizeof function);
    if (!function) return std::string(name);
    offset += sizeof function;
  }
  return "";
}

void terminate(char* text, size_t size) { text[size - 1] = '\0'; }

}  // namespace

bool is_kind_name(std::string_view text) {
  if (text.empty() || text.size() > 16 || text[0] < 'a' || text[0] > 'z') return false;
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

namespace {

constexpr const char* kGroupFunctions[TENON_GROUP_COUNT] = {
    "stream_create stream_destroy event_create event_destroy event_record stream_wait event_query "
    "event_sync",
    "pool_alloc pool_free pool_trim pool_usage",
    "capture_begin capture_end graph_launch graph_destroy",
    "profile_start profile_stop profile_drain clock_pair",
    "comm_id_create comm_create comm_destroy comm_abort all_reduce all_gather reduce_scatter "
    "broadcast send recv",
    "ipc_export ipc_open ipc_close",
    "quiesce",
    "limits program_create program_destroy program_kernel kernel_launch",
    "transfer reduce comm_split comm_error",
    "claim executable_create executable_destroy executable_run",
};

}  // namespace

const DeviceGroup kDeviceGroups[TENON_GROUP_COUNT] = {
#define TENON_GROUP_ENTRY(number, NAME, member, type) \
  {#member, offsetof(tenon_device_api, member), kGroupFunctions[number]},
    TENON_DEVICE_GROUPS(TENON_GROUP_ENTRY)
#undef TENON_GROUP_ENTRY
};

// A function that is not named above would not be checked.
#define TENON_GROUP_NAMED(number, NAME, member, type) \
  static_assert(sizeof(type) ==                       \
                sizeof(GroupHead) + count_names(kGroupFunctions[number]) * sizeof(void*));
TENON_DEVICE_GROUPS(TENON_GROUP_NAMED)
#undef TENON_GROUP_NAMED

const GroupHead* find_group(const tenon_device_api* api, const DeviceGroup& group) {
  if (group.member + sizeof(void*) > api->struct_size) return nullptr;
  const GroupHead* table;
  std::memcpy(&table, reinterpret_cast<const char*>(api) + group.member, sizeof table);
  return table;
}

namespace {

tenon_status check_group(const tenon_device_api* api, const DeviceGroup& group, tenon_err* err) {
  const GroupHead* table = find_group(api, group);
  if (!table) return TENON_OK;
  std::string missing =
      first_missing(table, table->struct_size, sizeof(GroupHead), group.functions);
  if (missing.empty()) return TENON_OK;
  return fail(
      err, TENON_INVALID_ARGUMENT,
      "device kind '%s': the optional group `%s` lacks `%s`; provide all of %s, or leave the "
      "group NULL",
      api->kind, group.name, missing.c_str(), group.functions);
}

}  // namespace

tenon_status check_device_api(const tenon_device_api* api, tenon_err* err) {
  if (!api) return fail(err, TENON_INVALID_ARGUMENT, "expected a device table, got NULL");
  constexpr size_t kHead = offsetof(tenon_device_api, enumerate);
  if (api->struct_size < kHead || !api->kind)
    return fail(err, TENON_INVALID_ARGUMENT,
                "device table: expected struct_size >= %zu and a kind name, got struct_size %u and "
                "kind %s; fill struct_size with sizeof(tenon_device_api)",
                kHead, api->struct_size, api->struct_size < kHead ? "unread" : "NULL");
  // A plugin is allowed 16 characters; look no further than one more for the end.
  size_t length = strnlen(api->kind, 17);
  if (!is_kind_name({api->kind, length}))
    return fail(err, TENON_INVALID_ARGUMENT,
                "device kind: expected a name matching [a-z][a-z0-9_]{0,15}, got '%.*s'",
                static_cast<int>(length), api->kind);
  constexpr uint64_t kKnown =
      TENON_DEVICE_FEATURE_OWN_KERNELS_ONLY | TENON_DEVICE_FEATURE_JOINED_MEMORY;
  if (api->revision <= TENON_ABI_REVISION && api->features & ~kKnown)
    return fail(err, TENON_INVALID_ARGUMENT,
                "device kind '%s': revision %u defines the feature bits 0x%llx, got features "
                "0x%llx; write 0",
                api->kind, api->revision, static_cast<unsigned long long>(kKnown),
                static_cast<unsigned long long>(api->features));
  std::string missing =
      first_missing(api, api->struct_size, offsetof(tenon_device_api, enumerate), kRequired);
  if (!missing.empty())
    return fail(err, TENON_INVALID_ARGUMENT,
                "device kind '%s': the required function `%s` is missing; a device table needs "
                "enumerate, open, close, alloc, free, copy, fill and sync",
                api->kind, missing.c_str());
  for (const DeviceGroup& group : kDeviceGroups) TENON_TRY(check_group(api, group, err));
  if (find_group(api, kDeviceGroups[TENON_GROUP_GRAPH]) &&
      !find_group(api, kDeviceGroups[TENON_GROUP_ASYNC]))
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "device kind '%s': the group `graph` captures streams, so it needs the group `async`",
        api->kind);
  return TENON_OK;
}

tenon_status enumerate_devices(const tenon_device_api* api, std::vector<tenon_device_info>* out,
                               tenon_err* err) {
  std::vector<tenon_device_info> infos(kMaxDevicesPerKind);
  for (tenon_device_info& info : infos) info.struct_size = sizeof info;
  uint32_t count = UINT32_MAX;
  tenon_err local;
  if (!err) err = &local;
  if (tenon_status status = api->enumerate(infos.data(), kMaxDevicesPerKind, &count, err);
      status != TENON_OK) {
    fail(err, status, "failed with code %d and no text", status);
    add_context(err, "%s > enumerate", api->kind);
    return status;
  }
  if (count > kMaxDevicesPerKind)
    return fail(err, TENON_INTERNAL,
                "%s > enumerate: expected at most %u devices, got %u; this is a bug in the plugin",
                api->kind, kMaxDevicesPerKind, count);
  infos.resize(count);
  for (tenon_device_info& info : infos) {
    info.struct_size = sizeof info;
    terminate(info.name, sizeof info.name);
    terminate(info.arch, sizeof info.arch);
    terminate(info.bus_id, sizeof info.bus_id);
    constexpr uint32_t kBoth = TENON_DEVICE_HOST_MEMORY | TENON_DEVICE_OPAQUE_MEMORY;
    if ((info.flags & kBoth) == kBoth)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "%s > enumerate: a device cannot have both HOST_MEMORY and OPAQUE_MEMORY",
                  api->kind);
  }
  *out = std::move(infos);
  return TENON_OK;
}

}  // namespace tenon::core
