/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated accelerator. Board addresses lie in a reserved window without access rights; the
 * cells behind them are mapped elsewhere, and only the functions here know where. */
#define _GNU_SOURCE
#include "toy_hardware.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Memory in use, sorted by address. What lies between two blocks is free. */
typedef struct block {
  char* begin;
  uint64_t bytes;
  struct block* next;
} block;

static struct {
  char* window; /* the board's addresses, PROT_NONE; NULL while it is off */
  char* cells;  /* the memory itself */
  block* used;
  int users; /* power_on without a power_off */
} boards[TOY_BOARDS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t allocations_left = INT64_MAX;

static char* reserve(int access) {
  void* memory =
      mmap(NULL, TOY_BOARD_BYTES, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(uint32_t board) {
  if (boards[board].window) munmap(boards[board].window, TOY_BOARD_BYTES);
  if (boards[board].cells) munmap(boards[board].cells, TOY_BOARD_BYTES);
  boards[board].window = boards[board].cells = NULL;
}

static int map(uint32_t board) {
  const char* limit = getenv("TOY_FAIL_ALLOC_AFTER");
  allocations_left = limit ? strtoll(limit, NULL, 10) : INT64_MAX;
  boards[board].cells = reserve(PROT_READ | PROT_WRITE);
  boards[board].window = reserve(PROT_NONE);
  if (boards[board].cells && boards[board].window) return TOY_SUCCESS;
  unmap(board);
  return TOY_ERROR_POWER;
}

int toy_power_on(uint32_t board) {
  pthread_mutex_lock(&mutex);
  const int error = boards[board].users > 0 ? TOY_SUCCESS : map(board);
  if (error == TOY_SUCCESS) ++boards[board].users;
  pthread_mutex_unlock(&mutex);
  return error;
}

void toy_power_off(uint32_t board) {
  pthread_mutex_lock(&mutex);
  if (--boards[board].users == 0) unmap(board);
  pthread_mutex_unlock(&mutex);
}

static char* align_up(char* address, uint64_t align) {
  return address + (-(uintptr_t)address & (align - 1));
}

/* First fit: the first gap between used blocks that is wide enough. */
static int place(uint32_t board, uint64_t bytes, uint64_t align, void** address) {
  char* const end = boards[board].window + TOY_BOARD_BYTES;
  char* candidate = align_up(boards[board].window, align);
  block** link = &boards[board].used;
  for (; *link && candidate + bytes > (*link)->begin; link = &(*link)->next)
    candidate = align_up((*link)->begin + (*link)->bytes, align);
  if (candidate > end || bytes > (uint64_t)(end - candidate)) return TOY_ERROR_MEMORY;
  block* fresh = malloc(sizeof *fresh);
  if (!fresh) return TOY_ERROR_MEMORY;
  *fresh = (block){candidate, bytes, *link};
  *link = fresh;
  *address = candidate;
  return TOY_SUCCESS;
}

int toy_memory_alloc(uint32_t board, uint64_t bytes, uint64_t align, void** address) {
  if (bytes > TOY_BOARD_BYTES) return TOY_ERROR_MEMORY;
  pthread_mutex_lock(&mutex);
  int error = TOY_ERROR_MEMORY;
  if (allocations_left > 0) error = place(board, bytes, align, address);
  if (error == TOY_SUCCESS) --allocations_left;
  pthread_mutex_unlock(&mutex);
  return error;
}

int toy_memory_free(uint32_t board, void* address) {
  pthread_mutex_lock(&mutex);
  block** link = &boards[board].used;
  while (*link && (*link)->begin != address) link = &(*link)->next;
  block* const gone = *link;
  if (gone) *link = gone->next;
  pthread_mutex_unlock(&mutex);
  free(gone);
  return gone ? TOY_SUCCESS : TOY_ERROR_ADDRESS;
}

void* toy_core_view(const void* address, uint64_t bytes) {
  for (int board = 0; board < TOY_BOARDS; ++board) {
    if (!boards[board].window) continue;
    /* An address below the window wraps round to a huge offset. */
    const uint64_t offset = (uintptr_t)address - (uintptr_t)boards[board].window;
    if (offset < TOY_BOARD_BYTES && bytes <= TOY_BOARD_BYTES - offset)
      return boards[board].cells + offset;
  }
  return NULL;
}

int toy_copy_in(void* address, const void* host, uint64_t bytes) {
  void* to = toy_core_view(address, bytes);
  if (!to || toy_core_view(host, 0)) return TOY_ERROR_ADDRESS;
  memcpy(to, host, bytes);
  return TOY_SUCCESS;
}

int toy_copy_out(void* host, const void* address, uint64_t bytes) {
  const void* from = toy_core_view(address, bytes);
  if (!from || toy_core_view(host, 0)) return TOY_ERROR_ADDRESS;
  memcpy(host, from, bytes);
  return TOY_SUCCESS;
}

int toy_copy_board(void* to_address, const void* from_address, uint64_t bytes) {
  void* to = toy_core_view(to_address, bytes);
  const void* from = toy_core_view(from_address, bytes);
  if (!to || !from) return TOY_ERROR_ADDRESS;
  memmove(to, from, bytes);
  return TOY_SUCCESS;
}

int toy_set(void* address, uint64_t bytes, const void* pattern, uint32_t pattern_bytes) {
  char* to = toy_core_view(address, bytes);
  if (!to) return TOY_ERROR_ADDRESS;
  for (uint64_t i = 0; i < bytes; i += pattern_bytes) memcpy(to + i, pattern, pattern_bytes);
  return TOY_SUCCESS;
}
