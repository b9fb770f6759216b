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
constexpr uint32_t kFirstClaim = 3;      // of them at most; there are enough left to even out
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
  uint64_t units_each;
  uint32_t longer;
  uint16_t unit;
  uint16_t chunks;

  uint64_t offset(uint32_t index) const {
    if (index == chunks) return range;
    return (index * units_each + std::min(index, longer)) * unit;
  }
};

Split split_range(int64_t begin, uint64_t range, uint64_t grain, int32_t threads) {
  uint64_t most = static_cast<uint64_t>(threads) * kChunksPerThread;
  uint16_t unit = range / most >= 1024 ? 64 : 1;
  uint64_t units = range / unit;
  uint64_t least = (grain - 1) / unit + 1;
  uint64_t chunks = std::clamp<uint64_t>(units / least, 1, most);
  auto longer = static_cast<uint32_t>(units % chunks);
  return {begin, range, units / chunks, longer, unit, static_cast<uint16_t>(chunks)};
}

// What the first chunk that threw has thrown; the caller throws it on.
struct Failure {
  std::atomic<bool> is_taken{false};
  std::exception_ptr exception;
};

// Note [One word, one line]
//
// `ticket` holds the region's chunk count, how many of its chunks were claimed from the front and
// from the back, and how many the workers have finished. Adding to either end claims chunks, and the
// value returned says which, and whether there were any left. So a worker needs nothing but
// the ticket to know that it holds work; and while it does, the region cannot end, hence the other
// members keep still. A late worker claims a chunk that does not exist and leaves. The caller claims
// from the front and workers from the back: each begins where it began in the last region of that
// size, and finds in its cache what it touched then.
//
// A region costs as many times 50 to 100 ns as its cache lines move between processors. Hence all of
// it is one line, and a worker says that a chunk is finished as it claims the next one.
struct alignas(64) Region {
  std::atomic<uint64_t> ticket{0};
  Split split = {};
  tenon_range_fn fn = nullptr;
  void* user = nullptr;
  Failure* failure = nullptr;  // the caller's
};
static_assert(sizeof(Region) == 64);

// A ticket has four fields of 16 bits. A thread may add to one twice when no chunk is left.
constexpr uint64_t kBack = 1, kFinished = kBack << 16, kChunks = kFinished << 16,
                   kFront = kChunks << 16;
static_assert(kMaxThreads * (kChunksPerThread + 2 * kFirstClaim) < 1 << 16);
constexpr uint32_t field(uint64_t ticket, uint64_t unit) { return ticket / unit % (1 << 16); }
constexpr uint32_t unclaimed(uint64_t ticket) {
  uint32_t chunks = field(ticket, kChunks), claimed = field(ticket, kFront) + field(ticket, kBack);
  return claimed < chunks ? chunks - claimed : 0;
}

struct Pool {
  Region region;
  // Of callers.
  alignas(64) std::atomic<bool> busy{false};  // a region is running or the pool is changing
  std::atomic<int32_t> threads{0};            // 0: not decided yet
  int32_t workers = 0;                        // started; guarded by busy
  // Of waiting workers; hardly ever written.
  alignas(64) std::atomic<int32_t> sleepers{0};
  std::atomic<int32_t> wake{0};               // changes when sleepers are to look again
  std::atomic<int32_t> caller_processor{-1};  // when it last woke or started workers
  std::atomic<bool> stopping{false};
  std::atomic<int32_t> alive{0};  // workers that have not left their loop
};

constinit Pool pool;
constinit thread_local bool inside_region = false;

// In unsigned arithmetic, which may wrap: a range can be longer than INT64_MAX.
void run_chunks(uint32_t first, uint32_t count) {
  const Region& region = pool.region;
  uint64_t begin = static_cast<uint64_t>(region.split.begin);
  try {
    region.fn(region.user, static_cast<int64_t>(begin + region.split.offset(first)),
              static_cast<int64_t>(begin + region.split.offset(first + count)));
  } catch (...) {
    if (!region.failure->is_taken.exchange(true))
      region.failure->exception = std::current_exception();
  }
}

// Claim and run chunks from the front until none is left; returns how many.
uint32_t run_front() {
  for (uint32_t count = 0;; ++count) {
    uint64_t ticket = pool.region.ticket.fetch_add(kFront, std::memory_order_acquire);
    if (unclaimed(ticket) == 0) return count;
    run_chunks(field(ticket, kFront), 1);
    if (unclaimed(ticket) == 1) return count + 1;
  }
}

// Chunks that a thread begins with: no more than leave as many for every other thread. Where there
// are workers, or a region, the number of threads is decided.
uint32_t first_claim(uint32_t chunks) {
  auto threads = static_cast<uint32_t>(pool.threads.load(std::memory_order_relaxed));
  return std::clamp(chunks / threads, 1u, kFirstClaim);
}

// The same from the back. Once the last one is said to be finished, the region may end. `seen`: the
// ticket that told of the work. Should the region be another one by now, it is a claim all the same.
void run_back(uint64_t seen) {
  uint32_t first = first_claim(field(seen, kChunks));
  uint64_t ticket = pool.region.ticket.fetch_add(first * kBack, std::memory_order_acquire);
  uint32_t count = std::min(unclaimed(ticket), first);
  while (count > 0) {
    run_chunks(field(ticket, kChunks) - field(ticket, kBack) - count, count);
    ticket = pool.region.ticket.fetch_add(kBack + count * kFinished, std::memory_order_acq_rel);
    count = std::min(unclaimed(ticket), 1u);
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
  return unclaimed(pool.region.ticket.load(std::memory_order_seq_cst)) > 0 ||
         pool.stopping.load(std::memory_order_seq_cst);
}

// Wait for work: awake for a while, since waking costs far more than a region, then asleep. Returns
// when it was woken even if it came too late: where there was one region, more will follow. The
// ticket last seen: to read it again could move the line once more.
uint64_t wait_for_work() {
  auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      uint64_t ticket = pool.region.ticket.load(std::memory_order_relaxed);
      if (unclaimed(ticket) > 0) return ticket;
      pause_briefly();
    }
    if (wanted()) return pool.region.ticket.load(std::memory_order_relaxed);
  } while (std::chrono::steady_clock::now() < deadline);
  // Announce first, look again, then sleep: a caller publishes first and looks for sleepers after.
  pool.sleepers.fetch_add(1, std::memory_order_seq_cst);
  int32_t seen = pool.wake.load(std::memory_order_seq_cst);
  if (!wanted()) pool.wake.wait(seen, std::memory_order_seq_cst);
  pool.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  leave_caller();
  return pool.region.ticket.load(std::memory_order_relaxed);
}

void* worker_main(void*) {
  inside_region = true;  // whatever runs here is part of a region
  leave_caller();
  uint64_t ticket = pool.region.ticket.load(std::memory_order_relaxed);
  while (!pool.stopping.load(std::memory_order_acquire)) {
    run_back(ticket);
    ticket = wait_for_work();
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
void wait_for_workers(uint32_t chunks) {
  for (int spins = 0; field(pool.region.ticket.load(std::memory_order_acquire), kFinished) < chunks;
       ++spins) {
    if (spins < 4096)
      pause_briefly();
    else
      std::this_thread::yield();
  }
}

// With `busy` held.
void run_region(const Split& split, tenon_range_fn fn, void* user, Failure* failure) {
  Region& region = pool.region;
  region.split = split;
  region.fn = fn;
  region.user = user;
  region.failure = failure;
  uint32_t own = first_claim(split.chunks);
  // Publish with the first chunks claimed for the caller.
  region.ticket.exchange(split.chunks * kChunks + own * kFront, std::memory_order_seq_cst);
  if (pool.sleepers.load(std::memory_order_seq_cst) > 0) {
    pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
    wake_workers(split.chunks - 1);
  }
  run_chunks(0, own);
  own += run_front();
  wait_for_workers(split.chunks - own);
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
  run_region(split_range(begin, range, least, threads), fn, user, &failure);
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
