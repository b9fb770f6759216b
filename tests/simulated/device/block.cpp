// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fiber.hpp"

__thread simulated::ThreadIndex* simulated_here = nullptr;

namespace simulated {
namespace {

enum class State { kNew, kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

// To shared memory, not made yet.
struct Copy {
  char* to;
  const void* from;
  unsigned bytes, size, group;
};

struct Thread {
  ThreadIndex index;
  State state;
  unsigned lane;
  uint64_t mask;           // of the barrier that it waits at
  Fiber* fiber = nullptr;  // while it has begun and not ended
  alignas(16) char posted[kPostedBytes], released[kPostedBytes];
  std::vector<Copy> copies;
  unsigned group = 0;  // of the next copy
};

void make(const Copy& copy) {
  std::memcpy(copy.to, copy.from, copy.bytes);
  std::memset(copy.to + copy.bytes, 0, copy.size - copy.bytes);
}

constexpr int kIllegalAddress = 700, kLaunchFailed = 719;

// The order in which blocks, warps and threads run: by index, or, with a seed, a permutation that
// shows which kernels depend on it.
uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("SIMULATED_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 0;
  }();
  return value;
}

class Permutation {
 public:
  explicit Permutation(uint64_t count, uint64_t salt = 0) : count_(count) {
    if (!seed() || count < 2) return;
    const uint64_t random = (seed() + salt) * 0x9e3779b97f4a7c15u;
    first_ = random % count;
    step_ = 1 + (random >> 32) % (count - 1);
    while (gcd(step_, count) != 1) ++step_;
  }
  uint64_t operator[](uint64_t i) const { return (first_ + i * step_) % count_; }

 private:
  static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }
  uint64_t count_, first_ = 0, step_ = 1;
};

class Runner {
 public:
  explicit Runner(const Launch& launch)
      : launch_(launch), count_(launch.block[0] * launch.block[1] * launch.block[2]) {
    threads_.resize(count_);
    shared_.resize(launch.shared_bytes + 64);
  }
  ~Runner() {
    for (Thread& thread : threads_)
      if (thread.fiber) Fiber::give_back(thread.fiber);
    if (carrier_) Fiber::give_back(carrier_);
  }

  void run_block(unsigned x, unsigned y, unsigned z);
  void wait(State state, uint64_t mask);
  void begin_threads();  // on a fiber: runs new threads of the current warp until none is left

  Thread* current() const { return current_; }
  [[noreturn]] void refuse(const char* why);
  Thread* thread_of_lane(unsigned lane);
  uint64_t active_lanes() const;
  unsigned barrier_sum = 0, barrier_result = 0;
  Stop stop;
  sigjmp_buf escape;

 private:
  unsigned warp_begin() const { return warp_ * launch_.warp_size; }
  unsigned warp_end() const {
    return warp_begin() + launch_.warp_size < count_ ? warp_begin() + launch_.warp_size : count_;
  }
  void run_warp();
  bool release_warp();

  const Launch& launch_;
  const unsigned count_;
  std::vector<Thread> threads_;
  std::vector<char> shared_;
  unsigned warp_ = 0, next_new_ = 0;
  Thread* current_ = nullptr;
  Fiber* carrier_ = nullptr;  // that begins new threads
};

thread_local Runner* runner = nullptr;
thread_local volatile sig_atomic_t in_kernel = 0;

void carrier_main() {
  runner->begin_threads();
  std::abort();  // begin_threads does not return
}

void Runner::begin_threads() {
  for (;;) {
    const Permutation order(warp_end() - warp_begin(), 1);
    while (next_new_ < warp_end() - warp_begin()) {
      Thread& thread = threads_[warp_begin() + order[next_new_++]];
      if (thread.state != State::kNew) continue;
      current_ = &thread;
      simulated_here = &thread.index;
      thread.state = State::kReady;
      launch_.kernel->call(launch_.arguments);
      // The thread may have waited in between, and be a thread of an earlier turn by now.
      Thread& ended = *current_;
      ended.state = State::kEnded;
      if (ended.fiber) {
        ended.fiber->leave();  // its stack begins no other thread
        std::abort();
      }
    }
    carrier_->leave();
  }
}

void Runner::wait(State state, uint64_t mask) {
  Thread& thread = *current_;
  thread.state = state;
  thread.mask = mask;
  if (!thread.fiber) {  // the carrier becomes this thread's own stack
    thread.fiber = carrier_;
    carrier_ = nullptr;
  }
  thread.fiber->leave();
  simulated_here = &thread.index;
}

// Lets the threads of the current warp run until all of them wait for the block or have ended.
void Runner::run_warp() {
  next_new_ = 0;
  for (;;) {
    bool any_new = false;
    for (unsigned i = warp_begin(); i < warp_end(); ++i)
      any_new |= threads_[i].state == State::kNew;
    while (any_new && next_new_ < warp_end() - warp_begin()) {
      if (!carrier_) carrier_ = Fiber::take(carrier_main);
      carrier_->enter();
    }
    const Permutation order(warp_end() - warp_begin(), 2);
    for (unsigned i = 0; i < warp_end() - warp_begin(); ++i) {
      Thread& thread = threads_[warp_begin() + order[i]];
      if (thread.state != State::kReady) continue;
      current_ = &thread;
      thread.fiber->enter();
      if (thread.state == State::kEnded) {
        Fiber::give_back(thread.fiber);
        thread.fiber = nullptr;
      }
    }
    if (!release_warp()) return;
  }
}

// Releases the threads at a barrier of the warp whose partners are there as well. Returns whether
// there were any.
bool Runner::release_warp() {
  bool any = false, waiting = false;
  for (unsigned i = warp_begin(); i < warp_end(); ++i) {
    if (threads_[i].state != State::kAtWarpBarrier) continue;
    const uint64_t mask = threads_[i].mask;
    bool complete = true;
    for (unsigned j = warp_begin(); j < warp_end(); ++j) {
      const Thread& other = threads_[j];
      if (!(mask >> other.lane & 1) || other.state == State::kEnded) continue;
      complete &= other.state == State::kAtWarpBarrier && other.mask == mask;
    }
    waiting |= !complete;
    if (!complete) continue;
    any = true;
    for (unsigned j = warp_begin(); j < warp_end(); ++j) {
      Thread& other = threads_[j];
      if (!(mask >> other.lane & 1) || other.state != State::kAtWarpBarrier) continue;
      std::memcpy(other.released, other.posted, sizeof other.released);
      other.state = State::kReady;
    }
  }
  // On a GPU it would hang.
  if (waiting && !any) refuse("threads of a warp wait for others that do not come");
  return any;
}

void Runner::refuse(const char* why) {
  const ThreadIndex& at = current_->index;
  std::fprintf(stderr, "simulated: kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s\n",
               launch_.kernel->name, at.block.x, at.block.y, at.block.z, at.thread.x, at.thread.y,
               at.thread.z, why);
  stop.error = kLaunchFailed;
  siglongjmp(escape, 1);
}

void Runner::run_block(unsigned x, unsigned y, unsigned z) {
  char* shared = shared_.data() + (64 - reinterpret_cast<uintptr_t>(shared_.data()) % 64) % 64;
  // What a block finds there is undefined; NaN in every floating type shows that it was used.
  std::memset(shared, 0xff, launch_.shared_bytes);
  if (launch_.shared_begin)
    std::memset(launch_.shared_begin, 0xff,
                static_cast<size_t>(launch_.shared_end - launch_.shared_begin));
  const unsigned* size = launch_.block;
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.index = {.thread = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]},
                    .block = {x, y, z},
                    .block_dim = {size[0], size[1], size[2]},
                    .grid_dim = {launch_.grid[0], launch_.grid[1], launch_.grid[2]},
                    .dynamic_shared = shared,
                    .shared_begin = launch_.shared_begin,
                    .shared_end = launch_.shared_end};
    thread.state = State::kNew;
    thread.lane = i % launch_.warp_size;
    thread.copies.clear();
    thread.group = 0;
  }
  const unsigned warps = (count_ + launch_.warp_size - 1) / launch_.warp_size;
  const Permutation order(warps, 3);
  for (bool left = true; left;) {
    for (unsigned w = 0; w < warps; ++w) {
      warp_ = static_cast<unsigned>(order[w]);
      run_warp();
    }
    left = false;
    barrier_result = barrier_sum;
    barrier_sum = 0;
    for (Thread& thread : threads_) {
      if (thread.state != State::kAtBlockBarrier) continue;
      thread.state = State::kReady;
      left = true;
    }
  }
  for (Thread& thread : threads_) {
    current_ = &thread;
    if (!thread.copies.empty()) refuse("a thread ended before its copies to shared memory");
  }
}

Thread* Runner::thread_of_lane(unsigned lane) {
  const unsigned i = warp_begin() + lane;
  return lane < launch_.warp_size && i < count_ ? &threads_[i] : nullptr;
}

uint64_t Runner::active_lanes() const {
  uint64_t mask = 0;
  for (unsigned i = warp_begin(); i < warp_end(); ++i)
    if (threads_[i].state != State::kEnded) mask |= uint64_t{1} << threads_[i].lane;
  return mask;
}

void on_fault(int signal, siginfo_t* info, void*) {
  if (!in_kernel) {  // a mistake of the simulator: the default action shows it
    ::signal(signal, SIG_DFL);
    return;
  }
  runner->stop.error = signal == SIGSEGV || signal == SIGBUS ? kIllegalAddress : kLaunchFailed;
  runner->stop.address = info->si_addr;
  siglongjmp(runner->escape, 1);
}

// A kernel may use up its stack, so faults are handled on another one.
struct SignalStack {
  static constexpr size_t kBytes = 64 << 10;
  std::unique_ptr<char[]> memory{new char[kBytes]};
  SignalStack() {
    stack_t stack = {};
    stack.ss_sp = memory.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
  }
};

}  // namespace

void handle_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

Stop run(const Launch& launch) {
  thread_local SignalStack stack;
  auto running = std::make_unique<Runner>(launch);
  runner = running.get();
  if (sigsetjmp(running->escape, 1) == 0) {
    in_kernel = 1;
    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    const Permutation order(blocks);
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t block = order[i];
      running->run_block(static_cast<unsigned>(block % launch.grid[0]),
                         static_cast<unsigned>(block / launch.grid[0] % launch.grid[1]),
                         static_cast<unsigned>(block / launch.grid[0] / launch.grid[1]));
    }
  } else if (Thread* thread = running->current()) {
    running->stop.block = thread->index.block;
    running->stop.thread = thread->index.thread;
  }
  in_kernel = 0;
  runner = nullptr;
  return running->stop;
}

}  // namespace simulated

using simulated::runner;
using simulated::State;

unsigned simulated_block_barrier(unsigned value) {
  runner->barrier_sum += value;
  runner->wait(State::kAtBlockBarrier, 0);
  return runner->barrier_result;
}

void simulated_warp_barrier(unsigned long long mask, const void* value, unsigned bytes) {
  char* posted = runner->current()->posted;
  std::memcpy(posted, value, bytes);
  std::memset(posted + bytes, 0, simulated::kPostedBytes - bytes);
  runner->wait(State::kAtWarpBarrier, mask);
}

const void* simulated_warp_value(unsigned lane) {
  simulated::Thread* thread = runner->thread_of_lane(lane);
  return thread ? thread->released : nullptr;
}

unsigned simulated_lane() { return runner->current()->lane; }

unsigned long long simulated_active_lanes() { return runner->active_lanes(); }

void simulated_stop(int error) {
  runner->stop.error = error;
  siglongjmp(runner->escape, 1);
}

void simulated_refuse(const char* why) { runner->refuse(why); }

void simulated_copy_later(void* to, const void* from, unsigned bytes, unsigned size) {
  simulated::Thread& thread = *runner->current();
  const simulated::Copy copy = {static_cast<char*>(to), from, bytes, size, thread.group};
  // By the bits of a hash: a barrier that is missing shows in some of the copies.
  const uint64_t address = reinterpret_cast<uintptr_t>(to) / 16 + simulated::seed();
  if (simulated::seed() && (address * 0x9e3779b97f4a7c15u) >> 63)
    make(copy);
  else
    thread.copies.push_back(copy);
}

void simulated_commit_copies() { ++runner->current()->group; }

void simulated_wait_for_copies(unsigned pending) {
  simulated::Thread& thread = *runner->current();
  std::erase_if(thread.copies, [&](const simulated::Copy& copy) {
    const bool waits = copy.group + pending < thread.group;
    if (waits) make(copy);
    return waits;
  });
}
