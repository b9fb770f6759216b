// SPDX-License-Identifier: Apache-2.0
// Figures, for the report. Time alone fails nothing: machines differ.
#include <algorithm>
#include <functional>

#include "operators/engine.hpp"
#include "operators/values.hpp"
#include "subject/device.hpp"
#include "subject/process.hpp"
#include "subject/watch.hpp"

namespace tenon::kit {
namespace {

// Seconds of one call, the best of a few rounds.
double best_of(const std::function<void()>& call, int repeats) {
  stop_watching();  // it would be measured, too
  call();
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const double start = now();
    for (int i = 0; i < repeats; ++i) call();
    best = std::min(best, (now() - start) / repeats);
  }
  return best;
}

void copy(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  constexpr uint64_t kBytes = 64 << 20;
  Buffer a = device.alloc(kBytes), b = device.alloc(kBytes);
  Bytes host(kBytes, 1);
  auto figure = [&](const char* name, const std::function<void()>& call) {
    session.step(name);
    double seconds = best_of([&] { call(), device.sync(); }, 1);
    session.figure(name, double(kBytes) / seconds / 1e9, "GB/s");
  };
  figure("copy of 64 MiB to the device", [&] { device.put(a, 0, host.data(), kBytes); });
  figure("copy of 64 MiB to the host", [&] { device.get(host.data(), a, 0, kBytes); });
  figure("copy of 64 MiB on the device", [&] { device.copy(b, 0, a, 0, kBytes); });
  figure("fill of 64 MiB", [&] { device.fill(a, 7); });
}

void allocate(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  for (uint64_t bytes : {4 << 10, 2 << 20, 64 << 20}) {
    double seconds = best_of([&] { device.alloc(bytes); }, 20);
    session.figure(text("alloc and free of ", bytes >> 10, " KiB"), seconds * 1e6, "us");
  }
}

double seconds_of(Engine& engine, const char* line, int repeats) {
  Sample sample = parse_sample(line);
  Arguments made = make_arguments(engine, sample, TENON_DTYPE_F32);
  if (!engine.call(sample.op, made.device).ok())
    engine.session().absent(text(line, " does not run on the device"));
  Error error;
  return best_of(
             [&] {
               for (int i = 0; i < repeats; ++i) engine.call(sample.op, made.device);
               real_host()->device_sync(engine.device(), error);
             },
             1) /
         repeats;
}

void launch(Session& session) {
  Engine engine(session);
  session.step("add of 16 elements");
  session.figure("add of 16 float32, through the host",
                 seconds_of(engine, "add x[16] x[16]", 200) * 1e6, "us");
}

void matmul(Session& session) {
  Engine engine(session);
  session.step("matmul of 256 x 256");
  double seconds = seconds_of(engine, "matmul u[256,256] u[256,256]", 1);
  session.figure("matmul of 256 x 256 float32", 2 * 256.0 * 256 * 256 / seconds / 1e9, "GFLOP/s");
}

}  // namespace

const Checks& performance_checks() {
  static const Checks checks = {
      {"perf.copy", "How fast memory moves.", "figures only", "", "lifecycle.sync memory.copy_grid",
       copy},
      {"perf.allocate", "How long an allocation takes.", "figures only", "",
       "lifecycle.sync memory.copy_grid memory.leak", allocate},
      {"perf.launch", "How long the smallest call takes.", "figures only", "",
       "lifecycle.sync memory.copy_grid", launch},
      {"perf.matmul", "How fast matrices are multiplied.", "figures only", "",
       "lifecycle.sync memory.copy_grid", matmul},
  };
  return checks;
}

}  // namespace tenon::kit
