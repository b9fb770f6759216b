// SPDX-License-Identifier: Apache-2.0
// The process's thread pool. parallel_for cuts a range into chunks and gives each thread, the
// caller included, an equal number of them. A thread that has finished its own steals chunks from
// the others, so the caller does not wait for a worker that starts late.
#pragma once

#include "kernel_core/abi/slots.hpp"

namespace tenon::core {

// Runs fn over [begin, end) in chunks of at least `grain`. It runs serially if the range is shorter
// than two grains, inside another parallel_for, and while another thread runs a parallel_for: a
// caller never waits for the pool.
using slots::parallel_for;

// Threads that parallel_for may use, the caller included: TENON_NUM_THREADS, or else the number of
// processors that this process may run on.
using slots::thread_count;

// Values below 1 mean 1. Ends the workers of the old count; ignored inside parallel_for.
using slots::set_thread_count;

// Offers pools beside that one, for threads that have loops of their own (services/threads.h).
void register_threads_service();

}  // namespace tenon::core
