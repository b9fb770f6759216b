// SPDX-License-Identifier: Apache-2.0
// What calls leave behind in the process. Every call that the kit makes is watched
// (subject/watch.hpp); the checks without a function of their own fail by what was seen in any.
#include "operators/subjects.hpp"
#include "operators/values.hpp"
#include "subject/process.hpp"
#include "subject/stream.hpp"

namespace tenon::kit {
namespace {

// Each function of the device's table, and those of groups that need no other arguments.
void call_tables(Plugin& plugin) {
  Session& session = plugin.session();
  uint32_t count = static_cast<uint32_t>(Device::enumerate(plugin).size());
  session.step("open of a device that does not exist");
  tenon_device none = nullptr;
  if (plugin.api().open(count, &none, Error()) == TENON_OK) plugin.api().close(none);
  Device device(plugin);
  session.step("alloc of too much");
  void* memory = nullptr;
  device.alloc_raw(uint64_t{1} << 60, 256, nullptr, &memory, Error());
  auto work = [&](tenon_stream stream) {
    Buffer from = device.alloc(4096, stream), to = device.alloc(4096, stream);
    session.step("copies and fills");
    device.fill(from, 0x5a, stream);
    device.copy(to, 0, from, 0, 4096, stream);
    device.read(to, stream);
    device.sync(stream);
    from.release(stream);
    to.release(stream);
  };
  work(nullptr);
  if (!plugin.group<tenon_async_api>(TENON_GROUP_ASYNC)) return;
  Stream stream(device);
  Event event(device);
  work(stream);
  event.record(stream);
  event.block(stream);
  event.sync();
  event.is_done();
  device.sync();
}

void calls(Session& session) {
  {
    Plugin plugin(session);
    call_tables(plugin);
    bool has_kernels =
        plugin.table()->nkernels || plugin.group<tenon_compile_api>(TENON_GROUP_COMPILE);
    if (!has_kernels) return;
  }
  Engine engine(session);
  for (const Subject& subject : subjects(engine)) {
    if (!subject.is_native || session.is_skipped(subject.name)) continue;
    std::vector<Sample> samples = samples_of(subject.op, SampleKind::kGeneral);
    if (samples.empty()) continue;
    session.step(samples[0].text);
    Arguments made = make_arguments(engine, samples[0], subject.dtypes[0]);
    engine.call(samples[0].op, made.device);
  }
}

// Without unloading: a plugin may keep what it sets up once, and no more of it each time.
void held(Session& session) {
  constexpr int kRounds = 4;
  Plugin plugin(session);
  Device::enumerate(plugin);
  double start = now();
  call_tables(plugin);                                 // what libraries below it set up once
  const int rounds = now() - start > 1 ? 1 : kRounds;  // opening may take its time
  Holdings before = holdings();
  for (int i = 0; i < rounds; ++i) call_tables(plugin);
  int threads = settled_threads(before.threads);
  Holdings after = holdings();
  std::string when = text(" over ", rounds, " times open and close");
  session.expect(threads <= before.threads, "no threads stay" + when,
                 text(threads - before.threads, " more"),
                 "join in `close` and `stream_destroy` the threads that `open` and `stream_create` "
                 "started");
  session.expect(after.files <= before.files, "no files stay open" + when,
                 text(after.files - before.files, " more"), "close in `close` what `open` opened");
}

}  // namespace

const Checks& process_checks() {
  static const char kSection[] = "abi.h, ground rules";
  static const Checks checks = {
      {"process.calls", "Calls of every kind can be made, and are watched.", kSection, "",
       "lifecycle.sync", calls},
      {"process.held", "Opening and closing a device again leaves no threads and files behind.",
       "abi.h section 5, close", "", "lifecycle.sync lifecycle.cycles async.leak_stream", held},
      {"process.floating_point",
       "Calls leave the rounding mode, flush-to-zero and denormals-are-zero alone.", kSection, "",
       "", nullptr},
      {"process.signals", "Calls leave signal handlers and blocked signals alone.", kSection, "",
       "", nullptr},
      {"process.output", "Calls print nothing to the standard output.", kSection, "", "", nullptr},
      {"process.locale", "Calls leave the locale alone.", kSection, "", "", nullptr},
      {"process.folder", "Calls leave the current folder alone.", kSection, "", "", nullptr},
      {"process.umask", "Calls leave the umask alone.", kSection, "", "", nullptr},
      {"process.environment", "Calls leave the environment alone.", kSection, "", "", nullptr},
      {"process.status", "Calls return codes that exist.", "abi.h section 2", "", "", nullptr},
  };
  return checks;
}

}  // namespace tenon::kit
