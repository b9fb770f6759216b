// SPDX-License-Identifier: Apache-2.0
// The functions of HCCL that this plugin calls, found at run time, as those of library/acl.hpp are. Prototypes
// and numbers are those of the public headers of hicann/hccl (include/hccl.h) and hicann/hcomm (hccl_comm.h,
// hccl_types.h).
#pragma once

#include <cstdint>
#include <string>

#include "acl.hpp"

namespace ascend::hccl {

using Comm = void*;
using Result = int;  // HcclResult

constexpr Result kInvalidParameter = 1;  // HCCL_E_PARA
constexpr Result kNoMemory = 3;          // HCCL_E_MEMORY
constexpr Result kNotSupported = 5;      // HCCL_E_NOT_SUPPORT
constexpr Result kInUse = 20;            // HCCL_E_AGAIN
constexpr Result kOutOfMemory = 24;      // HCCL_E_OOM, which older headers lack

// HcclDataType
constexpr int kUint8 = 7;

// HcclReduceOp
enum Reduction { kSum = 0, kProduct = 1, kMax = 2, kMin = 3 };

// What one rank tells the others so that they find each other.
struct RootInfo {
  char bytes[4108];
};

// HcclSendRecvItem
struct Item {
  int kind;  // 0: send, 1: receive
  void* memory;
  uint64_t count;
  int type;
  uint32_t peer;
};
static_assert(sizeof(Item) == 32);

// X(result, member, name, (parameters), whether a version may lack it)
#define ASCEND_COLLECTIVE_FUNCTIONS(X)                                                             \
  X(Result, root_info, HcclGetRootInfo, (RootInfo*), false)                                        \
  X(Result, join, HcclCommInitRootInfo, (uint32_t size, const RootInfo*, uint32_t rank, Comm*),    \
    false)                                                                                         \
  X(Result, destroy, HcclCommDestroy, (Comm), false)                                               \
  X(Result, all_reduce, HcclAllReduce,                                                             \
    (void* src, void* dst, uint64_t count, int type, int reduction, Comm, Stream), false)          \
  X(Result, all_gather, HcclAllGather,                                                             \
    (void* src, void* dst, uint64_t count, int type, Comm, Stream), false)                         \
  X(Result, reduce_scatter, HcclReduceScatter,                                                     \
    (void* src, void* dst, uint64_t count, int type, int reduction, Comm, Stream), false)          \
  X(Result, broadcast, HcclBroadcast,                                                              \
    (void* memory, uint64_t count, int type, uint32_t root, Comm, Stream), false)                  \
  X(Result, send, HcclSend, (void* src, uint64_t count, int type, uint32_t to, Comm, Stream),      \
    false)                                                                                         \
  X(Result, receive, HcclRecv, (void* dst, uint64_t count, int type, uint32_t from, Comm, Stream), \
    false)                                                                                         \
  X(Result, reduce, HcclReduce,                                                                    \
    (void* src, void* dst, uint64_t count, int type, int reduction, uint32_t root, Comm, Stream),  \
    false)                                                                                         \
  X(Result, batch, HcclBatchSendRecv, (Item*, uint32_t count, Comm, Stream), false)                \
  X(Result, async_error, HcclGetCommAsyncError, (Comm, Result*), true)                             \
  X(const char*, error_text, HcclGetErrorString, (Result), true)

struct Functions {
#define ASCEND_MEMBER(result, member, name, parameters, optional) \
  result(*member) parameters = nullptr;
  ASCEND_COLLECTIVE_FUNCTIONS(ASCEND_MEMBER)
#undef ASCEND_MEMBER
};
extern Functions library;

// Opens the libraries, once. The text is empty, or says what is missing and how to install it.
const std::string& problem();

// HcclDataType of a TENON_DTYPE_ id in which HCCL reduces numbers; -1: it reduces none of this dtype.
int reduced_type(int dtype);

}  // namespace ascend::hccl
