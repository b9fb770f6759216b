// SPDX-License-Identifier: Apache-2.0
// Into the process and out again.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "subject/device.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr int kCycles = 100, kWarmup = 10;
constexpr double kBudget = 5;            // seconds for all cycles, on a device that is slow to open
constexpr int64_t kMaxGrowth = 4 << 20;  // bytes over all cycles

bool can_unload(const tenon_plugin& table) {
  return table.struct_size >= offsetof(tenon_plugin, stop) + sizeof(void*) && table.stop;
}

// Names that no device can have: a program that has loaded the CPU, as all do, refuses them.
bool is_taken(const std::string& kind) { return kind == "cpu" || kind == "meta"; }

// The host's own way in, with all its questions.
void load(Session& session) {
  const tenon_host* host = real_host();
  Error error;
  {
    Plugin plugin(session);
    const std::string kind = plugin.has_device() ? plugin.api().kind : "";
    session.require(
        !is_taken(kind), "a kind of device that is the plugin's own",
        "`" + kind + "`, which Tenon has itself: no program could load the plugin",
        "choose another tenon_device_api.kind, and name it in tenon_add_plugin(DEVICES)");
  }
  session.step("host->plugin_load");
  tenon_status status = host->plugin_load(session.path().c_str(), error);
  session.require(status == TENON_OK, "the host accepts the plugin", describe(status, error));
  Plugin plugin(session);
  if (!plugin.has_device()) return session.note("the plugin provides no device");
  if (Device::enumerate(plugin).empty())
    return session.note("the plugin finds no device on this machine");
  std::string name = plugin.api().kind;
  session.step("open " + name + ":0");
  tenon_device_id id = 0;
  status = host->device_find((name + ":0").c_str(), &id, error);
  session.expect(status == TENON_OK, name + ":0 opens", describe(status, error));
}

void sync_idle(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  session.step("sync of an idle device");
  device.sync();
}

void enumerate_twice(Session& session) {
  Plugin plugin(session);
  const tenon_device_api& api = plugin.api();
  std::vector<tenon_device_info> infos = Device::enumerate(plugin);
  for (size_t i = 0; i < infos.size(); ++i) {
    tenon_device_info& info = infos[i];
    std::string which = text("device ", i);
    auto ends = [](const char* text, size_t size) { return std::memchr(text, 0, size) != nullptr; };
    session.expect(ends(info.name, sizeof info.name) && ends(info.arch, sizeof info.arch) &&
                       ends(info.bus_id, sizeof info.bus_id),
                   which + ": texts that end", "one that does not",
                   "use snprintf, and clear the record first");
    session.expect(info.name[0] != 0, which + ": a name", "an empty one");
    session.expect(info.dl_device_type != 0, which + ": DLPack's device type", "0",
                   "12 (kDLExtDev) where DLPack has no number");
    for (uint64_t word : info.reserved_words)
      session.expect(word == 0, which + ": reserved words are 0", text(word));
  }
  session.step("enumerate once more");
  const std::vector<tenon_device_info> again = Device::enumerate(plugin, Device::Ask::kAgain);
  session.require(again.size() == infos.size(), text(infos.size(), " devices, as before"),
                  text(again.size()));
  for (size_t i = 0; i < infos.size(); ++i) {
    auto differs = [&](const auto& before, const auto& now, const char* what) {
      session.expect(before == now, text("device ", i, ": the same ", what, " each time, ", before),
                     text(now), "programs find a device again by what it says of itself");
    };
    differs(std::string_view(infos[i].name), std::string_view(again[i].name), "name");
    differs(std::string_view(infos[i].arch), std::string_view(again[i].arch), "arch");
    differs(std::string_view(infos[i].bus_id), std::string_view(again[i].bus_id), "bus_id");
    differs(infos[i].memory_bytes, again[i].memory_bytes, "memory_bytes");
    differs(infos[i].flags, again[i].flags, "flags");
  }
  session.step("enumerate with no room");
  uint32_t count = 0;
  Error error;
  tenon_status status = api.enumerate(nullptr, 0, &count, error);
  session.expect(status == TENON_OK && count == infos.size(),
                 text("with no room, the count alone: ", infos.size()),
                 status == TENON_OK ? text(count) : describe(status, error));
  if (infos.size() < 2) return;
  tenon_device_info two[2];
  std::memset(two, 0x5a, sizeof two);
  two[0].struct_size = two[1].struct_size = sizeof two[0];
  tenon_device_info untouched = two[1];
  status = api.enumerate(two, 1, &count, error);
  session.expect(status == TENON_OK && count == infos.size() &&
                     std::memcmp(&two[1], &untouched, sizeof untouched) == 0,
                 "with room for one, one is written and all are counted",
                 "more was written, or the count differs");
}

// What every program waits for. Time alone fails nothing: it is told.
void slow(Session& session) {
  constexpr double kSlowAlloc = 0.002;
  const auto timed = [](auto&& body) {
    const double start = now();
    body();
    return now() - start;
  };
  auto tell = [&](const char* what, double seconds, const char* who) {
    if (seconds > kSlow) session.warn(text(what, " takes ", seconds, " s: ", who));
  };
  std::unique_ptr<Plugin> plugin;
  tell("loading the library and tenon_plugin_query",
       timed([&] { plugin = std::make_unique<Plugin>(session); }),
       "every program that loads the plugin waits for it");
  if (plugin->has_device()) {
    std::vector<tenon_device_info> infos;
    tell("enumerate", timed([&] { infos = Device::enumerate(*plugin, Device::Ask::kAgain); }),
         "every program that loads the plugin waits for it");
    if (!infos.empty()) {
      std::unique_ptr<Device> device;
      tell("open", timed([&] { device = std::make_unique<Device>(*plugin); }),
           "every program that uses the device waits for it");
      const double alloc = timed([&] { device->alloc(4096); });
      const double again = timed([&] { device->alloc(4096); });
      if (std::min(alloc, again) > kSlowAlloc)
        session.warn(text("alloc and free of 4 KiB take ", again * 1e3,
                          " ms: programs wait for each allocation that the host has not cached"));
      tell("sync of an idle device", timed([&] { device->sync(); }), "programs call it often");
      tell("close", timed([&] { device->close(); }), "programs wait for it at their end");
    }
  }
  if (!can_unload(*plugin->table())) return;
  session.step("stop");
  tell("stop", timed([&] { plugin->table()->stop(Error()); }), "programs wait for it at their end");
}

// Memory of the first opening stays as it is while a second one comes and goes. A plugin may refuse
// the second one; what it must not do is to end the first.
void double_open(Session& session) {
  Plugin plugin(session);
  Device first(plugin);
  Buffer buffer = first.alloc(4096);
  Bytes data = pattern(4096);
  first.put(buffer, 0, data.data(), data.size());
  session.step("open device 0 once more");
  tenon_device again = nullptr;
  Error error;
  if (plugin.api().open(0, &again, error) != TENON_OK) {
    session.note("the plugin refuses to open a device twice: " + error.text());
  } else {
    plugin.api().close(again);
    Device second(plugin);
    Buffer other = second.alloc(4096);
    second.fill(other, 0x11);
    second.sync();
    other.release(nullptr);
    session.step("close the second handle");
  }
  session.step("use the first handle again");
  std::string difference = first_difference(data, first.read(buffer));
  session.expect(difference.empty(), "the first handle works on", difference,
                 "count openings, or keep state in the handle");
}

void unmapped(Session& session) {
  Plugin plugin(session);
  if (!can_unload(*plugin.table()))
    session.absent("the plugin has no `stop`: it stays loaded, as the contract allows");
  if (plugin.has_device() && !Device::enumerate(plugin).empty()) {
    Device device(plugin);
    Buffer buffer = device.alloc(4096);
    device.fill(buffer, 0x42);
    device.sync();
  }
  session.step("stop");
  Error error;
  tenon_status status = plugin.table()->stop(error);
  session.expect(status == TENON_OK, "stop succeeds", describe(status, error));
  plugin.close();
  session.expect(!is_mapped(session.path()), "the library is gone after dlclose",
                 "it is still mapped",
                 "see static.exports and static.gnu_unique; thread-local objects with destructors "
                 "pin a library, too");
}

void one_cycle(Session& session) {
  Plugin plugin(session);
  if (plugin.has_device() && !Device::enumerate(plugin).empty()) {
    Device device(plugin);
    Buffer buffer = device.alloc(1 << 16);
    device.fill(buffer, 0x42);
    device.sync();
  }
  if (const auto* quiesce =
          plugin.has_device() ? plugin.group<tenon_quiesce_api>(TENON_GROUP_QUIESCE) : nullptr) {
    session.step("quiesce");
    Error error;
    tenon_status status = quiesce->quiesce(5'000'000'000ull, error);
    session.require(status == TENON_OK, "quiesce succeeds", describe(status, error));
  }
  session.step("stop");
  Error error;
  tenon_status status = plugin.table()->stop(error);
  session.require(status == TENON_OK, "stop succeeds", describe(status, error));
  plugin.close();
}

void cycles(Session& session) {
  {
    Plugin plugin(session);
    if (!can_unload(*plugin.table())) session.absent("the plugin has no `stop`");
    plugin.table()->stop(Error());
    plugin.close();
  }
  const double start = now();
  one_cycle(session);  // what libraries below it set up once
  const double fits = kBudget / std::max(now() - start, 1e-3);
  const int rounds = std::clamp(static_cast<int>(fits), fits < 2 ? 1 : 2, kCycles);
  // Few rounds: the cycle above was all that there is time for.
  for (int i = 0; i < (rounds > 2 ? std::min(kWarmup, rounds / 2) : 0); ++i) one_cycle(session);
  Holdings before = holdings();
  for (int i = 0; i < rounds; ++i) one_cycle(session);
  int threads = settled_threads(before.threads);
  Holdings after = holdings();
  std::string when = text(" over ", rounds, " times load and unload");
  session.expect(threads <= before.threads, "no threads stay" + when,
                 text(threads - before.threads, " more"), "join them in `stop`");
  session.expect(after.files <= before.files, "no files stay open" + when,
                 text(after.files - before.files, " more"), "close them in `close` and `stop`");
  session.expect(after.memory - before.memory < kMaxGrowth, "no memory stays" + when,
                 text((after.memory - before.memory) >> 10, " KiB more"),
                 "free in `close` what `open` allocated, in `stop` the rest");
}

}  // namespace

const Checks& lifecycle_checks() {
  static const Checks checks = {
      {"lifecycle.load", "The host loads the plugin and opens its first device.",
       "abi.h sections 5 and 7", "the message names the member and what was expected",
       "static.note", load},
      {"lifecycle.describe", "enumerate agrees with itself.", "abi.h section 5, enumerate",
       "fill every record, write no more than `capacity`", "lifecycle.load", enumerate_twice},
      {"lifecycle.sync", "sync of an idle device returns.", "abi.h section 5, sync", "",
       "lifecycle.load", sync_idle},
      {"lifecycle.slow",
       "What each program waits for once is told if it takes more than half a second.",
       "figures only", "", "lifecycle.sync", slow},
      {"lifecycle.double_open", "Opening a device again leaves the first opening alone.",
       "abi.h section 5, open", "", "lifecycle.sync memory.copy_grid", double_open},
      {"lifecycle.unmapped", "The library leaves the process.", "abi.h section 7, stop", "",
       "lifecycle.sync", unmapped},
      {"lifecycle.cycles", "Nothing grows over 100 times load and unload.", "abi.h section 7, stop",
       "", "lifecycle.unmapped", cycles},
  };
  return checks;
}

}  // namespace tenon::kit
