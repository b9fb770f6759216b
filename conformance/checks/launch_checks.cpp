// SPDX-License-Identifier: Apache-2.0
// Kernels that are called many times: nothing grows, and the last call does what the first did.
#include <algorithm>
#include <cstring>

#include "operators/comparison.hpp"
#include "operators/stream_work.hpp"
#include "subject/growth.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr int64_t kSuspicious = 64 << 10, kMaxGrowth = 1 << 20;  // bytes

// Few calls of each kernel; more of one after which the process was larger. A device may run behind
// the host, and what a call queues takes memory until it has run; so the device catches up now and
// then, and before each look at the process.
void leak(Session& session) {
  constexpr int kWarmup = 8, kMinFew = 120, kMaxFew = 600, kAll = 6000, kMany = 1000;
  constexpr int kQueued = 64, kPasses = 3;
  Engine engine(session);
  const int few = std::clamp(kAll / static_cast<int>(subjects(engine).size()), kMinFew, kMaxFew);
  int files = -1, calls_made = 0;
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
      Arguments made = make_arguments(engine, sample, subject.dtypes[0]);
      auto call = [&](int count) {
        for (int i = 1; i <= count; ++i) {
          engine.call(sample.op, made.device);
          if (i % kQueued == 0 || i == count) sync(engine, nullptr);
        }
        calls_made += count;
      };
      if (!engine.call(sample.op, made.device).ok()) continue;
      session.step(text(sample.text, ", over and over"));
      call(kWarmup);
      if (files < 0) files = holdings().files;
      int64_t before = holdings().resident;
      call(few);
      engine.tally(true);
      if (holdings().resident - before < kSuspicious) return;
      // What is taken once may be taken late; what leaks is taken again.
      int64_t grown = kMaxGrowth;
      for (int pass = 0; pass < kPasses && grown >= kMaxGrowth; ++pass) {
        before = holdings().resident;
        call(kMany);
        grown = holdings().resident - before;
      }
      session.expect(grown < kMaxGrowth,
                     text("no memory stays over ", kMany, " calls of ", sample.text),
                     text(grown >> 10, " KiB more"),
                     "free what the launch needs once it has run; take memory from host->scratch");
      return;
    }
  });
  engine.conclude();
  const int more = holdings().files - files;
  session.expect(more <= 0, text("no files stay open over ", calls_made, " calls"),
                 text(more, " more"), "close what a launch opens");
}

// One kernel at a time, with two sets of values in turn, so that what a call leaves out shows.
bool repeat(Engine& engine, const char* line) {
  constexpr int kCalls = 45'000;
  constexpr double kSeconds = 3;
  Session& session = engine.session();
  const Sample sample = parse_sample(line);
  if (!sample.op || session.is_skipped(short_name(sample.op))) return false;
  Arguments made[2];
  std::string expected[2];
  for (uint64_t i = 0; i < 2; ++i) {
    made[i] =
        make_arguments(engine, sample, TENON_DTYPE_F32, Layout::kContiguous, Range::kSmall, i);
    const Answer answer = engine.call(sample.op, made[i].device);
    if (!answer.ok()) return false;
    expected[i] = bytes_of(engine, answer);
  }
  const Tensor out = filled(engine, TENON_DTYPE_F32, {5}, 0);
  const Tensor seen = engine.create(engine.cpu(), TENON_DTYPE_F32, {5});
  session.step(text(kCalls, " calls of ", line));
  const double start = now();
  for (int i = 0; i < kCalls; ++i) {
    const int which = i % 2;
    if (i % 256 == 0 && now() - start > kSeconds) {
      session.note(text(line, ": ", i, " calls, as they take long"));
      break;
    }
    const Answer answer = engine.call(sample.op, made[which].device, {out});
    session.require(answer.ok(), text(line, " succeeds at its call ", i + 1, ", as at the first"),
                    answer.error);
    engine.copy(seen, out);
    if (!session.expect(
            std::memcmp(seen->data, expected[which].data(), expected[which].size()) == 0,
            text(line, ": the same result at its call ", i + 1, " as at the first"), "another one",
            "look for what is counted, kept or reused from call to call"))
      break;
  }
  return true;
}

void often(Session& session) {
  Engine engine(session);
  subjects(engine);  // absent without kernels
  bool was_called = false;
  for (const char* line : {"add x[5] x[5]", "primitive_binary x[5] x[5] 2", "clone x[5]"}) {
    if (was_called) break;
    was_called = repeat(engine, line);
  }
  if (!was_called) session.absent("none of the operators that it calls runs on the device");
}

}  // namespace

const Checks& launch_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream "
      "ops.values";
  static const Checks checks = {
      {"ops.leak", "Calls of kernels leave nothing behind.", "abi.h section 6, tenon_kernel_def",
       "", kNeeds, leak},
      {"ops.often", "A kernel does at its 40,000th call what it did at the first.",
       "abi.h section 6, tenon_kernel_def", "", kNeeds, often},
  };
  return checks;
}

}  // namespace tenon::kit
