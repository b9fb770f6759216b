// SPDX-License-Identifier: Apache-2.0
// Instructions between two points of a program, counted by callgrind. Without valgrind nothing
// happens.
#ifndef TENON_TESTS_COUNTING_H_
#define TENON_TESTS_COUNTING_H_

#ifdef __cplusplus
extern "C" {
#endif

void count_begin(void);
// Ends the count and has callgrind write it to a file, with `name` in it.
void count_end(const char* name);

#ifdef __cplusplus
}
#endif
#endif
