// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace tenon::kernel_c {
namespace {

// One place for every tenon_device_id there can be; untouched pages cost nothing.
std::atomic<Device*> devices[65536];
std::mutex opening;

// For testing the path of graphics processors on a processor, and the other way round.
void override_flags(tenon_compile_limits& limits) {
  const char* wish = std::getenv("TENON_KERNEL_C_HOST_LIKE");
  if (!wish || !*wish) return;
  limits.flags &= ~uint32_t{TENON_COMPILE_HOST_LIKE};
  if (*wish == '1') limits.flags |= TENON_COMPILE_HOST_LIKE;
}

tenon_status open_device(tenon_device_id id, Device** out, tenon_err* err) {
  const void* table;
  tenon_device handle;
  tenon_status status = host->device_group_borrow(id, TENON_GROUP_COMPILE, &table, &handle, err);
  if (status != TENON_OK) return status;
  auto* device =
      new (std::nothrow) Device(id, handle, static_cast<const tenon_compile_api*>(table));
  if (!device) {
    host->device_group_return(id, TENON_GROUP_COMPILE);
    return fail(err, TENON_OUT_OF_MEMORY, "no memory for the list of programs");
  }
  device->limits.struct_size = sizeof(tenon_compile_limits);
  status = device->api->limits(handle, &device->limits, err);
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  if (status == TENON_OK) status = host->device_info(id, &info, err);
  if (status == TENON_OK && device->limits.max_group_size < 64)
    status = fail(err, TENON_INTERNAL,
                  "compile limits: expected max_group_size of at least 64, got " +
                      std::to_string(device->limits.max_group_size));
  if (status != TENON_OK) {
    delete device;
    host->device_group_return(id, TENON_GROUP_COMPILE);
    return status;
  }
  override_flags(device->limits);
  device->opaque_memory = info.flags & TENON_DEVICE_OPAQUE_MEMORY;
  *out = device;
  return TENON_OK;
}

}  // namespace

Device::~Device() {
  for (auto& first : buckets_) {
    Program* program = first.load(std::memory_order_acquire);
    while (program) {
      Program* next = program->next;
      api->program_destroy(handle, program->program);
      delete program;
      program = next;
    }
  }
}

std::atomic<Device::Program*>& Device::bucket(const ProgramKey& key) {
  uint64_t hash = (reinterpret_cast<uintptr_t>(key.family) >> 3) * 0x9e3779b97f4a7c15u ^
                  key.variant * 0xc2b2ae3d27d4eb4fu;
  return buckets_[(hash ^ hash >> 29) % kBuckets];
}

const Device::Program* Device::find(const ProgramKey& key) {
  const Program* program = bucket(key).load(std::memory_order_acquire);
  while (program && program->key != key) program = program->next;
  return program;
}

tenon_status Device::compile(const ProgramKey& key, Source (*make)(const void*), const void* user,
                             tenon_kernel* out, tenon_err* err) {
  std::lock_guard lock(compiling_);  // one at a time, so that no program is compiled twice
  const Program* known = find(key);
  if (!known) try {
      const Source source = make(user);
      auto program = std::make_unique<Program>(Program{key, nullptr, nullptr, nullptr});
      const std::string name = "tenon/" + source.name;
      const tenon_program_request request = {.struct_size = sizeof request,
                                             .reserved = 0,
                                             .must_understand = 0,
                                             .name = name.c_str(),
                                             .source = source.text.data(),
                                             .source_bytes = source.text.size()};
      tenon_status status = api->program_create(handle, &request, &program->program, err);
      if (status != TENON_OK) return status;
      status = api->program_kernel(handle, program->program, kernel_name(source.name).c_str(),
                                   &program->kernel, err);
      if (status != TENON_OK) {
        api->program_destroy(handle, program->program);
        return status;
      }
      std::atomic<Program*>& first = bucket(key);
      program->next = first.load(std::memory_order_relaxed);
      known = program.get();
      first.store(program.release(), std::memory_order_release);
    } catch (const std::bad_alloc&) {
      return fail(err, TENON_OUT_OF_MEMORY, "no memory for the source of a program");
    }
  *out = known->kernel;
  return TENON_OK;
}

tenon_status device_of(const tenon_tensor* tensor, Device** out, tenon_err* err) {
  std::atomic<Device*>& place = devices[tensor->device];
  *out = place.load(std::memory_order_acquire);
  if (*out) return TENON_OK;
  std::lock_guard lock(opening);
  *out = place.load(std::memory_order_acquire);
  if (*out) return TENON_OK;
  tenon_status status = open_device(tensor->device, out, err);
  if (status == TENON_OK) place.store(*out, std::memory_order_release);
  return status;
}

void close_devices() {
  std::lock_guard lock(opening);
  for (auto& place : devices) {
    Device* device = place.exchange(nullptr);
    if (!device) continue;
    const tenon_device_id id = device->id;
    delete device;
    host->device_group_return(id, TENON_GROUP_COMPILE);
  }
}

}  // namespace tenon::kernel_c
