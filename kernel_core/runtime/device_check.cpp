// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/device_check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {
namespace {

struct Member {
  const char* name;
  size_t offset;
};

#define TENON_MEMBER(table, name) \
  Member { #name, offsetof(table, name) }
constexpr Member kRequired[] = {
    TENON_MEMBER(tenon_device_api, enumerate), TENON_MEMBER(tenon_device_api, open),
    TENON_MEMBER(tenon_device_api, close),     TENON_MEMBER(tenon_device_api, alloc),
    TENON_MEMBER(tenon_device_api, free),      TENON_MEMBER(tenon_device_api, copy),
    TENON_MEMBER(tenon_device_api, fill),      TENON_MEMBER(tenon_device_api, sync),
};
#undef TENON_MEMBER

// NULL if every member lies inside the table and is set; otherwise the name of the first that does
// not.
template <size_t N>
const char* first_missing(const void* table, uint32_t struct_size, const Member (&members)[N]) {
  for (const Member& member : members) {
    if (member.offset + sizeof(void*) > struct_size) return member.name;
    void* value;
    std::memcpy(&value, static_cast<const char*>(table) + member.offset, sizeof value);
    if (!value) return member.name;
  }
  return nullptr;
}

void terminate(char* text, size_t size) { text[size - 1] = '\0'; }

}  // namespace

bool is_kind_name(std::string_view text) {
  if (text.empty() || text.size() > 16 || text[0] < 'a' || text[0] > 'z') return false;
  for (char c : text) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

namespace {

constexpr const char* kGroupFunctions[TENON_GROUP_COUNT] = {
    "stream_create stream_destroy event_create event_destroy event_record stream_wait event_query event_sync",
    "pool_alloc pool_free pool_trim pool_usage",
    "capture_begin capture_end graph_launch graph_destroy",
    "profile_start profile_stop profile_drain clock_pair",
    "comm_id_create comm_create comm_destroy comm_abort all_reduce all_gather reduce_scatter broadcast send recv",
    "ipc_export ipc_open ipc_close",
    "quiesce",
    "limits program_create program_destroy program_kernel kernel_launch",
};

}  // namespace

const DeviceGroup kDeviceGroups[TENON_GROUP_COUNT] = {
#define TENON_GROUP_ENTRY(number, NAME, member, type) \
  {#member, offsetof(tenon_device_api, member), sizeof(type), kGroupFunctions[number]},
    TENON_DEVICE_GROUPS(TENON_GROUP_ENTRY)
#undef TENON_GROUP_ENTRY
};

const GroupHead* find_group(const tenon_device_api* api, const DeviceGroup& group) {
  if (group.member + sizeof(void*) > api->struct_size) return nullptr;
  const GroupHead* table;
  std::memcpy(&table, reinterpret_cast<const char*>(api) + group.member, sizeof table);
  return table;
}

namespace {

// A group is functions behind its head, and every one is needed.
tenon_status check_group(const tenon_device_api* api, const DeviceGroup& group, tenon_err* err) {
  const GroupHead* table = find_group(api, group);
  if (!table) return TENON_OK;
  std::string_view names = group.functions;
  for (size_t offset = sizeof(GroupHead); offset < group.size; offset += sizeof(void*)) {
    std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    void* function = nullptr;
    if (offset + sizeof function <= table->struct_size)
      std::memcpy(&function, reinterpret_cast<const char*>(table) + offset, sizeof function);
    if (!function)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "device kind '%s': the optional group `%s` lacks `%.*s`; provide all of %s, or leave the "
                  "group NULL",
                  api->kind, group.name, static_cast<int>(name.size()), name.data(), group.functions);
  }
  return TENON_OK;
}

}  // namespace

tenon_status check_device_api(const tenon_device_api* api, tenon_err* err) {
  if (!api) return fail(err, TENON_INVALID_ARGUMENT, "expected a device table, got NULL");
  constexpr size_t kHead = offsetof(tenon_device_api, enumerate);
  if (api->struct_size < kHead || !api->kind) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "device table: expected struct_size >= %zu and a kind name, got struct_size %u and "
                "kind %s; fill struct_size with sizeof(tenon_device_api)",
                kHead, api->struct_size, api->struct_size < kHead ? "unread" : "NULL");
  }
  // A plugin is allowed 16 characters; look no further than one more for the end.
  size_t length = strnlen(api->kind, 17);
  if (!is_kind_name({api->kind, length})) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "device kind: expected a name matching [a-z][a-z0-9_]{0,15}, got '%.*s'",
                static_cast<int>(length), api->kind);
  }
  if (api->revision <= TENON_ABI_REVISION && api->features != 0) {
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "device kind '%s': revision %u defines no feature bits, got features 0x%llx; write 0",
        api->kind, api->revision, static_cast<unsigned long long>(api->features));
  }
  if (const char* missing = first_missing(api, api->struct_size, kRequired)) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "device kind '%s': the required function `%s` is missing; a device table needs "
                "enumerate, open, close, alloc, free, copy, fill and sync",
                api->kind, missing);
  }
  for (const DeviceGroup& group : kDeviceGroups) TENON_TRY(check_group(api, group, err));
  if (find_group(api, kDeviceGroups[TENON_GROUP_GRAPH]) && !find_group(api, kDeviceGroups[TENON_GROUP_ASYNC]))
    return fail(err, TENON_INVALID_ARGUMENT,
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
  if (count > kMaxDevicesPerKind) {
    return fail(err, TENON_INTERNAL,
                "%s > enumerate: expected at most %u devices, got %u; this is a bug in the plugin",
                api->kind, kMaxDevicesPerKind, count);
  }
  infos.resize(count);
  for (tenon_device_info& info : infos) {
    info.struct_size = sizeof info;
    terminate(info.name, sizeof info.name);
    terminate(info.arch, sizeof info.arch);
    terminate(info.bus_id, sizeof info.bus_id);
    constexpr uint32_t kBoth = TENON_DEVICE_HOST_MEMORY | TENON_DEVICE_OPAQUE_MEMORY;
    if ((info.flags & kBoth) == kBoth) {
      return fail(err, TENON_INVALID_ARGUMENT,
                  "%s > enumerate: a device cannot have both HOST_MEMORY and OPAQUE_MEMORY",
                  api->kind);
    }
  }
  *out = std::move(infos);
  return TENON_OK;
}

}  // namespace tenon::core
