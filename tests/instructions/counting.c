// SPDX-License-Identifier: Apache-2.0
#include "counting.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif

#ifdef CALLGRIND_ZERO_STATS
void count_begin(void) {
  CALLGRIND_START_INSTRUMENTATION;  // what came before, loading plugins above all, ran at full
                                    // speed
  CALLGRIND_ZERO_STATS;
}
void count_end(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
#else
void count_begin(void) {}
void count_end(const char* name) { (void)name; }
#endif
