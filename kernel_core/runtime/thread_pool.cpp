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
constexpr uint32_t kFirstClaim = 3;      // of them; the rest is there to even out
// The gap between calls of an eager program.
constexpr auto kSpinTime = std::chrono::microseconds(300);

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A line that is read moves to who reads it. So whoever waits for another thread looks away
// meanwhile for about as long as a line is on its way.
inline void look_away() {
  for (int i = 0; i < 4; ++i) pause_briefly();
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

  // In unsigned arithmetic, which may wrap: a range can be longer than INT64_MAX.
  uint64_t offset(uint32_t index) const {
    if (index == chunks) return range;
    return (index * units_each + std::min(index, longer)) * unit;
  }
  int64_t at(uint32_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(begin) + offset(index));
  }
  // Chunks [first, last), as a split of their own.
  Split part(uint32_t first, uint32_t last) const {
    return {at(first),  offset(last) - offset(first),
            units_each, longer - std::min(longer, first),
            unit,       static_cast<uint16_t>(last - first)};
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

// Note [One thread, one line]
//
// A region is cut into a share for each thread. A thread claims the chunks of its own share from
// the front, then one chunk at a time from the back of others' shares, so that whoever is late is
// waited for no longer than it takes to run what it has claimed. In every region of a size a thread
// begins where it began in the last one, and finds in its cache what it touched then.
//
// `ticket` holds how many chunks a share has, how many were claimed from either end, and how many
// are finished. Adding to either end claims chunks, and the value returned says which, and whether
// there were any left. So a thread needs nothing but the ticket to know that it holds work; and
// while it does, the region cannot end, hence the other members keep still. Whoever comes late
// claims a chunk that does not exist and leaves.
//
// A region costs as many times 50 to 100 ns as cache lines move between processors. Hence all that
// a worker has to know is in the line it waits at, where it also says that a chunk is finished as
// it claims the next one. That makes two moves, if nobody looks at the line in between.
struct alignas(64) Share {
  std::atomic<uint64_t> ticket{0};
  Split split = {};
  tenon_range_fn fn = nullptr;
  void* user = nullptr;
  Failure* failure = nullptr;  // the caller's
  // Another line: hardly ever written.
  std::atomic<int32_t> is_asleep{0};  // its thread
};
static_assert(offsetof(Share, is_asleep) == 64);

// A ticket has four fields of 16 bits. A thread may add to one twice when no chunk is left.
constexpr uint64_t kBack = 1, kFinished = kBack << 16, kChunks = kFinished << 16,
                   kFront = kChunks << 16;
static_assert(kChunksPerThread + (kMaxThreads + kFirstClaim) * 2 < 1 << 16);
constexpr uint32_t field(uint64_t ticket, uint64_t unit) { return ticket / unit % (1 << 16); }
constexpr uint32_t unclaimed(uint64_t ticket) {
  uint32_t chunks = field(ticket, kChunks), claimed = field(ticket, kFront) + field(ticket, kBack);
  return claimed < chunks ? chunks - claimed : 0;
}

struct Pool {
  // Of callers.
  alignas(64) std::atomic<bool> busy{false};  // a region is running or the pool is changing
  std::atomic<int32_t> sleepers{0};
  int32_t workers = 0;  // started; guarded by busy
  // Hardly ever written.
  alignas(64) std::atomic<int32_t> threads{0};  // 0: not decided yet
  std::atomic<int32_t> caller_processor{-1};    // when it last woke or started workers
  std::atomic<bool> stopping{false};
  std::atomic<int32_t> alive{0};  // workers that have not left their loop
};

constinit Pool pool;
constinit Share shares[kMaxThreads];  // the caller's, then the workers'
constinit thread_local bool inside_region = false;

void run_chunks(const Share& share, uint32_t first, uint32_t count) {
  try {
    share.fn(share.user, share.split.at(first), share.split.at(first + count));
  } catch (...) {
    if (!share.failure->is_taken.exchange(true))
      share.failure->exception = std::current_exception();
  }
}

// Claim and run chunks from one end of a share, the first `most` at once, until none is left. Once
// the last one is said to be finished, the region may end. Should the share be of another region by
// now, it is a claim all the same.
void run_share(Share& share, uint64_t end, uint32_t most) {
  uint64_t ticket = share.ticket.fetch_add(most * end, std::memory_order_acquire);
  uint32_t count = std::min(unclaimed(ticket), most);
  while (count > 0) {
    uint32_t behind = field(ticket, kChunks) - field(ticket, kBack) - count;
    run_chunks(share, end == kFront ? field(ticket, kFront) : behind, count);
    ticket = share.ticket.fetch_add(end + count * kFinished, std::memory_order_acq_rel);
    count = std::min(unclaimed(ticket), 1u);
  }
}

void run_own(Share& share) { run_share(share, kFront, kFirstClaim); }

// Those that come after a thread's own first, as not all are to help the same one.
void help_others(const Share& own, int32_t threads) {
  auto index = static_cast<int32_t>(&own - shares);
  for (int32_t n = 1; n < threads; ++n) {
    Share& other = shares[(index + n) % threads];
    if (unclaimed(other.ticket.load(std::memory_order_relaxed)) > 0) run_share(other, kBack, 1);
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

void wake(Share& share) {
  share.is_asleep.store(0, std::memory_order_relaxed);
  share.is_asleep.notify_one();
}

bool wanted(const Share& own) {
  return unclaimed(own.ticket.load(std::memory_order_relaxed)) > 0 ||
         pool.stopping.load(std::memory_order_relaxed);
}

// Whether the region ends before long. To look for chunks of others takes their lines from them,
// for nothing if none is left.
bool sees_end(const Share& own) {
  for (int i = 0; i < 8; ++i) {
    look_away();
    uint64_t ticket = own.ticket.load(std::memory_order_relaxed);
    if (field(ticket, kChunks) == 0 || unclaimed(ticket) > 0) return true;
  }
  return false;
}

// Wait for work: awake for a while, since waking costs far more than a region, then asleep. Returns
// when it was woken even if it came too late: where there was one region, more will follow.
void wait_for_work(Share& own) {
  auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (unclaimed(own.ticket.load(std::memory_order_relaxed)) > 0) return;
      pause_briefly();
    }
    if (wanted(own)) return;
  } while (std::chrono::steady_clock::now() < deadline);
  // Announce first, look again, then sleep: a caller publishes first and looks for sleepers after.
  // Both change `sleepers`, so one of them comes second and sees what the other did before.
  own.is_asleep.store(1, std::memory_order_relaxed);
  pool.sleepers.fetch_add(1, std::memory_order_acq_rel);
  if (!wanted(own)) own.is_asleep.wait(1, std::memory_order_relaxed);
  own.is_asleep.store(0, std::memory_order_relaxed);
  pool.sleepers.fetch_sub(1, std::memory_order_relaxed);
  leave_caller();
}

void* worker_main(void* share) {
  inside_region = true;  // whatever runs here is part of a region
  leave_caller();
  Share& own = *static_cast<Share*>(share);
  while (!pool.stopping.load(std::memory_order_acquire)) {
    run_own(own);
    if (!sees_end(own)) help_others(own, pool.threads.load(std::memory_order_relaxed));
    wait_for_work(own);
  }
  pool.alive.fetch_sub(1, std::memory_order_release);
  return nullptr;
}

bool start_worker(Share& share) {
  // Signals belong to the program's own threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  pool.alive.fetch_add(1, std::memory_order_relaxed);
  pthread_t thread;
  bool started = pthread_create(&thread, nullptr, worker_main, &share) == 0;
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
  for (int32_t i = 0; i <= pool.workers; ++i) {
    shares[i].ticket.store(0, std::memory_order_relaxed);
    shares[i].is_asleep.store(0, std::memory_order_relaxed);
  }
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
  while (pool.workers < threads - 1 && start_worker(shares[pool.workers + 1])) ++pool.workers;
  if (pool.workers < threads - 1) {
    log(LogLevel::kWarning, "expected %d worker threads, the system gave %d; going on with those",
        threads - 1, pool.workers);
    pool.threads.store(pool.workers + 1, std::memory_order_relaxed);
  }
}

// With `busy` held.
void stop_workers() {
  pool.stopping.store(true, std::memory_order_relaxed);
  while (pool.alive.load(std::memory_order_acquire) > 0) {
    for (int32_t i = 1; i <= pool.workers; ++i) wake(shares[i]);
    std::this_thread::yield();
  }
  pool.stopping.store(false, std::memory_order_release);
  pool.workers = 0;
}

// The last chunks may be with other threads. Usually they are about to finish; if one has lost its
// processor, give ours away.
void wait_for(const Share& share) {
  uint32_t chunks = share.split.chunks;
  for (int spins = 0; field(share.ticket.load(std::memory_order_acquire), kFinished) < chunks;
       ++spins) {
    if (spins < 1024)
      look_away();
    else
      std::this_thread::yield();
  }
}

// With `busy` held.
void run_region(const Split& split, int32_t threads, tenon_range_fn fn, void* user,
                Failure* failure) {
  uint32_t count = std::min<uint32_t>(split.chunks, threads);
  for (uint32_t i = count; i-- > 0;) {
    Share& share = shares[i];
    share.split = split.part(split.chunks * i / count, split.chunks * (i + 1) / count);
    share.fn = fn;
    share.user = user;
    share.failure = failure;
    share.ticket.store(share.split.chunks * kChunks, std::memory_order_release);
  }
  if (pool.sleepers.fetch_add(0, std::memory_order_acq_rel) > 0) {
    pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
    for (uint32_t i = 1; i < count; ++i)
      if (shares[i].is_asleep.load(std::memory_order_relaxed)) wake(shares[i]);
  }
  run_own(shares[0]);
  look_away();
  help_others(shares[0], static_cast<int32_t>(count));
  for (uint32_t i = 0; i < count; ++i) wait_for(shares[i]);
  // The caller holds the lines now, and workers look for the end here.
  for (uint32_t i = 1; i < count; ++i) shares[i].ticket.store(0, std::memory_order_relaxed);
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
  run_region(split_range(begin, range, least, threads), threads, fn, user, &failure);
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
