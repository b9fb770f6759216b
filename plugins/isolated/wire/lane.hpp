// SPDX-License-Identifier: Apache-2.0
// The memory that a program and an isolated process share: a few lanes, each with room for one
// request at a time. Both sides are built from this file; the version is checked all the same.
//
// The program writes a command and its message, then counts `asked` up. The process answers into
// the same place and sets `answered` to the same number. The side that waits spins for a moment,
// because most answers come within microseconds, and then sleeps on the word; the other side wakes
// only sleepers.
#pragma once

#include <tenon/abi.h>

#include <atomic>
#include <cstddef>

namespace tenon::isolated {

inline constexpr uint64_t kMagic = 0x6574616c6f73694e;
inline constexpr uint32_t kWireVersion = 1;
inline constexpr int kSharedDescriptor = 3;  // of the shared memory, in the isolated process
inline constexpr uint32_t kLanes = 4;        // requests under way at one time
inline constexpr uint64_t kMessageBytes = 1 << 20;
inline constexpr uint64_t kStagingBytes = 256 << 10;  // of each of the two halves

enum class Command : uint32_t {
  kLoad,     // path, folders -> description of the plugin
  kOpen,     // device index
  kAlloc,    // device, bytes, align -> address
  kFree,     // device, address, bytes
  kCopyIn,   // device, address, offset, bytes, half: from staging
  kCopyOut,  // likewise, to staging
  kCopyOn,   // device, two addresses with offsets, bytes
  kFill,     // device, address, offset, bytes, pattern
  kSync,     // device
  kCanRun,   // row, arguments -> yes or no
  kCall,     // device, operator, arguments, outputs -> random offset, results of data-dependent
             // operators
  kCollect,  // device, addresses that receive those results
  kStop,     // unload the plugin and exit
};

// The last value of `answered`, written by the program when the process is gone.
inline constexpr uint32_t kGone = ~uint32_t{0};

struct Lane {
  alignas(64) std::atomic<uint32_t> asked;
  std::atomic<uint32_t> process_sleeps;
  alignas(64) std::atomic<uint32_t> answered;
  std::atomic<uint32_t> program_sleeps;
  alignas(64) Command command;
  tenon_status status;
  uint32_t message_bytes;
  alignas(64) unsigned char message[kMessageBytes];
  alignas(4096) unsigned char staging[2][kStagingBytes];
};

struct Shared {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;  // sizeof(Shared): both sides agree on all of the above
  alignas(4096) Lane lanes[kLanes];
};

static_assert(std::atomic<uint32_t>::is_always_lock_free, "the words are shared between processes");

// Spinning takes a processor on either side. This says how many lanes, from the first one on, leave
// enough of them to others.
uint32_t lanes_that_spin();

enum class Patience { kSleep, kSpinFirst };
inline Patience patience_of(uint32_t lane) {
  return lane < lanes_that_spin() ? Patience::kSpinFirst : Patience::kSleep;
}

// Wait until `word` is no longer `seen`. `sleeps` tells the other side to wake us. Returns false if
// that took longer than `timeout_ns` (0: no limit).
bool wait_for_change(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps, uint32_t seen,
                     Patience patience, uint64_t timeout_ns);
// Sets `word` and wakes the thread that sleeps on it.
void change(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps, uint32_t value);
// The process is gone: no thread waits for its answers any more.
void announce_end(Lane& lane);

}  // namespace tenon::isolated
