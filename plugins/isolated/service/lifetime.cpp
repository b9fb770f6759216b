// SPDX-License-Identifier: Apache-2.0
// From load() to the end of the process.
#include <stdlib.h>

#include <cmath>
#include <exception>
#include <new>
#include <tenon/tensor.hpp>

#include "service/proxy.hpp"

namespace tenon::isolated {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDefaultDeadline = 300 * kSecond;
constexpr uint64_t kExitTimeout = 5 * kSecond;

// All that were loaded and may still be called. Those that have ended go with the next load().
struct Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<Proxy>> proxies;
};
Loaded& loaded() {
  static auto* instance = new Loaded;  // outlives static destructors
  return *instance;
}

tenon_status default_deadline(uint64_t* ns, tenon_err* err) {
  const char* text = secure_getenv("TENON_ISOLATED_DEADLINE");
  if (!text || !*text) {
    *ns = kDefaultDeadline;
    return TENON_OK;
  }
  char* end;
  const double seconds = strtod(text, &end);
  constexpr double kMax = 1e9;
  if (*end || !(seconds > 0 && seconds <= kMax))
    return fail(
        err, TENON_INVALID_ARGUMENT,
        std::string("TENON_ISOLATED_DEADLINE: expected a number of seconds, got '") + text + "'");
  *ns = static_cast<uint64_t>(seconds * 1e9);
  return TENON_OK;
}

// Ask the process to unload the plugin and exit; insist if it does not.
void end_process(Connection& connection) {
  if (is_forked_child()) return;
  if (connection.is_usable()) {
    Request call(connection);
    call.run(Command::kStop, nullptr);
  }
  Process& process = connection.process();
  if (process.wait_gone(kExitTimeout)) return;
  process.end("was ended");
  process.wait_gone(kExitTimeout);
}

// With proxy.lifetime held.
void end_if_unused(Proxy& proxy) {
  if (!proxy.is_stopping || proxy.open_devices > 0 || proxy.has_ended) return;
  end_process(proxy.connection);
  proxy.has_ended = true;
}

std::vector<std::unique_ptr<Proxy>> take_ended(Loaded& all) {
  std::vector<std::unique_ptr<Proxy>> ended;
  for (auto& proxy : all.proxies) {
    std::lock_guard lock(proxy->lifetime);
    if (!proxy->has_ended) continue;
    give_slots_back(*proxy);
    ended.push_back(std::move(proxy));
  }
  std::erase(all.proxies, nullptr);
  return ended;
}

tenon_status describe(Proxy& proxy, const char* path, const char* folders, tenon_err* err) {
  proxy.connection.set_name(path);
  Request call(proxy.connection);
  call.message().put_text(path);
  call.message().put_text(folders ? folders : "");
  if (const tenon_status status = call.run(Command::kLoad, err); status != TENON_OK) {
    constexpr std::string_view kContext = "isolated";
    host->err_context(err, kContext.data(), kContext.size());
    return status;
  }
  if (!read_description(call.answer(), &proxy.description)) return call.fail_answer(err);
  proxy.connection.set_name("plugin " + proxy.description.name + " " + proxy.description.version);
  return TENON_OK;
}

tenon_status publish(Proxy& proxy, const char* path, tenon_err* err) {
  const std::string origin =
      std::string(path) + ", isolated process " + std::to_string(proxy.connection.process().id());
  if (const tenon_status status = build_tables(proxy, err); status != TENON_OK) return status;
  if (const tenon_status status = host->plugin_attach(&proxy.plugin, origin.c_str(), err);
      status != TENON_OK)
    return status;
  for (uint32_t kind = 0; kind < host->device_kind_count(); ++kind) {
    const char* name = host->device_kind_name(kind);
    if (name && proxy.description.kind == name) proxy.kind = kind;
  }
  return TENON_OK;
}

}  // namespace

tenon_status stop_proxy(Proxy& proxy, tenon_err*) {
  std::lock_guard lock(proxy.lifetime);
  proxy.is_stopping = true;
  end_if_unused(proxy);
  return TENON_OK;
}

void close_one_device(Proxy& proxy) {
  std::lock_guard lock(proxy.lifetime);
  --proxy.open_devices;
  end_if_unused(proxy);
}

tenon_status load_isolated(const tenon_isolated_request* request, tenon_err* err) try {
  if (!request || request->struct_size < sizeof *request)
    return fail(err, TENON_INVALID_ARGUMENT,
                "isolated: expected struct_size = sizeof(tenon_isolated_request)");
  const char* path = request->path;
  uint64_t deadline_ns = request->deadline_ns;
  if (!path || !*path)
    return fail(err, TENON_INVALID_ARGUMENT, "isolated: expected the path of a plugin");
  if (is_forked_child())
    return fail(err, TENON_UNAVAILABLE,
                "isolated: a forked child cannot load plugins; start it with spawn");
  if (deadline_ns == 0)
    if (const tenon_status status = default_deadline(&deadline_ns, err); status != TENON_OK)
      return status;

  Loaded& all = loaded();
  std::lock_guard lock(all.mutex);
  // Freed when this function ends. By then the host, which loads and unloads one plugin at a time,
  // has finished with them: it has attached another since.
  auto ended = take_ended(all);
  std::shared_ptr<Process> process = Process::start(err);
  if (!process) {
    for (auto& proxy : ended) all.proxies.push_back(std::move(proxy));
    return err ? host->err_code(err) : TENON_UNAVAILABLE;
  }
  auto proxy = std::make_unique<Proxy>(std::move(process), deadline_ns);
  tenon_status status = describe(*proxy, path, request->folders, err);
  if (status == TENON_OK) status = publish(*proxy, path, err);
  if (status != TENON_OK) {
    end_process(proxy->connection);
    give_slots_back(*proxy);
    for (auto& old : ended) all.proxies.push_back(std::move(old));
    return status;
  }
  all.proxies.push_back(std::move(proxy));
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
} catch (const std::exception& error) {
  return fail(err, TENON_INTERNAL, std::string("isolated: ") + error.what());
}

}  // namespace tenon::isolated
