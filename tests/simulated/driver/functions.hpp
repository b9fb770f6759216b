// SPDX-License-Identifier: Apache-2.0
// The functions that CUDA's driver API and HIP's runtime share, once:
// X(member, CUDA's name, HIP's name, parameters, arguments). Those that only one of them has are in
// cuda_names.cpp and hip_names.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "errors.hpp"

namespace simulated {

struct IpcHandle {
  char bytes[64];
};
using HostFunction = void (*)(void*);

// Handles are opaque to the caller; ours are found again in tables.
using StreamHandle = void*;
using EventHandle = void*;
using ModuleHandle = void*;
using FunctionHandle = void*;
using GraphHandle = void*;
using ExecHandle = void*;
using PoolHandle = void*;

// clang-format off
#define SIMULATED_FUNCTIONS(X) \
  X(driver_version, cuDriverGetVersion, hipDriverGetVersion, (int* version), (version)) \
  X(device_count, cuDeviceGetCount, hipGetDeviceCount, (int* count), (count)) \
  X(device_get, cuDeviceGet, hipDeviceGet, (int* device, int index), (device, index)) \
  X(device_name, cuDeviceGetName, hipDeviceGetName, (char* name, int capacity, int device), (name, capacity, device)) \
  X(device_uuid, cuDeviceGetUuid, hipDeviceGetUuid, (char* uuid, int device), (uuid, device)) \
  X(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t* bytes, int device), (bytes, device)) \
  X(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, (int* value, int attribute, int device), (value, attribute, device)) \
  X(device_bus_id, cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char* text, int capacity, int device), (text, capacity, device)) \
  X(can_access_peer, cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, (int* yes, int device, int peer), (yes, device, peer)) \
  X(priority_range, cuCtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange, (int* least, int* greatest), (least, greatest)) \
  X(synchronize, cuCtxSynchronize, hipDeviceSynchronize, (), ()) \
  X(memory_info, cuMemGetInfo_v2, hipMemGetInfo, (size_t* free, size_t* total), (free, total)) \
  X(device_alloc, cuMemAlloc_v2, hipMalloc, (void** out, size_t bytes), (out, bytes)) \
  X(device_free, cuMemFree_v2, hipFree, (void* memory), (memory)) \
  X(host_alloc, cuMemHostAlloc, hipHostMalloc, (void** out, size_t bytes, unsigned flags), (out, bytes, flags)) \
  X(host_free, cuMemFreeHost, hipHostFree, (void* memory), (memory)) \
  X(managed_alloc, cuMemAllocManaged, hipMallocManaged, (void** out, size_t bytes, unsigned flags), (out, bytes, flags)) \
  X(address_range, cuMemGetAddressRange_v2, hipMemGetAddressRange, (void** base, size_t* bytes, void* memory), (base, bytes, memory)) \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, (void* dst, const void* src, size_t bytes, StreamHandle stream), (dst, src, bytes, stream)) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void* dst, const void* src, size_t bytes, StreamHandle stream), (dst, src, bytes, stream)) \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (void* dst, const void* src, size_t bytes, StreamHandle stream), (dst, src, bytes, stream)) \
  X(copy_to_device_now, cuMemcpyHtoD_v2, hipMemcpyHtoD, (void* dst, const void* src, size_t bytes), (dst, src, bytes)) \
  X(copy_to_host_now, cuMemcpyDtoH_v2, hipMemcpyDtoH, (void* dst, const void* src, size_t bytes), (dst, src, bytes)) \
  X(copy_on_device_now, cuMemcpyDtoD_v2, hipMemcpyDtoD, (void* dst, const void* src, size_t bytes), (dst, src, bytes)) \
  X(fill8, cuMemsetD8Async, hipMemsetD8Async, (void* dst, unsigned char value, size_t count, StreamHandle stream), (dst, value, count, stream)) \
  X(fill16, cuMemsetD16Async, hipMemsetD16Async, (void* dst, unsigned short value, size_t count, StreamHandle stream), (dst, value, count, stream)) \
  X(fill32, cuMemsetD32Async, hipMemsetD32Async, (void* dst, unsigned value, size_t count, StreamHandle stream), (dst, value, count, stream)) \
  X(stream_create, cuStreamCreateWithPriority, hipStreamCreateWithPriority, (StreamHandle* out, unsigned flags, int priority), (out, flags, priority)) \
  X(stream_create_plain, cuStreamCreate, hipStreamCreateWithFlags, (StreamHandle* out, unsigned flags), (out, flags)) \
  X(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (StreamHandle stream), (stream)) \
  X(stream_sync, cuStreamSynchronize, hipStreamSynchronize, (StreamHandle stream), (stream)) \
  X(stream_query, cuStreamQuery, hipStreamQuery, (StreamHandle stream), (stream)) \
  X(stream_wait, cuStreamWaitEvent, hipStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags), (stream, event, flags)) \
  X(stream_capturing, cuStreamIsCapturing, hipStreamIsCapturing, (StreamHandle stream, int* status), (stream, status)) \
  X(stream_priority, cuStreamGetPriority, hipStreamGetPriority, (StreamHandle stream, int* priority), (stream, priority)) \
  X(launch_host, cuLaunchHostFunc, hipLaunchHostFunc, (StreamHandle stream, HostFunction function, void* user), (stream, function, user)) \
  X(event_create, cuEventCreate, hipEventCreateWithFlags, (EventHandle* out, unsigned flags), (out, flags)) \
  X(event_destroy, cuEventDestroy_v2, hipEventDestroy, (EventHandle event), (event)) \
  X(event_record, cuEventRecord, hipEventRecord, (EventHandle event, StreamHandle stream), (event, stream)) \
  X(event_query, cuEventQuery, hipEventQuery, (EventHandle event), (event)) \
  X(event_sync, cuEventSynchronize, hipEventSynchronize, (EventHandle event), (event)) \
  X(event_elapsed, cuEventElapsedTime, hipEventElapsedTime, (float* milliseconds, EventHandle begin, EventHandle end), (milliseconds, begin, end)) \
  X(module_load, cuModuleLoadData, hipModuleLoadData, (ModuleHandle* out, const void* image), (out, image)) \
  X(module_unload, cuModuleUnload, hipModuleUnload, (ModuleHandle module), (module)) \
  X(module_function, cuModuleGetFunction, hipModuleGetFunction, (FunctionHandle* out, ModuleHandle module, const char* name), (out, module, name)) \
  X(function_attribute, cuFuncGetAttribute, hipFuncGetAttribute, (int* value, int attribute, FunctionHandle function), (value, attribute, function)) \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, FunctionHandle function, int threads, size_t shared_bytes), (blocks, function, threads, shared_bytes)) \
  X(launch, cuLaunchKernel, hipModuleLaunchKernel, (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters, void** extra), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra)) \
  X(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, (StreamHandle stream, int mode), (stream, mode)) \
  X(capture_end, cuStreamEndCapture, hipStreamEndCapture, (StreamHandle stream, GraphHandle* out), (stream, out)) \
  X(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, (ExecHandle* out, GraphHandle graph, unsigned long long flags), (out, graph, flags)) \
  X(graph_launch, cuGraphLaunch, hipGraphLaunch, (ExecHandle exec, StreamHandle stream), (exec, stream)) \
  X(graph_exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (ExecHandle exec), (exec)) \
  X(graph_destroy, cuGraphDestroy, hipGraphDestroy, (GraphHandle graph), (graph)) \
  X(ipc_export, cuIpcGetMemHandle, hipIpcGetMemHandle, (IpcHandle* out, void* memory), (out, memory)) \
  X(ipc_open, cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (void** out, IpcHandle handle, unsigned flags), (out, handle, flags)) \
  X(ipc_close, cuIpcCloseMemHandle, hipIpcCloseMemHandle, (void* memory), (memory)) \
  X(pool_of_device, cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool, (PoolHandle* out, int device), (out, device)) \
  X(pool_set, cuMemPoolSetAttribute, hipMemPoolSetAttribute, (PoolHandle pool, int attribute, void* value), (pool, attribute, value)) \
  X(pool_get, cuMemPoolGetAttribute, hipMemPoolGetAttribute, (PoolHandle pool, int attribute, void* value), (pool, attribute, value)) \
  X(pool_trim, cuMemPoolTrimTo, hipMemPoolTrimTo, (PoolHandle pool, size_t keep), (pool, keep)) \
  X(pool_alloc, cuMemAllocAsync, hipMallocAsync, (void** out, size_t bytes, StreamHandle stream), (out, bytes, stream)) \
  X(pool_free, cuMemFreeAsync, hipFreeAsync, (void* memory, StreamHandle stream), (memory, stream))
// clang-format on

namespace api {
#define SIMULATED_DECLARE(member, cuda, hip, parameters, arguments) Error member parameters;
SIMULATED_FUNCTIONS(SIMULATED_DECLARE)
#undef SIMULATED_DECLARE
}  // namespace api

// What every call begins with: it is counted, may be made to fail, and needs cuInit.
Error enter(const char* name);

// Of the vendor (cuda_names.cpp, hip_names.cpp); false: no such attribute.
bool attribute_value(int attribute, int device, int* value);

}  // namespace simulated

#define SIMULATED_EXPORT extern "C" [[gnu::visibility("default")]]
