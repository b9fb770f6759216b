/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated accelerator and its driver: the part that a vendor already has. Two boards with
 * 1 GiB each, whose addresses mean nothing to the host: touching one from host code is a
 * segmentation fault, and the driver refuses host addresses. Replace this by your driver's header.
 */
#ifndef TOY_HARDWARE_H_
#define TOY_HARDWARE_H_

#include <stdint.h>

enum { TOY_BOARDS = 2 };
#define TOY_BOARD_BYTES (UINT64_C(1) << 30)

/* What the driver returns: 0, or one of its own numbers. */
enum { TOY_SUCCESS = 0, TOY_ERROR_MEMORY = 2, TOY_ERROR_ADDRESS = 719, TOY_ERROR_POWER = 999 };

/* Calls are counted: the board stays on until it was switched off as often as on. */
int toy_power_on(uint32_t board);
void toy_power_off(uint32_t board);

/* TOY_FAIL_ALLOC_AFTER=n in the environment makes every allocation after the first n fail. */
int toy_memory_alloc(uint32_t board, uint64_t bytes, uint64_t align, void** address);
int toy_memory_free(uint32_t board, void* address);

/* Transfers. Board to board works across boards, too, and tolerates overlap. */
int toy_copy_in(void* address, const void* host, uint64_t bytes);
int toy_copy_out(void* host, const void* address, uint64_t bytes);
int toy_copy_board(void* to, const void* from, uint64_t bytes);
/* Repeat a pattern; `bytes` is a multiple of `pattern_bytes`. */
int toy_set(void* address, uint64_t bytes, const void* pattern, uint32_t pattern_bytes);

/* Address translation of the boards' cores: what a program that runs there sees at `address`. NULL
 * if not all of `bytes` lie on one board. For kernels only. */
void* toy_core_view(const void* address, uint64_t bytes);

#endif /* TOY_HARDWARE_H_ */
