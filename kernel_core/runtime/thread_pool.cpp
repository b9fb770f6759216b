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
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <tenon/services/threads.h>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/fork.hpp"
#include "kernel_core/runtime/log.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {
namespace {

constexpr int32_t kMaxThreads = 1024;
constexpr int32_t kChunksPerThread = 4;  // enough to even out threads of unequal speed
constexpr uint32_t kFirstClaim = 3;      // of them; the rest is there to even out
// The gap between calls of an eager program.
constexpr int32_t kSpinMicroseconds = 300;

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Reading a cache line moves it to the reading processor. A thread that waits for another one
// therefore pauses between two reads for about as long as such a move takes.
inline void pause_between_reads() {
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

// Note [One cache line per worker slot]
//
// parallel_for cuts a range into chunks and gives each thread's worker slot an equal number of
// them. A thread claims the chunks of its own slot from the front. Then it steals chunks from the
// back of other slots, one at a time, so that the caller never waits longer for a late thread than
// that thread's claimed chunks take. Calls with equal ranges give a thread the same chunks first,
// so its cache still holds the data of the previous call.
//
// `ticket` counts the chunks of a slot, those claimed from either end, and those finished. A thread
// claims chunks by adding to one end, and the former value tells it which chunks these are and
// whether any were left. The ticket alone thus proves that a thread holds work. The call cannot
// return while a thread holds work, so the slot's other members do not change meanwhile. A thread
// that comes too late claims a chunk that does not exist, and leaves.
//
// Each move of a cache line between processors costs 50 to 100 ns, and these moves are most of what
// parallel_for costs. Everything a worker needs is therefore in the line on which it waits, and it
// reports a finished chunk there with the same addition that claims the next one. That takes two
// moves if no other thread reads the line in between.
struct Pool;
struct alignas(64) WorkerSlot {
  std::atomic<uint64_t> ticket{0};
  Split split = {};
  tenon_range_fn fn = nullptr;
  void* user = nullptr;
  Failure* failure = nullptr;  // the caller's
  // Another line: hardly ever written.
  std::atomic<int32_t> is_asleep{0};  // its thread
  Pool* pool = nullptr;               // that it belongs to; set before its thread starts
};
static_assert(offsetof(WorkerSlot, is_asleep) == 64);

// A ticket has four fields of 16 bits. A thread may add to one twice when no chunk is left.
constexpr uint64_t kBack = 1, kFinished = kBack << 16, kChunks = kFinished << 16,
                   kFront = kChunks << 16;
static_assert(kChunksPerThread + (kMaxThreads + kFirstClaim) * 2 < 1 << 16);
constexpr uint32_t field(uint64_t ticket, uint64_t unit) { return ticket / unit % (1 << 16); }
constexpr uint32_t unclaimed(uint64_t ticket) {
  uint32_t chunks = field(ticket, kChunks), claimed = field(ticket, kFront) + field(ticket, kBack);
  return claimed < chunks ? chunks - claimed : 0;
}

// Threads that run parallel loops: those of the process, or those of a user who has a pool of its own.
struct Pool {
  WorkerSlot* slots = nullptr;  // the caller's, then the workers'
  int32_t spin_microseconds = kSpinMicroseconds;
  // Of callers.
  alignas(64) std::atomic<bool> busy{false};  // parallel_for is running, or the pool is changing
  std::atomic<int32_t> sleepers{0};
  int32_t workers = 0;  // started; guarded by busy
  // Hardly ever written.
  alignas(64) std::atomic<int32_t> threads{0};  // 0: not decided yet
  std::atomic<int32_t> caller_processor{-1};    // when it last woke or started workers
  std::atomic<bool> stopping{false};
  std::atomic<int32_t> alive{0};  // workers that have not left their loop
};

constinit WorkerSlot process_slots[kMaxThreads];
constinit Pool process_pool = {.slots = process_slots};
constinit thread_local bool inside_parallel_for = false;

// Pools of users. Their number spares processes that have none the look at a thread's variable.
constinit std::atomic<int32_t> own_pools{0};
constinit thread_local Pool* own_pool = nullptr;  // that the thread's loops run on
std::mutex own_pools_mutex;
std::vector<Pool*>& all_own_pools() {
  static auto& pools = *new std::vector<Pool*>;  // threads may use it while the process ends
  return pools;
}

inline Pool& current_pool() {
  if (own_pools.load(std::memory_order_relaxed) == 0) [[likely]]
    return process_pool;
  return own_pool ? *own_pool : process_pool;
}

void run_chunks(const WorkerSlot& slot, uint32_t first, uint32_t count) {
  try {
    slot.fn(slot.user, slot.split.at(first), slot.split.at(first + count));
  } catch (...) {
    if (!slot.failure->is_taken.exchange(true)) slot.failure->exception = std::current_exception();
  }
}

// Claims chunks from one end of a slot and runs them until none is left; the first claim takes up
// to `most` chunks. parallel_for may return as soon as the last chunk is reported finished. If the
// slot belongs to a later call of parallel_for by then, the claim is valid for that call.
void run_chunks_of(WorkerSlot& slot, uint64_t end, uint32_t most) {
  uint64_t ticket = slot.ticket.fetch_add(most * end, std::memory_order_acquire);
  uint32_t count = std::min(unclaimed(ticket), most);
  while (count > 0) {
    uint32_t behind = field(ticket, kChunks) - field(ticket, kBack) - count;
    run_chunks(slot, end == kFront ? field(ticket, kFront) : behind, count);
    ticket = slot.ticket.fetch_add(end + count * kFinished, std::memory_order_acq_rel);
    count = std::min(unclaimed(ticket), 1u);
  }
}

void run_own_chunks(WorkerSlot& slot) { run_chunks_of(slot, kFront, kFirstClaim); }

// Steals from the slots that follow the thread's own first, so that the threads that have finished
// do not all steal from one slot.
void steal_chunks(const Pool& pool, const WorkerSlot& own, int32_t threads) {
  auto index = static_cast<int32_t>(&own - pool.slots);
  for (int32_t n = 1; n < threads; ++n) {
    WorkerSlot& other = pool.slots[(index + n) % threads];
    if (unclaimed(other.ticket.load(std::memory_order_relaxed)) > 0) run_chunks_of(other, kBack, 1);
  }
}

// A worker may wake up on the caller's processor, though another one is idle, and the system lets
// both share it for milliseconds.
void leave_caller(const Pool& pool) {
  int processor = pool.caller_processor.load(std::memory_order_relaxed);
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed, others;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(static_cast<size_t>(processor), &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof allowed, &allowed);
}

void wake(WorkerSlot& slot) {
  slot.is_asleep.store(0, std::memory_order_relaxed);
  slot.is_asleep.notify_one();
}

bool wanted(const Pool& pool, const WorkerSlot& own) {
  return unclaimed(own.ticket.load(std::memory_order_relaxed)) > 0 ||
         pool.stopping.load(std::memory_order_relaxed);
}

// True if this parallel_for ends soon or has new work for the slot. Stealing reads the cache lines
// of other slots, which slows their threads down, and finds nothing when no chunk is left.
bool ends_soon(const WorkerSlot& own) {
  for (int i = 0; i < 8; ++i) {
    pause_between_reads();
    uint64_t ticket = own.ticket.load(std::memory_order_relaxed);
    if (field(ticket, kChunks) == 0 || unclaimed(ticket) > 0) return true;
  }
  return false;
}

// Waits for work: it spins for a while, because waking a thread costs far more than parallel_for,
// and then sleeps. It returns after each wake-up, even if no work is left, because another call of
// parallel_for is likely to follow soon.
void wait_for_work(Pool& pool, WorkerSlot& own) {
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(pool.spin_microseconds);
  do {
    for (int i = 0; i < 64; ++i) {
      if (unclaimed(own.ticket.load(std::memory_order_relaxed)) > 0) return;
      pause_briefly();
    }
    if (wanted(pool, own)) return;
  } while (std::chrono::steady_clock::now() < deadline);
  // The worker announces that it sleeps, checks for work again, and then sleeps. A caller publishes
  // its work first and checks for sleepers afterwards. Both modify `sleepers`, so the second of
  // them sees what the first did before.
  own.is_asleep.store(1, std::memory_order_relaxed);
  pool.sleepers.fetch_add(1, std::memory_order_acq_rel);
  if (!wanted(pool, own)) own.is_asleep.wait(1, std::memory_order_relaxed);
  own.is_asleep.store(0, std::memory_order_relaxed);
  pool.sleepers.fetch_sub(1, std::memory_order_relaxed);
  leave_caller(pool);
}

void* worker_main(void* slot) {
  inside_parallel_for = true;  // a worker runs chunks only
  WorkerSlot& own = *static_cast<WorkerSlot*>(slot);
  Pool& pool = *own.pool;
  if (&pool != &process_pool) own_pool = &pool;  // kernels ask a chunk's thread how many there are
  leave_caller(pool);
  while (!pool.stopping.load(std::memory_order_acquire)) {
    run_own_chunks(own);
    if (!ends_soon(own)) steal_chunks(pool, own, pool.threads.load(std::memory_order_relaxed));
    wait_for_work(pool, own);
  }
  pool.alive.fetch_sub(1, std::memory_order_release);
  return nullptr;
}

bool start_worker(Pool& pool, WorkerSlot& slot) {
  // Signals belong to the program's own threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  slot.pool = &pool;
  pool.alive.fetch_add(1, std::memory_order_relaxed);
  pthread_t thread;
  bool started = pthread_create(&thread, nullptr, worker_main, &slot) == 0;
  if (started) {
    pthread_setname_np(thread, "tenon-worker");
    pthread_detach(thread);
  } else {
    pool.alive.fetch_sub(1, std::memory_order_relaxed);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return started;
}

// A forked child has the caller's thread only; its workers start anew when they are needed. The
// system copies memory page by page while other threads run, so `workers` does not say which slots
// hold something.
void forget_workers(Pool& pool, int32_t slots) {
  for (int32_t i = 0; i < slots; ++i) {
    WorkerSlot& slot = pool.slots[i];
    if (slot.ticket.load(std::memory_order_relaxed) == 0 &&
        slot.is_asleep.load(std::memory_order_relaxed) == 0)
      continue;  // unchanged pages stay shared
    slot.ticket.store(0, std::memory_order_relaxed);
    slot.is_asleep.store(0, std::memory_order_relaxed);
  }
  pool.busy.store(false, std::memory_order_relaxed);
  pool.stopping.store(false, std::memory_order_relaxed);
  pool.workers = 0;
  pool.alive.store(0, std::memory_order_relaxed);
  pool.sleepers.store(0, std::memory_order_relaxed);
}

void before_fork(void*) { own_pools_mutex.lock(); }

void after_fork(void*, bool in_child) {
  if (in_child) {
    forget_workers(process_pool, kMaxThreads);
    for (Pool* pool : all_own_pools()) forget_workers(*pool, pool->threads.load());
  }
  own_pools_mutex.unlock();
}

[[maybe_unused]] const bool handles_fork =
    (add_fork_handler({ForkOrder::kThreads, before_fork, after_fork, nullptr}), true);

// With `busy` held.
void ensure_workers(Pool& pool, int32_t threads) {
  if (pool.workers >= threads - 1) [[likely]]
    return;
  pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
  while (pool.workers < threads - 1 && start_worker(pool, pool.slots[pool.workers + 1]))
    ++pool.workers;
  if (pool.workers < threads - 1) {
    log(LogLevel::kWarning, "expected %d worker threads, the system gave %d; going on with those",
        threads - 1, pool.workers);
    pool.threads.store(pool.workers + 1, std::memory_order_relaxed);
  }
}

// With `busy` held.
void stop_workers(Pool& pool) {
  pool.stopping.store(true, std::memory_order_relaxed);
  while (pool.alive.load(std::memory_order_acquire) > 0) {
    for (int32_t i = 1; i <= pool.workers; ++i) wake(pool.slots[i]);
    std::this_thread::yield();
  }
  pool.stopping.store(false, std::memory_order_release);
  pool.workers = 0;
}

// Waits until the chunks of a slot that other threads claimed are finished. Usually that takes a
// moment. If such a thread lost its processor, the caller yields its own.
void wait_until_finished(const WorkerSlot& slot) {
  uint32_t chunks = slot.split.chunks;
  for (int spins = 0; field(slot.ticket.load(std::memory_order_acquire), kFinished) < chunks;
       ++spins) {
    if (spins < 1024)
      pause_between_reads();
    else
      std::this_thread::yield();
  }
}

// With `busy` held.
void run_parallel(Pool& pool, const Split& split, int32_t threads, tenon_range_fn fn, void* user,
                  Failure* failure) {
  WorkerSlot* const worker_slots = pool.slots;
  uint32_t count = std::min<uint32_t>(split.chunks, threads);
  for (uint32_t i = count; i-- > 0;) {
    WorkerSlot& slot = worker_slots[i];
    slot.split = split.part(split.chunks * i / count, split.chunks * (i + 1) / count);
    slot.fn = fn;
    slot.user = user;
    slot.failure = failure;
    slot.ticket.store(slot.split.chunks * kChunks, std::memory_order_release);
  }
  if (pool.sleepers.fetch_add(0, std::memory_order_acq_rel) > 0) {
    pool.caller_processor.store(sched_getcpu(), std::memory_order_relaxed);
    for (uint32_t i = 1; i < count; ++i)
      if (worker_slots[i].is_asleep.load(std::memory_order_relaxed)) wake(worker_slots[i]);
  }
  run_own_chunks(worker_slots[0]);
  pause_between_reads();
  steal_chunks(pool, worker_slots[0], static_cast<int32_t>(count));
  for (uint32_t i = 0; i < count; ++i) wait_until_finished(worker_slots[i]);
  // The workers read the end of the call from their tickets; the caller holds these lines by now.
  for (uint32_t i = 1; i < count; ++i) worker_slots[i].ticket.store(0, std::memory_order_relaxed);
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
  if (range / 2 < least || inside_parallel_for) return fn(user, begin, end);
  int32_t threads = thread_count();
  if (threads == 1) return fn(user, begin, end);
  Pool& pool = current_pool();
  if (pool.busy.exchange(true, std::memory_order_acquire)) return fn(user, begin, end);
  ensure_workers(pool, threads);
  inside_parallel_for = true;
  Failure failure;
  run_parallel(pool, split_range(begin, range, least, threads), threads, fn, user, &failure);
  inside_parallel_for = false;
  pool.busy.store(false, std::memory_order_release);
  if (failure.exception) [[unlikely]]
    std::rethrow_exception(failure.exception);
}

int32_t thread_count() {
  Pool& pool = current_pool();
  int32_t threads = pool.threads.load(std::memory_order_relaxed);
  if (threads > 0) [[likely]]
    return threads;
  int32_t undecided = 0;
  pool.threads.compare_exchange_strong(undecided, default_thread_count(),
                                       std::memory_order_relaxed);
  return pool.threads.load(std::memory_order_relaxed);
}

void set_thread_count(int32_t count) {
  Pool& pool = process_pool;
  if (inside_parallel_for)
    return log(LogLevel::kWarning, "set_thread_count(%d) inside a parallel region is ignored",
               count);
  while (pool.busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  count = std::clamp(count, 1, kMaxThreads);
  if (pool.workers > count - 1) stop_workers(pool);
  pool.threads.store(count, std::memory_order_relaxed);
  pool.busy.store(false, std::memory_order_release);
}

}  // namespace slots

// -- pools of users: the service "threads" (sdk/include/tenon/services/threads.h) -------------------

namespace {

struct OwnPool : Pool {
  explicit OwnPool(int32_t count) : memory(static_cast<size_t>(count)) { slots = memory.data(); }
  std::vector<WorkerSlot> memory;
};

tenon_status pool_create(const tenon_thread_pool_options* options, tenon_thread_pool** out,
                         tenon_err* err) {
  const auto wrong = [&](const char* what, int32_t most, int32_t got) {
    return fail(err, TENON_INVALID_ARGUMENT, "thread pool: expected %s of at most %d, got %d", what,
                most, got);
  };
  const int32_t count = options->threads, spin = options->spin_microseconds;
  if (count < 1 || count > kMaxThreads) return wrong("1 or more threads", kMaxThreads, count);
  constexpr int32_t kMaxSpin = 1000000;
  if (spin < -1 || spin > kMaxSpin) return wrong("-1 or a number of microseconds", kMaxSpin, spin);
  try {
    auto pool = std::make_unique<OwnPool>(count);
    pool->threads.store(count, std::memory_order_relaxed);
    if (spin >= 0) pool->spin_microseconds = spin;
    const std::lock_guard lock(own_pools_mutex);
    all_own_pools().push_back(pool.get());
    own_pools.fetch_add(1, std::memory_order_relaxed);
    *out = reinterpret_cast<tenon_thread_pool*>(static_cast<Pool*>(pool.release()));
    return TENON_OK;
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

tenon_thread_pool* pool_use(tenon_thread_pool* pool) {
  Pool* const before = own_pool;
  if (!inside_parallel_for) own_pool = reinterpret_cast<Pool*>(pool);
  return reinterpret_cast<tenon_thread_pool*>(before);
}

void pool_destroy(tenon_thread_pool* handle) {
  auto* pool = static_cast<OwnPool*>(reinterpret_cast<Pool*>(handle));
  while (pool->busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  stop_workers(*pool);
  {
    const std::lock_guard lock(own_pools_mutex);
    std::erase(all_own_pools(), pool);
    own_pools.fetch_sub(1, std::memory_order_relaxed);
  }
  delete pool;
}

constexpr tenon_threads_api kService = {.struct_size = sizeof(tenon_threads_api),
                                        .version = TENON_THREADS_VERSION,
                                        .pool_create = pool_create,
                                        .pool_use = pool_use,
                                        .pool_destroy = pool_destroy};

}  // namespace

void register_threads_service() {
  slots::service_register(TENON_THREADS_SERVICE, TENON_THREADS_VERSION, &kService, nullptr);
}

}  // namespace tenon::core
