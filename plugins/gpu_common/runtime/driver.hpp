// SPDX-License-Identifier: Apache-2.0
// The vendor's driver, opened at run time. CUDA's driver API and HIP's runtime offer the same
// functions under different names, with handles and addresses that are one machine word in both; so
// one table of function pointers serves both plugins, and neither needs the vendor's headers.
//
// Sources of the signatures: the CUDA Driver API reference (13.0) and the HIP runtime API reference
// (6.4). tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/abi.h>

namespace gpu {

using Error = int;  // CUresult, hipError_t: 0 is success
using Stream = void*;
using Event = void*;
using Module = void*;
using Function = void*;
using Graph = void*;
using GraphExec = void*;
using Pool = void*;

struct IpcHandle {
  char bytes[64];
};

// Every function that both vendors have, once: X(member, CUDA's name, HIP's name, parameters).
// clang-format off
#define TENON_GPU_FUNCTIONS(X)                                                                                      \
  X(init, cuInit, hipInit, (unsigned flags))                                                                        \
  X(driver_version, cuDriverGetVersion, hipDriverGetVersion, (int* version))                                        \
  X(device_count, cuDeviceGetCount, hipGetDeviceCount, (int* count))                                                \
  X(device_get, cuDeviceGet, hipDeviceGet, (int* device, int index))                                                \
  X(device_name, cuDeviceGetName, hipDeviceGetName, (char* name, int capacity, int device))                         \
  X(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t* bytes, int device))                             \
  X(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, (int* value, int attribute, int device))         \
  X(device_bus_id, cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char* text, int capacity, int device))               \
  X(device_can_access_peer, cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, (int* can, int device, int peer))           \
  X(priority_range, cuCtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange, (int* least, int* greatest))      \
  X(memory_info, cuMemGetInfo_v2, hipMemGetInfo, (size_t* free, size_t* total))                                     \
  X(device_alloc, cuMemAlloc_v2, hipMalloc, (void** out, size_t bytes))                                             \
  X(device_free, cuMemFree_v2, hipFree, (void* memory))                                                             \
  X(host_alloc, cuMemHostAlloc, hipHostMalloc, (void** out, size_t bytes, unsigned flags))                          \
  X(host_free, cuMemFreeHost, hipHostFree, (void* memory))                                                          \
  X(managed_alloc, cuMemAllocManaged, hipMallocManaged, (void** out, size_t bytes, unsigned flags))                 \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, (void* dst, const void* src, size_t bytes, Stream))   \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void* dst, const void* src, size_t bytes, Stream))     \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (void* dst, const void* src, size_t bytes, Stream))   \
  X(fill8, cuMemsetD8Async, hipMemsetD8Async, (void* dst, unsigned char value, size_t count, Stream))               \
  X(fill16, cuMemsetD16Async, hipMemsetD16Async, (void* dst, unsigned short value, size_t count, Stream))           \
  X(fill32, cuMemsetD32Async, hipMemsetD32Async, (void* dst, unsigned value, size_t count, Stream))                 \
  X(stream_create, cuStreamCreateWithPriority, hipStreamCreateWithPriority, (Stream* out, unsigned flags, int priority)) \
  X(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (Stream))                                                 \
  X(stream_sync, cuStreamSynchronize, hipStreamSynchronize, (Stream))                                               \
  X(stream_query, cuStreamQuery, hipStreamQuery, (Stream))                                                          \
  X(stream_wait, cuStreamWaitEvent, hipStreamWaitEvent, (Stream, Event, unsigned flags))                            \
  X(event_create, cuEventCreate, hipEventCreateWithFlags, (Event* out, unsigned flags))                             \
  X(event_destroy, cuEventDestroy_v2, hipEventDestroy, (Event))                                                     \
  X(event_record, cuEventRecord, hipEventRecord, (Event, Stream))                                                   \
  X(event_query, cuEventQuery, hipEventQuery, (Event))                                                              \
  X(event_sync, cuEventSynchronize, hipEventSynchronize, (Event))                                                   \
  X(event_elapsed, cuEventElapsedTime, hipEventElapsedTime, (float* milliseconds, Event begin, Event end))          \
  X(module_load, cuModuleLoadData, hipModuleLoadData, (Module* out, const void* image))                             \
  X(module_unload, cuModuleUnload, hipModuleUnload, (Module))                                                       \
  X(module_function, cuModuleGetFunction, hipModuleGetFunction, (Function* out, Module, const char* name))          \
  X(function_attribute, cuFuncGetAttribute, hipFuncGetAttribute, (int* value, int attribute, Function))             \
  X(launch, cuLaunchKernel, hipModuleLaunchKernel,                                                                  \
    (Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,               \
     unsigned block_z, unsigned shared_bytes, Stream, void** parameters, void** extra))                             \
  X(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, (Stream, int mode))                              \
  X(capture_end, cuStreamEndCapture, hipStreamEndCapture, (Stream, Graph* out))                                     \
  X(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                                   \
    (GraphExec* out, Graph, unsigned long long flags))                                                              \
  X(graph_launch, cuGraphLaunch, hipGraphLaunch, (GraphExec, Stream))                                               \
  X(graph_exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (GraphExec))                                       \
  X(graph_destroy, cuGraphDestroy, hipGraphDestroy, (Graph))                                                        \
  X(ipc_export, cuIpcGetMemHandle, hipIpcGetMemHandle, (IpcHandle* out, void* memory))                              \
  X(ipc_open, cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (void** out, IpcHandle, unsigned flags))                  \
  X(ipc_close, cuIpcCloseMemHandle, hipIpcCloseMemHandle, (void* memory))                                           \
  X(pool_of_device, cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool, (Pool* out, int device))                 \
  X(pool_set, cuMemPoolSetAttribute, hipMemPoolSetAttribute, (Pool, int attribute, void* value))                    \
  X(pool_get, cuMemPoolGetAttribute, hipMemPoolGetAttribute, (Pool, int attribute, void* value))                    \
  X(pool_trim, cuMemPoolTrimTo, hipMemPoolTrimTo, (Pool, size_t keep))                                              \
  X(pool_alloc, cuMemAllocAsync, hipMallocAsync, (void** out, size_t bytes, Stream))                                \
  X(pool_free, cuMemFreeAsync, hipFreeAsync, (void* memory, Stream))
// clang-format on

struct Driver {
#define TENON_GPU_MEMBER(member, cuda, hip, parameters) Error(*member) parameters;
  TENON_GPU_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

// Filled by the first load_driver that succeeds; read-only from then on.
extern Driver driver;

// Opens the vendor's driver (vendor.hpp names it, and the variable that overrides it) and
// initialises it. Everything else is called after a success. TENON_UNAVAILABLE says what is missing.
tenon_status load_driver(tenon_err* err);

// Numbers that CUDA and HIP share.
namespace error {
inline constexpr Error kAborted = -1;  // ours: see wait_for in stream.hpp
inline constexpr Error kSuccess = 0;
inline constexpr Error kInvalidValue = 1;
inline constexpr Error kOutOfMemory = 2;
inline constexpr Error kNoDevice = 100;
inline constexpr Error kInvalidImage = 200;
inline constexpr Error kNoBinary = 209;
inline constexpr Error kPeerUnsupported = 217;
inline constexpr Error kNotFound = 500;
inline constexpr Error kNotReady = 600;
inline constexpr Error kIllegalAddress = 700;
inline constexpr Error kOutOfResources = 701;
inline constexpr Error kPeerAlreadyEnabled = 704;
inline constexpr Error kPeerNotEnabled = 705;
inline constexpr Error kLaunchFailed = 719;
inline constexpr Error kNotSupported = 801;
inline constexpr Error kFirstCaptureError = 900;
inline constexpr Error kLastCaptureError = 908;
}  // namespace error
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kManagedGlobal = 1;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReserved = 5;
inline constexpr int kPoolUsed = 7;
inline constexpr int kFunctionMaxThreads = 0;

}  // namespace gpu
