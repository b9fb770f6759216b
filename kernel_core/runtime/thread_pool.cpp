// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/thread_pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/fork.hpp"
#include "kernel_core/runtime/log.hpp"

namespace tenon::core {
namespace {

constexpr int32_t kMaxThreads = 1024;
constexpr int32_t kChunksPerThread = 4;  // enough to even out threads of unequal speed
// The gap between calls of an eager program.
constexpr auto kSpinTime = std::chrono::microseconds(300);

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How a range is cut: `chunks` pieces of equal size, the first `longer` of them one unit longer.
// Big pieces begin at multiples of 64, so that vector loops stay aligned.
struct Split {
  int64_t begin;
  uint64_t range;
  uint64_t unit;
  uint64_t units_each;
  uint32_t longer;
  uint32_t chunks;

  uint64_t offset(uint32_t index) const {
    if (index == chunks) return range;
    return (index * units_each + std::min(index, longer)) * unit;
  }
};

Split split_range(int64_t begin, uint64_t range, uint64_t grain, int32_t threads) {
  uint64_t most = static_cast<uint64_t>(threads) * kChunksPerThread;
  uint64_t unit = range / most >= 1024 ? 64 : 1;
  uint64_t units = range / unit;
  uint64_t least = (grain - 1) / unit + 1;
  uint64_t chunks = std::clamp<uint64_t>(units / least, 1, most);
  auto longer = static_cast<uint32_t>(units % chunks);
  return {begin, range, unit, units / chunks, longer, static_cast<uint32_t>(chunks)};
}

// Note [One word per region]
//
// `ticket` holds the region's chunk count and how many of its chunks were claimed from the front
// and from the back. Adding one to either claims a chunk, and the value returned says which, and
// whether there was one left. So a worker needs nothing but the ticket to know that it holds work;
// and while it does, the region cannot end, hence the other members keep still. A late worker
// claims a chunk that does not exist and leaves. The caller claims from the front and workers from
// the back: each begins where it began in the last region of that size, and finds in its cache what
// it touched then.
struct alignas(64) Region {
  std::atomic<uint64_t> ticket{0};
  std::atomic<uint32_t> done{0};  // chunks finished, by whomever
  Split split = {};
  tenon_range_fn fn = nullptr;
  void* user = nullptr;
  struct Failure* failure = nullptr;  // the caller's
};

// What the first chunk that threw has thrown; the caller throws it on.
struct Failure {
  std::atomic<bool> is_taken{false};
  std::exception_ptr exception;
};

constexpr uint64_t kFront = 1, kBack = 1 << 24;
static_assert(kMaxThreads * kChunksPerThread < 1 << 16);
constexpr uint64_t fresh_ticket(uint32_t chunks) { return uint64_t{chunks} << 48; }
constexpr uint32_t chunk_count(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 48); }
constexpr uint32_t from_front(uint64_t ticket) { return ticket % kBack; }
constexpr uint32_t from_back(uint64_t ticket) { return ticket / kBack % kBack; }
constexpr bool has_work(uint64_t ticket) {
  return from_front(ticket) + from_back(ticket) < chunk_count(ticket);
}

struct Pool {
  Region region;
  alignas(64) std::atomic<bool> busy{false};  // a region is running or the pool is changing
  std::atomic<bool> stopping{false};
  std::atomic<int32_t> threads{0};  // 0: not decided yet
  int32_t workers = 0;              // started; guarded by busy
  std::atomic<int32_t> alive{0};    // workers that have not left their loop
  alignas(64) std::atomic<int32_t> sleepers{0};
  std::atomic<int32_t> wake{0};               // changes when sleepers are to look again
  std::atomic<int32_t> caller_processor{-1};  // when it last woke or started workers
};

constinit Pool pool;
constinit thread_local bool inside_region = false;

// In unsigned arithmetic, which may wrap: a range can be longer than INT64_MAX.
void run_chunk(uint32_t index) {
  const Region& region = pool.region;
  uint64_t begin = static_cast<uint64_t>(region.split.begin);
  try {
    region.fn(region.user, static_cast<int64_t>(begin + region.split.offset(index)),
              static_cast<int64_t>(begin + region.split.offset(index + 1)));
  } catch (...) {
    if (!region.failure->is_taken.exchange(true))
      region.failure->exception = std::current_exception();
  }
}

// Claim and run chunks from one end until none is left; returns how many this thread ran.
uint32_t run_chunks(uint64_t end) {
  uint32_t count = 0;
  for (;;) {
    uint64_t ticket = pool.region.ticket.fetch_add(end, std::memory_order_acq_rel);
    if (!has_work(ticket)) return count;
    run_chunk(end == kFront ? from_front(ticket) : chunk_count(ticket) - 1 - from_back(ticket));
    ++count;
  }
}

// A worker may wake up on the caller's processor, though another one is idle, and the system lets
// both share it for milliseconds.
void leave_caller() {
  int processor = pool.caller_processor.load(std::memory_order_relaxed);
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed, others;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(static_cast<size_t>(processor), &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof allowed, &allowed);
}

void wake_workers(int32_t count) {
  pool.wake.fetch_add(1, std::memory_order_seq_cst);
  if (count >= pool.sleepers.load(std::memory_order_relaxed)) return pool.wake.notify_all();
  for (; count > 0; --count) pool.wake.notify_one();
}

bool wanted() {
  return has_work(pool.region.ticket.load(std::memory_order_seq_cst)) ||
         pool.stopping.load(std::memory_order_seq_cst);
}

// Wait for work: awake for a while, since waking costs far more than a region, then asleep. Returns
// when it was woken even if it came too late: where there was one region, more will follow.
void wait_for_work() {
  auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (wanted()) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  // Announce first, look again, then sleep: a caller publishes first and looks for sleepers after.
  pool.sleepers.fetch_add(1, std::memory_order_seq_cst);
  int32_t seen = pool.wake.load(std::memory_order_seq_cst);
  if (!wanted()) pool.wake.wait(seen, std::memory_order_seq_cst);
  pool.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  leave_caller();
}

void* worker_main(void*) {
  inside_region = true;  // whatever runs here is part of a region
  leave_caller();
  while (!pool.stopping.load(std::memory_order_acquire)) {
    if (uint32_t count = run_chunks(kBack))
      pool.region.done.fetch_add(count, std::memory_order_release);
    wait_for_work();
  }
  pool.alive.fetch_sub(1, std::memory_order_release);
  return nullptr;
}

bool start_worker() {
  // Signals belong to the program's own threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  pool.alive.fetch_add(1, std::memory_order_relaxed);
  pthread_t thread;
  bool started = pthread_create(&thread, nullptr, worker_main, nullptr) == 0;
  if (started) {
    pthread_setname_np(thread, "tenon-worker");
    pthread_detach(thread);
  } else {
    pool.alive.fetch_sub(1, std::memory_order_relaxed);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return started;
}

// A forked child has the caller's thread only; its workers start anew when they are needed.
void after_fork(void*, bool in_child) {
  if (!in_child) return;
  pool.region.ticket.store(0, std::memory_order_relaxed);
  pool.busy.store(false, std::memory_order_relaxed);
  pool.stopping.store(false, std::memory_order_relaxed);
  pool.workers = 0;
  pool.alive.store(0, std::memory_order_relaxed);
  pool.sleepers.store(0, std::memory_order_relaxed);
}

[[maybe_unused]] const bool handles_fork =
    (add_fork_handler({ForkOrder::kThreads, [](void*) {}, after_fork, nullptr}), true);

// With `busy` held.
void ensure_workers(int32_t threads) {
  if (pool.workers >= threads - 1) [[likely]]
    return;
  pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
  while (pool.workers < threads - 1 && start_worker()) ++pool.workers;
  if (pool.workers < threads - 1) {
    log(LogLevel::kWarning, "expected %d worker threads, the system gave %d; going on with those",
        threads - 1, pool.workers);
    pool.threads.store(pool.workers + 1, std::memory_order_relaxed);
  }
}

// With `busy` held.
void stop_workers() {
  pool.stopping.store(true, std::memory_order_seq_cst);
  while (pool.alive.load(std::memory_order_acquire) > 0) {
    wake_workers(kMaxThreads);
    std::this_thread::yield();
  }
  pool.stopping.store(false, std::memory_order_release);
  pool.workers = 0;
}

// The last chunks may be with workers. Usually they are about to finish; if one has lost its
// processor, give ours away.
void wait_until_done(uint32_t chunks) {
  for (int spins = 0; pool.region.done.load(std::memory_order_acquire) < chunks; ++spins) {
    if (spins < 4096)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

// With `busy` held.
void run_region(const Split& split, tenon_range_fn fn, void* user) {
  Region& region = pool.region;
  region.split = split;
  region.fn = fn;
  region.user = user;
  region.done.store(0, std::memory_order_relaxed);
  // Publish with the first chunk claimed for the caller.
  region.ticket.exchange(fresh_ticket(split.chunks) + kFront, std::memory_order_seq_cst);
  if (pool.sleepers.load(std::memory_order_seq_cst) > 0) {
    pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
    wake_workers(static_cast<int32_t>(split.chunks) - 1);
  }
  run_chunk(0);
  uint32_t own = 1 + run_chunks(kFront);
  if (own == split.chunks) return;
  region.done.fetch_add(own, std::memory_order_relaxed);
  wait_until_done(split.chunks);
}

int32_t processor_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
}

int32_t default_thread_count() {
  const char* wanted = std::getenv("TENON_NUM_THREADS");
  int32_t most = std::min(processor_count(), kMaxThreads), count = 0;
  if (!wanted || !*wanted) return most;
  const char* end = wanted + std::strlen(wanted);
  auto [stop, error] = std::from_chars(wanted, end, count);
  if (error == std::errc() && stop == end && count >= 1) return std::min(count, kMaxThreads);
  log(LogLevel::kWarning, "TENON_NUM_THREADS: expected a number of at least 1, got '%s'; ignored",
      wanted);
  return most;
}

}  // namespace

namespace slots {

void parallel_for(int64_t begin, int64_t end, int64_t grain, tenon_range_fn fn, void* user) {
  if (begin >= end) return;
  uint64_t range = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  uint64_t least = static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  if (range / 2 < least || inside_region) return fn(user, begin, end);
  int32_t threads = thread_count();
  if (threads == 1 || pool.busy.exchange(true, std::memory_order_acquire))
    return fn(user, begin, end);
  ensure_workers(threads);
  inside_region = true;
  Failure failure;
  pool.region.failure = &failure;
  run_region(split_range(begin, range, least, threads), fn, user);
  inside_region = false;
  pool.busy.store(false, std::memory_order_release);
  if (failure.exception) [[unlikely]]
    std::rethrow_exception(failure.exception);
}

int32_t thread_count() {
  int32_t threads = pool.threads.load(std::memory_order_relaxed);
  if (threads > 0) [[likely]]
    return threads;
  int32_t undecided = 0;
  pool.threads.compare_exchange_strong(undecided, default_thread_count(),
                                       std::memory_order_relaxed);
  return pool.threads.load(std::memory_order_relaxed);
}

void set_thread_count(int32_t count) {
  if (inside_region)
    return log(LogLevel::kWarning, "set_thread_count(%d) inside a parallel region is ignored",
               count);
  while (pool.busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  count = std::clamp(count, 1, kMaxThreads);
  if (pool.workers > count - 1) stop_workers();
  pool.threads.store(count, std::memory_order_relaxed);
  pool.busy.store(false, std::memory_order_release);
}

}  // namespace slots
}  // namespace tenon::core
