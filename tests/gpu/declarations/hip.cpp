// SPDX-License-Identifier: Apache-2.0
// The functions and numbers that plugins/rocm declares, beside HIP's headers. Compiled, not run.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1  // overloads of the functions for C++
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "runtime/compiler_functions.hpp"
#include "runtime/driver.hpp"
#include "runtime/vendor.hpp"
#include "same_call.hpp"

#if HIP_VERSION_MAJOR < 6
#error "skipped: expected the headers of ROCm 6 or later"
#endif

using namespace gpu;

// The overload for memory pools is not the function that the plugin opens.
using MallocAsync = hipError_t (*)(void**, size_t, hipStream_t);
constexpr MallocAsync kMallocAsync = &hipMallocAsync;
hipError_t malloc_async(void**, size_t, hipStream_t);
#define hipMallocAsync malloc_async

#define CHECK_DRIVER(member, cuda, hip, parameters) CHECK_CALL(Error, member, parameters, hip)
TENON_GPU_FUNCTIONS(CHECK_DRIVER)

#define CHECK_COMPILER(result, member, cuda, hip, parameters) \
  CHECK_CALL(result, member, parameters, hip)
TENON_GPU_COMPILER_FUNCTIONS(CHECK_COMPILER)

static_assert(error::kInvalidValue == hipErrorInvalidValue);
static_assert(error::kOutOfMemory == hipErrorOutOfMemory);
static_assert(error::kNoDevice == hipErrorNoDevice);
static_assert(error::kInvalidImage == hipErrorInvalidImage);
static_assert(error::kNoBinary == hipErrorNoBinaryForGpu);
static_assert(error::kPeerUnsupported == hipErrorPeerAccessUnsupported);
static_assert(error::kNotFound == hipErrorNotFound);
static_assert(error::kNotReady == hipErrorNotReady);
static_assert(error::kIllegalAddress == hipErrorIllegalAddress);
static_assert(error::kOutOfResources == hipErrorLaunchOutOfResources);
static_assert(error::kPeerAlreadyEnabled == hipErrorPeerAccessAlreadyEnabled);
static_assert(error::kPeerNotEnabled == hipErrorPeerAccessNotEnabled);
static_assert(error::kLaunchFailed == hipErrorLaunchFailure);
static_assert(error::kNotSupported == hipErrorNotSupported);
static_assert(kStreamNonBlocking == hipStreamNonBlocking);
static_assert(kEventDisableTiming == hipEventDisableTiming);
static_assert(kHostPortable == hipHostMallocPortable);
static_assert(kManagedGlobal == hipMemAttachGlobal);
static_assert(kIpcLazyPeerAccess == hipIpcMemLazyEnablePeerAccess);
static_assert(kCaptureRelaxed == hipStreamCaptureModeRelaxed);
