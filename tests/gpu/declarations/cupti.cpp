// SPDX-License-Identifier: Apache-2.0
// What plugins/cuda declares of CUPTI, beside its header. Compiled, not run.
#include "runtime/cupti.hpp"

#include <cupti.h>

#include "same_call.hpp"

using namespace gpu::cupti;

#define CHECK_CUPTI(member, name, parameters) CHECK_CALL(Result, member, parameters, name)
TENON_CUPTI_FUNCTIONS(CHECK_CUPTI)
static_assert(kIsSameCall<BufferRequested, CUpti_BuffersCallbackRequestFunc>);
static_assert(kIsSameCall<BufferCompleted, CUpti_BuffersCallbackCompleteFunc>);

static_assert((CUPTI_API_VERSION >= kFirstVersion && CUPTI_API_VERSION <= kLastVersionOf12) ||
              (CUPTI_API_VERSION >= kFirstVersionOf13 && CUPTI_API_VERSION <= kLastVersionOf13));
static_assert(kMemcpy == CUPTI_ACTIVITY_KIND_MEMCPY && kMemset == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(kMemcpyPeer == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(kDriver == CUPTI_ACTIVITY_KIND_DRIVER && kRuntime == CUPTI_ACTIVITY_KIND_RUNTIME);
static_assert(kConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(kExternalCorrelation == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(kCustom2 == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
static_assert(kMaxLimitReached == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
#else
using Kernel = CUpti_ActivityKernel9;
#endif
#if CUPTI_API_VERSION >= 26
using Memcpy = CUpti_ActivityMemcpy6;
#else
using Memcpy = CUpti_ActivityMemcpy5;
#endif

#define CHECK_MEMBER(ours, member, theirs, their_member)                    \
  static_assert(offsetof(ours, member) == offsetof(theirs, their_member) && \
                    sizeof(ours::member) == sizeof(theirs::their_member),   \
                #theirs " has " #their_member " elsewhere")
CHECK_MEMBER(KernelRecord, kind, Kernel, kind);
CHECK_MEMBER(KernelRecord, start, Kernel, start);
CHECK_MEMBER(KernelRecord, end, Kernel, end);
CHECK_MEMBER(KernelRecord, device, Kernel, deviceId);
CHECK_MEMBER(KernelRecord, stream, Kernel, streamId);
CHECK_MEMBER(KernelRecord, correlation, Kernel, correlationId);
CHECK_MEMBER(KernelRecord, name, Kernel, name);
#define CHECK_MOVED(ours, theirs)               \
  CHECK_MEMBER(ours, kind, theirs, kind);       \
  CHECK_MEMBER(ours, bytes, theirs, bytes);     \
  CHECK_MEMBER(ours, start, theirs, start);     \
  CHECK_MEMBER(ours, end, theirs, end);         \
  CHECK_MEMBER(ours, device, theirs, deviceId); \
  CHECK_MEMBER(ours, correlation, theirs, correlationId)
CHECK_MOVED(MemcpyRecord, Memcpy);
CHECK_MOVED(PeerRecord, CUpti_ActivityMemcpyPtoP4);
CHECK_MOVED(MemsetRecord, CUpti_ActivityMemset4);
CHECK_MEMBER(CorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
CHECK_MEMBER(CorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
CHECK_MEMBER(CorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
