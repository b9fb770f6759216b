// SPDX-License-Identifier: Apache-2.0
// The functions of CANN that this plugin calls, found at run time: neither headers nor libraries of CANN
// are needed to build. Numbers and prototypes are those of the public headers of hicann/runtime
// (include/external/acl/acl_base_rt.h, acl_rt.h) and, for aclCreateTensor and its family, of CANN's
// documentation of aclnn (hicann/opbase, docs/en/api/nnopbase/aclnn).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

struct aclTensor;
struct aclTensorList;
struct aclScalar;
struct aclIntArray;
struct aclBoolArray;
struct aclOpExecutor;

namespace ascend {

using Stream = void*;
using Event = void*;
using Model = void*;  // aclmdlRI

constexpr int kRepeatInitialize = 100002;
constexpr int kBadAlloc = 200000;
constexpr int kStorageOverLimit = 300000;
constexpr int kDeviceOutOfMemory = 207001;  // ACL_ERROR_RT_MEMORY_ALLOCATION
// aclFormat; functions of images ask for the one that names their axes.
constexpr int kFormatNchw = 0, kFormatNd = 2, kFormatNcdhw = 30, kFormatNc = 35, kFormatNcl = 47;
constexpr int kDeterministic = 0;       // aclSysParamOpt
constexpr int kHugeFirst = 0;           // aclrtMemMallocPolicy
constexpr int kHbm = 1;                 // aclrtMemAttr
constexpr uint32_t kEventSync = 1;      // ACL_EVENT_SYNC
constexpr uint32_t kEventTimeLine = 8;  // ACL_EVENT_TIME_LINE
constexpr int kCaptureRelaxed = 2;      // aclmdlRICaptureMode
constexpr int kRecordedComplete = 1;    // aclrtEventRecordedStatus
enum CopyKind { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

constexpr int kStreamAborted = 107023;  // ACL_ERROR_RT_STREAM_ABORT
constexpr int kNotReady = 1;            // aclrtStreamStatus

// X(result, name, (parameters)). All of them are in CANN 8.
#define ASCEND_RUNTIME_FUNCTIONS(X)                                           \
  X(int, aclInit, (const char*))                                              \
  X(const char*, aclGetRecentErrMsg, (void))                                  \
  X(const char*, aclrtGetSocName, (void))                                     \
  X(int, aclrtGetDeviceCount, (uint32_t*))                                    \
  X(int, aclrtSetDevice, (int32_t))                                           \
  X(int, aclrtResetDevice, (int32_t))                                         \
  X(int, aclrtGetMemInfo, (int, size_t*, size_t*))                            \
  X(int, aclrtMalloc, (void**, size_t, int))                                  \
  X(int, aclrtFree, (void*))                                                  \
  X(int, aclrtMallocHost, (void**, size_t))                                   \
  X(int, aclrtFreeHost, (void*))                                              \
  X(int, aclrtMemcpy, (void*, size_t, const void*, size_t, int))              \
  X(int, aclrtMemset, (void*, size_t, int32_t, size_t))                       \
  X(int, aclrtCreateStream, (Stream*))                                        \
  X(int, aclrtDestroyStream, (Stream))                                        \
  X(int, aclrtSynchronizeStream, (Stream))                                    \
  X(int, aclrtSynchronizeDevice, (void))                                      \
  X(int, aclrtMemcpyAsync, (void*, size_t, const void*, size_t, int, Stream)) \
  X(int, aclrtMemsetAsync, (void*, size_t, int32_t, size_t, Stream))          \
  X(int, aclrtCreateEventExWithFlag, (Event*, uint32_t))                      \
  X(int, aclrtDestroyEvent, (Event))                                          \
  X(int, aclrtRecordEvent, (Event, Stream))                                   \
  X(int, aclrtStreamWaitEvent, (Stream, Event))                               \
  X(int, aclrtQueryEventStatus, (Event, int*))                                \
  X(int, aclrtSynchronizeEvent, (Event))

// NULL where this version of CANN has none.
#define ASCEND_OPTIONAL_FUNCTIONS(X)                             \
  X(int, aclrtDeviceCanAccessPeer, (int32_t*, int32_t, int32_t)) \
  X(int, aclrtDeviceEnablePeerAccess, (int32_t, uint32_t))       \
  X(int, aclrtStreamAbort, (Stream))                             \
  X(int, aclrtStreamQuery, (Stream, int*))                       \
  X(int, aclrtEventGetTimestamp, (Event, uint64_t*))             \
  X(int, aclmdlRICaptureBegin, (Stream, int))                    \
  X(int, aclmdlRICaptureEnd, (Stream, Model*))                   \
  X(int, aclmdlRIExecuteAsync, (Model, Stream))                  \
  X(int, aclmdlRIDestroy, (Model))                               \
  X(int, aclrtGetSysParamOpt, (int, int64_t*))

// Parameters of aclnn functions.
#define ASCEND_OPERATOR_FUNCTIONS(X)                                                        \
  X(aclTensor*, aclCreateTensor,                                                            \
    (const int64_t*, uint64_t, int, const int64_t*, int64_t, int, const int64_t*, uint64_t, \
     void*))                                                                                \
  X(aclScalar*, aclCreateScalar, (void*, int))                                              \
  X(aclTensorList*, aclCreateTensorList, (const aclTensor* const*, uint64_t))               \
  X(aclIntArray*, aclCreateIntArray, (const int64_t*, uint64_t))                            \
  X(aclBoolArray*, aclCreateBoolArray, (const bool*, uint64_t))                             \
  X(int, aclDestroyTensor, (const aclTensor*))                                              \
  X(int, aclDestroyTensorList, (const aclTensorList*))                                      \
  X(int, aclDestroyScalar, (const aclScalar*))                                              \
  X(int, aclDestroyIntArray, (const aclIntArray*))                                          \
  X(int, aclDestroyBoolArray, (const aclBoolArray*))

// Executors that run again (executor.hpp); NULL where this version of CANN has none.
#define ASCEND_OPTIONAL_OPERATOR_FUNCTIONS(X)             \
  X(int, aclSetAclOpExecutorRepeatable, (aclOpExecutor*)) \
  X(int, aclDestroyAclOpExecutor, (aclOpExecutor*))       \
  X(int, aclSetTensorAddr, (aclOpExecutor*, size_t, aclTensor*, void*))

struct Functions {
#define ASCEND_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  ASCEND_RUNTIME_FUNCTIONS(ASCEND_MEMBER)
  ASCEND_OPERATOR_FUNCTIONS(ASCEND_MEMBER)
  ASCEND_OPTIONAL_FUNCTIONS(ASCEND_MEMBER)
  ASCEND_OPTIONAL_OPERATOR_FUNCTIONS(ASCEND_MEMBER)
#undef ASCEND_MEMBER
};
extern Functions acl;

// Opens libascendcl, once. The text is empty, or says what is missing and how to install it.
const std::string& runtime_problem();
// Opens the libraries of operators, once; the same for them.
const std::string& operators_problem();
// A function of one of the libraries of operators; nullptr: this version of CANN has none.
void* find_operator_function(const std::string& name);

// "aclrtMalloc returned 207001 (EL0004: ...)"
std::string describe_failure(const char* function, int error);

// aclDataType of a TENON_DTYPE_ id; -1: CANN has none.
int acl_dtype(int dtype);

}  // namespace ascend
