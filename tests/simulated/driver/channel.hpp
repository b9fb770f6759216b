// SPDX-License-Identifier: Apache-2.0
// How the driver (in the host's process) talks to the process of a simulated device: requests in
// shared memory, one channel for each kernel that runs at the same time. Channel 0 carries control
// requests and is served by the main thread of the device process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace simulated {

enum class Request : uint32_t {
  kStart,   // starts the thread that serves channel `index`
  kMap,     // makes [address, address + bytes) accessible to kernels
  kUnmap,   // the opposite
  kImport,  // maps the file named in `payload` from `offset` on at `address`
  kLoad,    // opens the shared object named in `payload`; the reply lists its kernels
  kUnload,  // closes `handle`
  kLaunch,  // runs the kernel `handle` with the arguments in `payload`
};

struct Channel {
  enum State : uint32_t { kIdle, kRequested, kDone };

  std::atomic<uint32_t> state;
  Request request;
  int32_t error;  // reply: 0 or a driver's error number
  uint32_t index;
  uint64_t address, bytes, offset, handle;
  uint32_t grid[3], block[3], shared_bytes;
  uint64_t fault_address;  // reply to kLaunch: what the kernel accessed when it was stopped
  uint32_t fault_block[3], fault_thread[3];
  uint32_t payload_bytes;
  alignas(16) char payload[64 << 10];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline constexpr uint32_t kChannels = 33;
inline constexpr uint64_t kControlBytes = sizeof(Channel) * kChannels;

// In the reply to kLoad: one for each kernel, followed by `parameters` sizes (uint32_t each), then
// by the name and its terminating zero; the next one begins at a multiple of 8.
struct KernelRecord {
  uint64_t handle;
  uint32_t parameters;
  uint32_t name_bytes;  // with the zero
};

// The arguments of a launch lie at multiples of 16.
inline constexpr uint64_t kArgumentAlignment = 16;

// Descriptors of the device process, which the driver arranges before it starts.
enum Descriptor : int { kControlFile = 3, kArenaFile = 4, kHostArenaFile = 5, kLifetimePipe = 6 };

inline void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Returns when `word` no longer holds `value`, after a signal, or after `milliseconds`.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int milliseconds) {
  timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

}  // namespace simulated
