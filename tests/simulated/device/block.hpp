// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel: its blocks run one after another on the calling thread, and the threads
// of a block take turns. A thread runs until it ends or waits at a barrier; in the second case it
// keeps its stack, and the next threads run on another one. A kernel without barriers therefore
// costs no more than a loop over its threads.
#pragma once

#include "../compiler/kernel_table.hpp"

namespace simulated {

struct Launch {
  const KernelEntry* kernel;
  void** arguments;
  unsigned grid[3], block[3];
  unsigned shared_bytes, warp_size;
  char *shared_begin, *shared_end;  // variables in shared memory
};

// Where and why a kernel was stopped.
struct Stop {
  int error = 0;
  const void* address = nullptr;
  Dim3 block = {}, thread = {};
};

Stop run(const Launch& launch);

// Installs the handlers that turn a fault inside a kernel into the end of its launch. Once.
void handle_faults();

}  // namespace simulated
