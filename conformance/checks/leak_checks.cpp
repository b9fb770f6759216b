// SPDX-License-Identifier: Apache-2.0
// Every function of every group, over and over: what is made and destroyed leaves nothing behind.
#include <cstring>

#include "checks/program.hpp"
#include "checks/ranks.hpp"
#include "subject/growth.hpp"
#include "subject/stream.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kBytes = 4096;

bool has_streams(Plugin& plugin) { return plugin.group<tenon_async_api>(TENON_GROUP_ASYNC); }

void copies(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Buffer a = device.alloc(kBytes), b = device.alloc(kBytes);
  Bytes data(kBytes, 7);
  auto loops = [&](tenon_stream stream, const std::string& where) {
    const std::string fix = "free what the call stages or queues once it is done";
    expect_no_growth(session, "copies to the device" + where, fix,
                     [&] { device.put(a, 0, data.data(), kBytes, stream), device.sync(stream); });
    expect_no_growth(session, "copies to the host" + where, fix,
                     [&] { device.get(data.data(), a, 0, kBytes, stream); });
    expect_no_growth(session, "copies on the device" + where, fix,
                     [&] { device.copy(b, 0, a, 0, kBytes, stream), device.sync(stream); });
    expect_no_growth(session, "fills" + where, fix,
                     [&] { device.fill(a, 3, stream), device.sync(stream); });
  };
  loops(nullptr, "");
  if (plugin.known_devices().empty())  // it is quick
    expect_no_growth(session, "calls of enumerate", "", [&] {
      tenon_device_info info{};
      info.struct_size = sizeof info;
      uint32_t count = 0;
      plugin.api().enumerate(&info, 1, &count, Error());
    });
  if (!has_streams(plugin)) return;
  Stream stream(device);
  loops(stream, " on a stream");
}

void pool(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_pool_api>(TENON_GROUP_POOL);
  Device device(plugin);
  auto churn = [&](tenon_stream stream) {
    tenon_alloc_request request{sizeof request, TENON_ALLOC_DEVICE, 0, kBytes, 256, stream};
    void* memory = nullptr;
    uint64_t reserved = 0, used = 0;
    Error error;
    device.check(api.pool_alloc(device.handle(), &request, &memory, error), error, "pool_alloc");
    api.pool_free(device.handle(), memory, kBytes, stream);
    api.pool_usage(device.handle(), &reserved, &used, error);
  };
  const std::string fix = "give the memory back, or to the next caller";
  expect_no_growth(session, "pool_alloc and pool_free", fix, [&] { churn(nullptr); });
  expect_no_growth(session, "pool_alloc, pool_free and pool_trim", fix, [&] {
    uint64_t released = 0;
    churn(nullptr);
    api.pool_trim(device.handle(), 0, &released, Error());
  });
  if (!has_streams(plugin)) return;
  Stream stream(device);
  expect_no_growth(session, "pool_alloc and pool_free on a stream", fix,
                   [&] { churn(stream), device.sync(stream); });
}

void graph(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_graph_api>(TENON_GROUP_GRAPH);
  Device device(plugin);
  Stream stream(device);
  Buffer a = device.alloc(kBytes), b = device.alloc(kBytes);
  auto capture = [&] {
    tenon_graph made = nullptr;
    Error error;
    device.check(api.capture_begin(device.handle(), stream, error), error, "capture_begin");
    device.fill(a, 5, stream);
    device.copy(b, 0, a, 0, kBytes, stream);
    device.check(api.capture_end(device.handle(), stream, &made, error), error, "capture_end");
    return made;
  };
  const tenon_graph kept = capture();
  expect_no_growth(session, "launches of a graph", "free what a launch needs once it has run", [&] {
    Error error;
    device.check(api.graph_launch(device.handle(), kept, stream, error), error, "graph_launch");
    device.sync(stream);
  });
  api.graph_destroy(device.handle(), kept);
  expect_no_growth(session, "captures and graph_destroy", "free all of it in graph_destroy",
                   [&] { api.graph_destroy(device.handle(), capture()); });
}

void profile(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_profile_api>(TENON_GROUP_PROFILE);
  Device device(plugin);
  Buffer buffer = device.alloc(kBytes);
  expect_no_growth(session, "profiles, drained", "free records that were drained", [&] {
    Error error;
    uint64_t host_ns = 0, device_ns = 0;
    device.check(api.profile_start(device.handle(), error), error, "profile_start");
    for (int i = 0; i < 16; ++i) device.fill(buffer, 5);
    device.sync();
    device.check(api.profile_stop(device.handle(), error), error, "profile_stop");
    tenon_profile_record records[8];
    for (uint32_t count = 1; count != 0;)
      device.check(api.profile_drain(device.handle(), records, sizeof records[0], 8, &count, error),
                   error, "profile_drain");
    api.clock_pair(device.handle(), &host_ns, &device_ns, error);
  });
}

// All ranks at once, the same number of times; rank 0's thread counts.
void collective(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  constexpr uint64_t kCount = 64;
  auto reduce = [](Rank& rank, int times) {
    Buffer src = rank.device->alloc(kCount * sizeof(float)),
           dst = rank.device->alloc(kCount * sizeof(float));
    rank.device->fill(src, 0);
    for (int i = 0; i < times; ++i) {
      Error error;
      if (!rank.ok(
              rank.api->all_reduce(rank.device->handle(), rank.comm, src.memory(), dst.memory(),
                                   kCount, TENON_DTYPE_F32, TENON_REDUCE_SUM, nullptr, error),
              error, "all_reduce") ||
          !rank.ok(rank.api->broadcast(rank.device->handle(), rank.comm, dst.memory(), kCount,
                                       TENON_DTYPE_F32, 0, nullptr, error),
                   error, "broadcast"))
        return;
    }
    rank.device->sync();
  };
  expect_no_growth(
      session, "all_reduce and broadcast", "free what a call needs once it has run", [&] {
        ranks.each("64 times all_reduce and broadcast", [&](Rank& rank) { reduce(rank, 64); });
      });
}

void programs(Session& session) {
  Plugin plugin(session);
  plugin.need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  Device device(plugin);
  Buffer in = device.alloc(kBytes), out = device.alloc(kBytes);
  device.fill(in, 0);
  const float factor = 2;
  const int64_t count = 16;
  {
    Program program(device, "kit/scale", kScale);
    expect_no_growth(session, "kernel_launch", "free what a launch needs once it has run", [&] {
      program.launch("scale",
                     {buffer_arg(in), buffer_arg(out), value_arg(factor), value_arg(count)}, 1, 1,
                     1, 1);
    });
  }
  expect_no_growth(session, "program_create and program_destroy",
                   "unload in program_destroy what program_create loaded",
                   [&] { Program program(device, "kit/scale", kScale); });
}

}  // namespace

const Checks& leak_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream";
  static const Checks checks = {
      {"memory.leak_copy", "Copies and fills leave nothing behind.", "abi.h section 5, copy", "",
       kNeeds, copies},
      {"pool.leak", "The pool grows with what is in use, not with calls.",
       "abi.h section 5, tenon_pool_api", "", kNeeds, pool},
      {"graph.leak", "Graphs and their launches leave nothing behind.",
       "abi.h section 5, tenon_graph_api", "",
       "lifecycle.sync memory.copy_d2d memory.fill_grid async.order graph.replay", graph},
      {"profile.leak", "Profiles that were drained leave nothing behind.",
       "abi.h section 5, tenon_profile_api", "", "lifecycle.sync memory.fill_grid profile.records",
       profile},
      {"collective.leak", "Collectives leave nothing behind.",
       "abi.h section 5, tenon_collective_api", "",
       "lifecycle.sync memory.copy_grid collective.reduce collective.broadcast", collective},
      {"compile.leak", "Programs and launches leave nothing behind.",
       "abi.h section 5, tenon_compile_api", "", "lifecycle.sync memory.copy_grid compile.run",
       programs},
  };
  return checks;
}

}  // namespace tenon::kit
