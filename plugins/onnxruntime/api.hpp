// SPDX-License-Identifier: Apache-2.0
// What is called of ONNX Runtime's C interface. Its functions are a table, handed out for a version of the interface;
// later versions add functions behind those that are there, so that the index of a function never changes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::onnxruntime {

// Objects of the library.
struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct MemoryInfo;
struct Value;
struct TensorRtOptions;
struct CudaOptions;

// Version 14 of the interface came with ONNX Runtime 1.14.
inline constexpr uint32_t kApiVersion = 14;

struct ApiBase {
  const void* (*get_api)(uint32_t version);  // NULL: the library is older
  const char* (*version)();
};

// Every function that is called: index in the table, name, result, parameters.
#define TENON_ONNXRUNTIME_FUNCTIONS(X)                                                         \
  X(1, error_code, int, (const Status*))                                                       \
  X(2, error_text, const char*, (const Status*))                                               \
  X(3, create_env, Status*, (int severity, const char* name, Env**))                           \
  X(6, disable_telemetry, Status*, (const Env*))                                               \
  X(8, create_session, Status*,                                                                \
    (const Env*, const void* model, size_t bytes, const SessionOptions*, Session**))           \
  X(9, run, Status*,                                                                           \
    (Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,  \
     size_t ninputs, const char* const* output_names, size_t noutputs, Value** outputs))       \
  X(10, create_session_options, Status*, (SessionOptions**))                                   \
  X(24, set_intra_op_threads, Status*, (SessionOptions*, int))                                 \
  X(25, set_inter_op_threads, Status*, (SessionOptions*, int))                                 \
  X(49, create_tensor, Status*,                                                                \
    (const MemoryInfo*, void* data, size_t bytes, const int64_t* shape, size_t ndim, int type, \
     Value**))                                                                                 \
  X(69, create_cpu_memory_info, Status*, (int allocator, int memory, MemoryInfo**))            \
  X(93, release_status, void, (Status*))                                                       \
  X(95, release_session, void, (Session*))                                                     \
  X(96, release_value, void, (Value*))                                                         \
  X(100, release_session_options, void, (SessionOptions*))                                     \
  X(125, available_providers, Status*, (char*** names, int* count))                            \
  X(126, release_available_providers, Status*, (char** names, int count))                      \
  X(130, add_config_entry, Status*, (SessionOptions*, const char* key, const char* value))     \
  X(170, append_tensorrt, Status*, (SessionOptions*, const TensorRtOptions*))                  \
  X(171, create_tensorrt_options, Status*, (TensorRtOptions**))                                \
  X(172, update_tensorrt_options, Status*,                                                     \
    (TensorRtOptions*, const char* const* keys, const char* const* values, size_t count))      \
  X(174, release_tensorrt_options, void, (TensorRtOptions*))                                   \
  X(204, append_cuda, Status*, (SessionOptions*, const CudaOptions*))                          \
  X(205, create_cuda_options, Status*, (CudaOptions**))                                        \
  X(206, update_cuda_options, Status*,                                                         \
    (CudaOptions*, const char* const* keys, const char* const* values, size_t count))          \
  X(208, release_cuda_options, void, (CudaOptions*))                                           \
  X(210, add_external_initializers, Status*,                                                   \
    (SessionOptions*, const char* const* names, const Value* const* values, size_t count))     \
  X(216, append_provider, Status*,                                                             \
    (SessionOptions*, const char* name, const char* const* keys, const char* const* values,    \
     size_t count))

struct Api {
#define TENON_ONNXRUNTIME_MEMBER(index, name, result, parameters) result(*name) parameters;
  TENON_ONNXRUNTIME_FUNCTIONS(TENON_ONNXRUNTIME_MEMBER)
#undef TENON_ONNXRUNTIME_MEMBER
};

}  // namespace tenon::onnxruntime
