/* SPDX-License-Identifier: Apache-2.0
 *
 * The make-believe accelerator. Board addresses lie in a reserved window without access rights; the
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* window; /* the boards' address range, PROT_NONE */
static char* cells;  /* the memory itself */
static block* used[TOY_BOARDS];
static int64_t allocations_left = INT64_MAX;

static void map_boards(void) {
  const size_t bytes = TOY_BOARDS * TOY_BOARD_BYTES;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* addresses = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (addresses == MAP_FAILED || memory == MAP_FAILED) return;
  window = addresses;
  cells = memory;
  const char* limit = getenv("TOY_FAIL_ALLOC_AFTER");
  if (limit) allocations_left = strtoll(limit, NULL, 10);
}

int toy_start(void) {
  pthread_once(&once, map_boards);
  return window ? TOY_SUCCESS : TOY_ERROR_START;
}

static char* align_up(char* address, uint64_t align) {
  return address + (-(uintptr_t)address & (align - 1));
}

/* First fit: the first gap between used blocks that is wide enough. */
static int place(uint32_t board, uint64_t bytes, uint64_t align, void** address) {
  char* const end = window + (board + 1) * TOY_BOARD_BYTES;
  char* candidate = align_up(end - TOY_BOARD_BYTES, align);
  block** link = &used[board];
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
  if (board >= TOY_BOARDS) return TOY_ERROR_ADDRESS;
  if (bytes > TOY_BOARD_BYTES) return TOY_ERROR_MEMORY;
  pthread_mutex_lock(&mutex);
  int error = TOY_ERROR_MEMORY;
  if (allocations_left > 0) error = place(board, bytes, align, address);
  if (error == TOY_SUCCESS) --allocations_left;
  pthread_mutex_unlock(&mutex);
  return error;
}

int toy_memory_free(void* address) {
  int error = TOY_ERROR_ADDRESS;
  pthread_mutex_lock(&mutex);
  for (int board = 0; board < TOY_BOARDS && error; ++board) {
    for (block** link = &used[board]; *link; link = &(*link)->next) {
      if ((*link)->begin != address) continue;
      block* gone = *link;
      *link = gone->next;
      free(gone);
      error = TOY_SUCCESS;
      break;
    }
  }
  pthread_mutex_unlock(&mutex);
  return error;
}

void* toy_core_view(const void* address, uint64_t bytes) {
  const uint64_t offset =
      (uint64_t)((uintptr_t)address - (uintptr_t)window); /* below: wraps to huge */
  if (!window || offset >= TOY_BOARDS * TOY_BOARD_BYTES) return NULL;
  if (bytes > TOY_BOARD_BYTES - offset % TOY_BOARD_BYTES) return NULL;
  return cells + offset;
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
