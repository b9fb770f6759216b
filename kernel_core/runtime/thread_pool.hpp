// SPDX-License-Identifier: Apache-2.0
// The process's one thread pool. A region is a range cut into chunks, an equal share of them for
// each thread, the caller included. Who is done claims chunks of the others, so a worker that comes
// late costs nothing but its share.
#pragma once

#include "kernel_core/abi/slots.hpp"

namespace tenon::core {

// Run fn over [begin, end) in chunks of at least `grain`. Serial if the range is shorter than two
// grains, inside another region, or while another thread is running one: it never waits for a turn.
using slots::parallel_for;

// Threads that a region may use, the caller included. From TENON_NUM_THREADS, else the processors
// this process may run on.
using slots::thread_count;

// Values below 1 mean 1. Ends the workers of the old count; ignored inside a region.
using slots::set_thread_count;

}  // namespace tenon::core
