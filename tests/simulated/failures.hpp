// SPDX-License-Identifier: Apache-2.0
// Failures on demand, and counts of calls, of all libraries of the simulator.
//
// SIMULATED_FAIL="cuMemAlloc_v2:3:2,kernel:10:700" lets the third call of cuMemAlloc_v2 return
// error 2, and the tenth kernel end with error 700. "name:n:error:times" lets `times` calls from
// the n-th on fail.
#pragma once

#include <cstdint>

namespace simulated {

// Counts a call of `name`; returns the error that it has to return, or 0.
int count_call(const char* name);

// A number from the environment, or `otherwise`.
uint64_t environment(const char* name, uint64_t otherwise);

}  // namespace simulated

extern "C" {
// The n-th call from now on (1: the next), and `times` - 1 after it, return `error`.
void simulated_fail(const char* name, uint64_t n, int error, uint64_t times);
void simulated_forget_failures();
uint64_t simulated_calls(const char* name);  // so far; of all functions if `name` is NULL
}
