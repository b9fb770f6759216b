// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL and RCCL, which have the same names in both.
//
// Sources of the signatures: the NCCL API reference (2.28) and the RCCL API reference (2.22).
// tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>

#include "runtime/driver.hpp"

namespace gpu::nccl {

using Result = int;  // ncclResult_t: 0 is success
using Comm = void*;
struct UniqueId {
  char bytes[128];
};
static_assert(sizeof(UniqueId) == sizeof(tenon_comm_id));

// X(result, member, name, parameters, whether older versions may lack it)
// clang-format off
#define TENON_GPU_COLLECTIVE_FUNCTIONS(X)                                                                   \
  X(const char*, error_text, ncclGetErrorString, (Result), false)                                           \
  X(const char*, last_error, ncclGetLastError, (Comm), true) /* since NCCL 2.13 */                          \
  X(Result, unique_id, ncclGetUniqueId, (UniqueId* out), false)                                             \
  X(Result, init_rank, ncclCommInitRank, (Comm* out, int size, UniqueId id, int rank), false)               \
  X(Result, destroy, ncclCommDestroy, (Comm), false)                                                        \
  X(Result, abort, ncclCommAbort, (Comm), false)                                                            \
  X(Result, async_error, ncclCommGetAsyncError, (Comm, Result* out), false)                                 \
  X(Result, all_reduce, ncclAllReduce,                                                                      \
    (const void* src, void* dst, size_t count, int type, int reduction, Comm, Stream), false)               \
  X(Result, all_gather, ncclAllGather, (const void* src, void* dst, size_t count, int type, Comm, Stream), false) \
  X(Result, reduce_scatter, ncclReduceScatter,                                                              \
    (const void* src, void* dst, size_t count, int type, int reduction, Comm, Stream), false)               \
  X(Result, broadcast, ncclBroadcast,                                                                       \
    (const void* src, void* dst, size_t count, int type, int root, Comm, Stream), false)                    \
  X(Result, send, ncclSend, (const void* src, size_t count, int type, int to, Comm, Stream), false)         \
  X(Result, receive, ncclRecv, (void* dst, size_t count, int type, int from, Comm, Stream), false)         \
  X(Result, reduce, ncclReduce,                                                                             \
    (const void* src, void* dst, size_t count, int type, int reduction, int root, Comm, Stream), false)     \
  X(Result, count, ncclCommCount, (Comm, int* out), false)                                                  \
  X(Result, group_start, ncclGroupStart, (), false)                                                         \
  X(Result, group_end, ncclGroupEnd, (), false)                                                             \
  X(Result, split, ncclCommSplit, (Comm, int color, int key, Comm* out, void* config), true) /* since 2.18 */
// clang-format on

struct Functions {
#define TENON_GPU_MEMBER(result, member, name, parameters, optional) result(*member) parameters;
  TENON_GPU_COLLECTIVE_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

}  // namespace gpu::nccl
