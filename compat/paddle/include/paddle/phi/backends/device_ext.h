// SPDX-License-Identifier: Apache-2.0
// The C interface of custom-device plugins: what InitPlugin fills. Binary layout of 920 bytes
// (since March 2024); the asserts at the end hold it.
//
// Every function returns C_SUCCESS or another C_Status. A slot left NULL is absent; "(required)"
// marks those without which a plugin is refused. `device` is one long-lived object per device:
// init_device may put the physical id in, every other call receives the same pointer. Functions may
// be called from several threads.
#pragma once

#if !defined(_WIN32)

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION 0
#define PADDLE_CUSTOM_RUNTIME_MINOR_VERSION 1
#define PADDLE_CUSTOM_RUNTIME_PATCH_VERSION 1

typedef enum {
  UNDEFINED = 0,
  BOOL = 1,
  UINT8 = 2,
  UINT16 = 3,
  UINT32 = 4,
  UINT64 = 5,
  INT8 = 6,
  INT16 = 7,
  INT32 = 8,
  INT64 = 9,
  FLOAT16 = 10,
  FLOAT32 = 11,
  FLOAT64 = 12,
  BFLOAT16 = 13,
  COMPLEX64 = 14,
  COMPLEX128 = 15
} C_DataType;

typedef enum {
  ANY = 0,
  NHWC = 1,
  NCHW = 2,
  NCDHW = 3,
  NDHWC = 4,
  STRIDED = 5,
  NUM_DATA_LAYOUTS = 6,
  ALL_LAYOUT = ANY
} C_DataLayout;

typedef enum {
  C_SUCCESS = 0,
  C_WARNING = 1,  // done, but not as asked: "async" work done synchronously
  C_FAILED = 2,   // a resource or a query
  C_ERROR = 3,    // a bad argument
  C_INTERNAL_ERROR = 4
} C_Status;

typedef enum { SUM = 0, AVG = 1, MAX = 2, MIN = 3, PRODUCT = 4 } C_CCLReduceOp;

typedef struct C_Device_st {
  int id;
} * C_Device;
// Defined by the plugin, at global scope, if at all.
typedef struct C_Stream_st* C_Stream;
typedef struct C_Event_st* C_Event;
typedef struct C_CCLComm_st* C_CCLComm;
typedef struct C_Profiler_st* C_Profiler;

typedef void (*C_Callback)(C_Device device, C_Stream stream, void* user_data, C_Status* status);

typedef struct {
  size_t sz;
  void* data;
} C_CCLRootId;

typedef struct C_DeviceInterface {
  size_t size;  // sizeof(C_DeviceInterface) of the host, before InitPlugin

  // -- device
  C_Status (*initialize)();
  C_Status (*finalize)();
  C_Status (*init_device)(const C_Device device);
  C_Status (*set_device)(const C_Device device);  // (required)
  C_Status (*get_device)(const C_Device device);  // (required)
  C_Status (*deinit_device)(const C_Device device);

  // -- streams and events
  C_Status (*create_stream)(const C_Device device, C_Stream* stream);
  C_Status (*destroy_stream)(const C_Device device, C_Stream stream);
  C_Status (*query_stream)(const C_Device device, C_Stream stream);
  C_Status (*stream_add_callback)(const C_Device device, C_Stream stream, C_Callback callback,
                                  void* user_data);
  C_Status (*create_event)(const C_Device device, C_Event* event);                  // (required)
  C_Status (*record_event)(const C_Device device, C_Stream stream, C_Event event);  // (required)
  C_Status (*destroy_event)(const C_Device device, C_Event event);                  // (required)
  C_Status (*query_event)(const C_Device device, C_Event event);
  C_Status (*synchronize_device)(const C_Device device);
  C_Status (*synchronize_stream)(const C_Device device, C_Stream stream);
  C_Status (*synchronize_event)(const C_Device device, C_Event event);  // (required)
  C_Status (*stream_wait_event)(const C_Device device, C_Stream stream, C_Event event);
  void* reserved_dev_api[8];

  // -- memory
  C_Status (*device_memory_allocate)(const C_Device device, void** ptr, size_t size);  // (required)
  C_Status (*device_memory_deallocate)(const C_Device device, void* ptr,
                                       size_t size);  // (required)
  C_Status (*device_memory_set)(const C_Device device, void* ptr, unsigned char value, size_t size);
  C_Status (*host_memory_allocate)(const C_Device device, void** ptr, size_t size);
  C_Status (*host_memory_deallocate)(const C_Device device, void* ptr, size_t size);
  C_Status (*unified_memory_allocate)(const C_Device device, void** ptr, size_t size);
  C_Status (*unified_memory_deallocate)(const C_Device device, void* ptr, size_t size);
  C_Status (*memory_copy_h2d)(const C_Device device, void* dst, const void* src, size_t size);
  C_Status (*memory_copy_d2h)(const C_Device device, void* dst, const void* src, size_t size);
  C_Status (*memory_copy_d2d)(const C_Device device, void* dst, const void* src, size_t size);
  C_Status (*memory_copy_p2p)(const C_Device dst_device, const C_Device src_device, void* dst,
                              const void* src, size_t size);
  C_Status (*async_memory_copy_h2d)(const C_Device device, C_Stream stream, void* dst,
                                    const void* src, size_t size);
  C_Status (*async_memory_copy_d2h)(const C_Device device, C_Stream stream, void* dst,
                                    const void* src, size_t size);
  C_Status (*async_memory_copy_d2d)(const C_Device device, C_Stream stream, void* dst,
                                    const void* src, size_t size);
  C_Status (*async_memory_copy_p2p)(const C_Device dst_device, const C_Device src_device,
                                    C_Stream stream, void* dst, const void* src, size_t size);
  void* reserved_mem_api[8];

  // -- what there is
  C_Status (*get_device_count)(size_t* count);  // (required)
  C_Status (*get_device_list)(
      size_t* devices);  // (required) fills an array of get_device_count ids
  C_Status (*device_memory_stats)(const C_Device device, size_t* total, size_t* free);
  C_Status (*device_min_chunk_size)(const C_Device device, size_t* bytes);
  C_Status (*device_max_chunk_size)(const C_Device device, size_t* bytes);
  C_Status (*device_max_alloc_size)(const C_Device device, size_t* bytes);
  C_Status (*device_extra_padding_size)(const C_Device device, size_t* bytes);
  C_Status (*device_init_alloc_size)(const C_Device device, size_t* bytes);
  C_Status (*device_realloc_size)(const C_Device device, size_t* bytes);
  C_Status (*get_compute_capability)(size_t* version);
  C_Status (*get_runtime_version)(size_t* version);
  C_Status (*get_driver_version)(size_t* version);
  void* reserved_info_api[8];

  // -- collectives
  C_Status (*xccl_get_comm_name)(C_CCLComm comm, char* name);
  C_Status (*xccl_get_unique_id_size)(size_t* size);
  C_Status (*xccl_get_unique_id)(C_CCLRootId* id);
  C_Status (*xccl_comm_init_rank)(size_t nranks, C_CCLRootId* id, size_t rank, C_CCLComm* comm);
  C_Status (*xccl_destroy_comm)(C_CCLComm comm);
  C_Status (*xccl_all_reduce)(void* send, void* recv, size_t count, C_DataType dtype,
                              C_CCLReduceOp op, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_broadcast)(void* buffer, size_t count, C_DataType dtype, size_t root,
                             C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_reduce)(void* send, void* recv, size_t count, C_DataType dtype, C_CCLReduceOp op,
                          size_t root, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_all_gather)(void* send, void* recv, size_t count, C_DataType dtype,
                              C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_reduce_scatter)(void* send, void* recv, size_t count, C_DataType dtype,
                                  C_CCLReduceOp op, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_group_start)();
  C_Status (*xccl_group_end)();
  C_Status (*xccl_send)(void* buffer, size_t count, C_DataType dtype, size_t dest, C_CCLComm comm,
                        C_Stream stream);
  C_Status (*xccl_recv)(void* buffer, size_t count, C_DataType dtype, size_t src, C_CCLComm comm,
                        C_Stream stream);
  C_Status (*xccl_all_to_all)(const void** send, const size_t* send_count,
                              const C_DataType* send_dtype, void** recv, const size_t* recv_count,
                              const C_DataType* recv_dtype, size_t rank, size_t nranks,
                              C_CCLComm comm, C_Stream stream);
  void* reserved_ccl_api[8];

  // -- profiler
  C_Status (*profiler_initialize)(C_Profiler profiler, void** user_data);
  C_Status (*profiler_finalize)(C_Profiler profiler, void* user_data);
  C_Status (*profiler_prepare_tracing)(C_Profiler profiler, void* user_data);
  C_Status (*profiler_start_tracing)(C_Profiler profiler, void* user_data);
  C_Status (*profiler_stop_tracing)(C_Profiler profiler, void* user_data);
  C_Status (*profiler_collect_trace_data)(C_Profiler profiler, uint64_t start_ns, void* user_data);
  void* reserved_profiler_api[8];

  // -- others
  C_Status (*blas_axpby)(const C_Device device, C_Stream stream, C_DataType dtype, size_t numel,
                         float alpha, void* x, float beta, void* y);  // y = alpha * x + beta * y
  void* reserved_other_api[7];
} C_DeviceInterface;

typedef struct CustomRuntimeVersion {
  size_t major, minor, patch;
} CustomRuntimeVersion;

typedef struct CustomRuntimeParams {
  size_t size;                   // sizeof(CustomRuntimeParams) of the host
  C_DeviceInterface* interface;  // the host's; InitPlugin fills it
  CustomRuntimeVersion version;  // PADDLE_CUSTOM_RUNTIME_CHECK_VERSION fills it
  const char* device_type;       // "custom_cpu"; NULL after InitPlugin: the plugin declined
  const char* sub_device_type;
  char reserved[32];
} CustomRuntimeParams;

// In InitPlugin, first: return from it unless plugin and host agree on the layout of both structs.
#define PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params)              \
  if ((params)->size != sizeof(CustomRuntimeParams) ||           \
      (params)->interface->size != sizeof(C_DeviceInterface))    \
    return;                                                      \
  (params)->version.major = PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION; \
  (params)->version.minor = PADDLE_CUSTOM_RUNTIME_MINOR_VERSION; \
  (params)->version.patch = PADDLE_CUSTOM_RUNTIME_PATCH_VERSION

// The plugin's entry point.
__attribute__((visibility("default"))) void InitPlugin(CustomRuntimeParams* params);

// Exported by the host. What `event` points at is no C structure: see docs/paddle_compat.md.
void profiler_add_runtime_trace_event(C_Profiler profiler, void* event);
void profiler_add_device_trace_event(C_Profiler profiler, void* event);

#ifdef __cplusplus
}  // extern "C"

#define PADDLE_CUSTOM_RUNTIME_OFFSET(member, bytes) \
  static_assert(offsetof(C_DeviceInterface, member) == (bytes), "layout of existing plugins")
PADDLE_CUSTOM_RUNTIME_OFFSET(initialize, 8);
PADDLE_CUSTOM_RUNTIME_OFFSET(create_stream, 56);
PADDLE_CUSTOM_RUNTIME_OFFSET(create_event, 88);
PADDLE_CUSTOM_RUNTIME_OFFSET(synchronize_device, 120);
PADDLE_CUSTOM_RUNTIME_OFFSET(device_memory_allocate, 216);
PADDLE_CUSTOM_RUNTIME_OFFSET(memory_copy_h2d, 272);
PADDLE_CUSTOM_RUNTIME_OFFSET(get_device_count, 400);
PADDLE_CUSTOM_RUNTIME_OFFSET(get_compute_capability, 472);
PADDLE_CUSTOM_RUNTIME_OFFSET(xccl_get_comm_name, 560);
PADDLE_CUSTOM_RUNTIME_OFFSET(xccl_all_reduce, 600);
PADDLE_CUSTOM_RUNTIME_OFFSET(xccl_all_to_all, 672);
PADDLE_CUSTOM_RUNTIME_OFFSET(profiler_initialize, 744);
PADDLE_CUSTOM_RUNTIME_OFFSET(blas_axpby, 856);
#undef PADDLE_CUSTOM_RUNTIME_OFFSET
static_assert(sizeof(C_DeviceInterface) == 920, "layout of existing plugins");
static_assert(sizeof(CustomRuntimeParams) == 88, "layout of existing plugins");
#endif

#endif  // !_WIN32
