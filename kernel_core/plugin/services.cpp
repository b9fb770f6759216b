// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/services.hpp"

#include <atomic>
#include <mutex>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/owner.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {
namespace {

// A list that only grows, so that reading it takes no lock. An entry whose plugin went keeps its
// name and is used again.
struct Service {
  std::string name;
  std::atomic<const void*> table{nullptr};  // NULL: no plugin offers it
  std::atomic<uint32_t> version{0};
  std::atomic<bool> is_handed_out{false};
  const void* owner = nullptr;  // this and below: with the mutex held
  std::string origin;
  Service* next = nullptr;
};

constinit std::atomic<Service*> services{nullptr};
constinit std::mutex services_mutex;
constinit thread_local StartScope* current_scope = nullptr;

Service* find(std::string_view name) {
  for (Service* service = services.load(std::memory_order_acquire); service;
       service = service->next)
    if (service->name == name) return service;
  return nullptr;
}

// With the mutex held.
Service& find_or_add(std::string_view name) {
  if (Service* known = find(name)) return *known;
  auto* service = new Service;  // never freed: readers hold no lock
  service->name = name;
  service->next = services.load(std::memory_order_relaxed);
  services.store(service, std::memory_order_release);
  return *service;
}

template <class Visit>
void for_each_of(const void* owner, Visit&& visit) {
  std::lock_guard lock(services_mutex);
  for (Service* service = services.load(std::memory_order_relaxed); service;
       service = service->next)
    if (service->table.load(std::memory_order_relaxed) && service->owner == owner) visit(*service);
}

}  // namespace

StartScope::StartScope(const void* owner, std::string origin)
    : origin_(std::move(origin)), outer_owner_(starting_plugin), outer_(current_scope) {
  starting_plugin = owner;
  current_scope = this;
}

StartScope::~StartScope() {
  starting_plugin = outer_owner_;
  current_scope = outer_;
}

const std::string& starting_origin() {
  static const std::string& program = *new std::string("the program");
  return current_scope ? current_scope->origin_ : program;
}

std::vector<std::string> services_of(const void* owner) {
  std::vector<std::string> names;
  for_each_of(owner, [&](Service& service) { names.push_back(service.name); });
  return names;
}

std::vector<std::string> services_handed_out(const void* owner) {
  std::vector<std::string> names;
  for_each_of(owner, [&](Service& service) {
    if (service.is_handed_out.load(std::memory_order_relaxed)) names.push_back(service.name);
  });
  return names;
}

void remove_services(const void* owner) {
  for_each_of(owner,
              [](Service& service) { service.table.store(nullptr, std::memory_order_release); });
}

namespace slots {

tenon_status service_register(const char* name, uint32_t version, const void* table,
                              tenon_err* err) try {
  if (!name || !*name || version == 0 || !table)
    return core::fail(
        err, TENON_INVALID_ARGUMENT,
        "a service needs a name, a version from 1 and a table; got name '%s', version %u, "
        "table %p",
        name ? name : "", version, table);
  const std::string& origin = starting_origin();
  std::lock_guard lock(services_mutex);
  Service& service = find_or_add(name);
  if (service.table.load(std::memory_order_relaxed))
    return core::fail(err, TENON_ALREADY_EXISTS,
                      "service '%s' of %s is already offered by %s; unload one of the two", name,
                      origin.c_str(), service.origin.c_str());
  service.owner = starting_plugin;
  service.origin = origin;
  service.is_handed_out.store(false, std::memory_order_relaxed);
  service.version.store(version, std::memory_order_relaxed);
  service.table.store(table, std::memory_order_release);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

const void* service_find(const char* name, uint32_t min_version) {
  Service* service = name ? find(name) : nullptr;
  if (!service) return nullptr;
  const void* table = service->table.load(std::memory_order_acquire);
  if (!table || service->version.load(std::memory_order_relaxed) < min_version) return nullptr;
  if (!service->is_handed_out.load(std::memory_order_relaxed))
    service->is_handed_out.store(true, std::memory_order_relaxed);
  return table;
}

}  // namespace slots
}  // namespace tenon::core
