// SPDX-License-Identifier: Apache-2.0
// The vendor's library, opened at run time: the plugin builds with OpenCL's headers alone and says
// what is missing instead of failing to load.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <tenon/abi.h>

namespace opencl {

// Every function that we call, once: X(name without its "cl").
// clang-format off
#define TENON_OPENCL_FUNCTIONS(X)                                                             \
  X(GetPlatformIDs) X(GetPlatformInfo) X(GetDeviceIDs) X(GetDeviceInfo)                       \
  X(CreateContext) X(ReleaseContext)                                                          \
  X(CreateCommandQueue) X(ReleaseCommandQueue) X(Flush) X(Finish)                             \
  X(CreateBuffer) X(ReleaseMemObject)                                                         \
  X(EnqueueReadBuffer) X(EnqueueWriteBuffer) X(EnqueueCopyBuffer) X(EnqueueFillBuffer)        \
  X(EnqueueMapBuffer) X(EnqueueUnmapMemObject) X(EnqueueMigrateMemObjects)                    \
  X(EnqueueBarrierWithWaitList) X(EnqueueNDRangeKernel)                                       \
  X(RetainEvent) X(ReleaseEvent) X(WaitForEvents) X(GetEventInfo) X(GetEventProfilingInfo)    \
  X(CreateProgramWithSource) X(CreateProgramWithBinary) X(BuildProgram) X(ReleaseProgram)     \
  X(GetProgramInfo) X(GetProgramBuildInfo)                                                    \
  X(CreateKernel) X(ReleaseKernel) X(GetKernelInfo) X(GetKernelWorkGroupInfo) X(SetKernelArg)
// clang-format on

struct Driver {
#define TENON_OPENCL_MEMBER(name) decltype(&::cl##name) name;
  TENON_OPENCL_FUNCTIONS(TENON_OPENCL_MEMBER)
#undef TENON_OPENCL_MEMBER
};

// Filled by the first load_driver that succeeds; read-only from then on.
extern Driver cl;

// Opens libOpenCL.so.1, or what TENON_OPENCL_LIBRARY names. Called before anything else.
tenon_status load_driver(tenon_err* err);

}  // namespace opencl
