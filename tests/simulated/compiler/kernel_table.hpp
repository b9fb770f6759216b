// SPDX-License-Identifier: Apache-2.0
// What a compiled program exports, for the device process: its kernels, and where a thread finds
// its indices.
#pragma once

namespace simulated {

struct Dim3 {
  unsigned x, y, z;
};

// The built-in variables of one thread.
struct ThreadIndex {
  Dim3 thread, block, block_dim, grid_dim;
  char* dynamic_shared;
  char *shared_begin, *shared_end;  // variables in shared memory, if known
};

constexpr unsigned kPostedBytes = 64;

struct KernelEntry {
  const char* name;  // nullptr ends the table
  void (*call)(void** arguments);
  const unsigned* parameter_bytes;
  unsigned parameters;
};

// Exported as `simulated_program`.
struct Program {
  const char* architecture;  // "sm_90", "gfx90a"
  // Shared memory of a block is a static variable, so only one launch runs at a time.
  bool has_shared_memory;
  // Where these variables are, if known; they are filled with a pattern before each block.
  char *shared_begin, *shared_end;
  unsigned warp_size;
  const KernelEntry* kernels;
};

}  // namespace simulated

// Offered to programs by the device process.
extern "C" {
// Not thread_local, which would call a function for each access, because it may have a constructor.
extern __thread simulated::ThreadIndex* simulated_here __attribute__((tls_model("initial-exec")));

// Waits for the other threads of the block that have not ended. `value` is added up over them;
// returns the sum.
unsigned simulated_block_barrier(unsigned value);
// Waits for the threads of the warp in `mask` that have not ended, and posts up to kPostedBytes
// to them; the rest is zeros.
void simulated_warp_barrier(unsigned long long mask, const void* value, unsigned bytes);
// What lane `lane` posted at the last barrier, or nullptr if that thread has ended.
const void* simulated_warp_value(unsigned lane);
unsigned simulated_lane();
// The lanes of the warp whose threads have not ended.
unsigned long long simulated_active_lanes();
// Ends the launch with an error number of the driver.
[[noreturn]] void simulated_stop(int error);
// Ends the launch as a failed one, and says why on the error stream.
[[noreturn]] void simulated_refuse(const char* why);

// Copies of one thread to shared memory that happen at any time before it waits for them: `bytes` from `from`, and zeros up to
// `size`. The simulator makes them as late as possible or, with SIMULATED_SEED, some of them at once.
void simulated_copy_later(void* to, const void* from, unsigned bytes, unsigned size);
// The copies since the last call are a group.
void simulated_commit_copies();
// Waits until no more than the last `pending` groups are under way.
void simulated_wait_for_copies(unsigned pending);
}
