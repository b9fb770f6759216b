// SPDX-License-Identifier: Apache-2.0
// The functions that plugins/ascend declares of HCCL, beside its headers. Compiled, not run.
#include <hccl/hccl.h>

#include "library/hccl.hpp"
#include "same_call.hpp"

namespace ascend::hccl {
#define CHECK_COLLECTIVE(result, member, name, parameters, optional) \
  CHECK_CALL(result, member, parameters, name)
ASCEND_COLLECTIVE_FUNCTIONS(CHECK_COLLECTIVE)
static_assert(sizeof(RootInfo) == sizeof(HcclRootInfo));
static_assert(sizeof(Item) == sizeof(HcclSendRecvItem));
static_assert(offsetof(Item, memory) == offsetof(HcclSendRecvItem, buf));
static_assert(offsetof(Item, peer) == offsetof(HcclSendRecvItem, remoteRank));
static_assert(kInvalidParameter == int{HCCL_E_PARA} && kNoMemory == int{HCCL_E_MEMORY});
static_assert(kNotSupported == int{HCCL_E_NOT_SUPPORT} && kInUse == int{HCCL_E_AGAIN});
static_assert(kUint8 == int{HCCL_DATA_TYPE_UINT8});
static_assert(kSum == int{HCCL_REDUCE_SUM} && kProduct == int{HCCL_REDUCE_PROD});
static_assert(kMax == int{HCCL_REDUCE_MAX} && kMin == int{HCCL_REDUCE_MIN});
static_assert(int{HCCL_SEND} == 0 && int{HCCL_RECV} == 1);
}  // namespace ascend::hccl
