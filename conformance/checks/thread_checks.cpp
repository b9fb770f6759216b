// SPDX-License-Identifier: Apache-2.0
// Many threads at once, each with a stream of its own where there are streams. Built with
// -fsanitize=thread, kit and plugin, this finds races that never show.
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "operators/compare.hpp"
#include "operators/subjects.hpp"
#include "operators/values.hpp"
#include "subject/stream.hpp"

namespace tenon::kit {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 150;

// The first problem of all threads: a session is not for many.
class Problems {
 public:
  void add(const std::string& problem) {
    std::lock_guard lock(mutex_);
    if (first_.empty()) first_ = problem;
  }
  std::string first() {
    std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  std::mutex mutex_;
  std::string first_;
};

template <class Body>
void on_threads(Problems& problems, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const Stop&) {
        problems.add("a call failed, see the other failures");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// alloc, put, copy, fill, get, free: what one thread does must be its own.
void work(Device& device, int thread, tenon_stream stream, Problems& problems) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t bytes = 1 + static_cast<uint64_t>(round * 977 + thread * 131) % 50000;
    Buffer a = device.alloc(bytes, stream), b = device.alloc(bytes, stream);
    Bytes data = pattern(bytes, static_cast<uint32_t>(thread * 1000 + round));
    device.put(a, 0, data.data(), bytes, stream);
    device.copy(b, 0, a, 0, bytes, stream);
    device.fill(a, static_cast<unsigned char>(thread), stream);
    Bytes back = device.read(b, stream);
    if (round % 8 == 0) device.sync(stream);
    std::string difference = first_difference(data, back);
    if (!difference.empty())
      return problems.add(text("thread ", thread, ", round ", round, ": ", difference));
    a.release(stream);
    b.release(stream);
  }
}

void parallel(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Problems problems;
  session.step(text(kThreads, " threads work on one device"));
  bool has_streams = plugin.group<tenon_async_api>(TENON_GROUP_ASYNC);
  on_threads(problems, [&](int thread) {
    if (!has_streams) return work(device, thread, nullptr, problems);
    Stream stream(device);
    work(device, thread, stream, problems);
    device.sync(stream);
  });
  session.expect(problems.first().empty(), "each thread reads back what it wrote", problems.first(),
                 "functions may be called from any thread: guard shared state");
}

// Operators whose kernels the device has, over and over, each thread with values of its own.
void operators(Session& session) {
  Engine engine(session);
  struct Case {
    const tenon_op* op;
    std::string text;
    std::shared_ptr<Arguments> made;
    std::string expected;  // bytes of the answers, computed alone
  };
  std::vector<Case> cases;
  for (const Subject& subject : subjects(engine)) {
    if (!subject.is_native || subject.name == "index_put" || !session.begin(subject.name)) continue;
    for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
      auto made = std::make_shared<Arguments>(make_arguments(engine, sample, subject.dtypes[0]));
      session.step(sample.text);
      Answer alone = engine.call(sample.op, made->device),
             again = engine.call(sample.op, made->device);
      if (!alone.ok() || !again.ok()) continue;
      std::string bytes, other;
      for (const Tensor& out : alone.outs) bytes += bytes_of(engine, out);
      for (const Tensor& out : again.outs) other += bytes_of(engine, out);
      if (bytes == other) cases.push_back({sample.op, sample.text, made, bytes});
    }
  }
  session.begin("");
  if (cases.empty()) session.absent("the device has no kernels");
  Problems problems;
  std::atomic<int> calls{0};
  session.step(text(kThreads, " threads call operators"));
  const double seconds = std::min(3.0, session.time_limit() / 4);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  on_threads(problems, [&](int thread) {
    tenon_stream stream = nullptr;
    Error error;
    const tenon_host* host = real_host();
    if (host->stream_create(engine.device(), 0, &stream, error) == TENON_OK)
      host->stream_set_current(engine.device(), stream);
    for (size_t i = static_cast<size_t>(thread) * 7; problems.first().empty(); ++i) {
      // Neighbours stay near one another: what a kernel shares with itself shows so.
      const Case& mine = cases[i / 16 % cases.size()];
      Answer answer = engine.call(mine.op, mine.made->device);
      std::string bytes;
      for (const Tensor& out : answer.outs) bytes += bytes_of(engine, out);
      if (!answer.ok())
        problems.add(text(mine.text, ": ", answer.error));
      else if (bytes != mine.expected)
        problems.add(mine.text + ": another answer than without other threads");
      if (calls.fetch_add(1) > 200000 || std::chrono::steady_clock::now() > end) break;
    }
    if (!stream) return;
    host->stream_sync(engine.device(), stream, error);
    host->stream_set_current(engine.device(), nullptr);
    host->stream_destroy(engine.device(), stream);
  });
  session.expect(problems.first().empty(), "threads do not disturb one another's kernels",
                 problems.first(),
                 "kernels run on many threads: no static buffers; take memory from host->scratch");
  session.figure("operator calls by 8 threads", calls.load() / seconds, "/s");
}

void both(Session& session) {
  parallel(session);
  Plugin plugin(session);
  bool has_kernels =
      plugin.table()->nkernels || plugin.group<tenon_compile_api>(TENON_GROUP_COMPILE);
  if (has_kernels && !session.failures()) operators(session);
}

}  // namespace

const Checks& thread_checks() {
  static const Checks checks = {
      {"threads.parallel", "Any thread may call, any time.", "abi.h, ground rules", "",
       "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream "
       "async.order "
       "async.pageable async.free_in_flight",
       both},
  };
  return checks;
}

}  // namespace tenon::kit
