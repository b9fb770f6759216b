// SPDX-License-Identifier: Apache-2.0
// The functions of XRE, Kunlun's runtime, and of XDNN, its library of operators, found at run time: neither
// headers nor libraries are needed to build. Prototypes and numbers are those of xpu/runtime.h and xpu/defs.h, and,
// for the functions of C++, of xpu/refactor/context/newcontext.h.
#pragma once

#include <cstdint>
#include <string>

// The classes of XDNN that its functions point to. Only the library looks inside.
struct float16;
struct bfloat16;

namespace kunlun {

struct Context;  // baidu::xpu::api::Context

constexpr int kNoDeviceMemory = 705;  // XPUERR_NOMEM
constexpr int kNoHostMemory = 706;    // XPUERR_NOCPUMEM
constexpr int kNotSupported = 712;
enum MemoryKind { kMainMemory = 0 };
enum CopyKind { kDeviceToHost = 0, kHostToDevice = 1, kDeviceToDevice = 2 };
enum Attribute { kModel = 4, kMemoryBytes = 5 };

// X(member, symbol, (parameters)). All return int.
#define KUNLUN_RUNTIME_FUNCTIONS(X)                               \
  X(device_count, xpu_device_count, (int*))                       \
  X(device_attribute, xpu_device_get_attr, (uint64_t*, int, int)) \
  X(set_device, xpu_set_device, (int))                            \
  X(allocate, xpu_malloc, (void**, uint64_t, int))                \
  X(release, xpu_free, (void*))                                   \
  X(allocate_host, xpu_host_alloc, (void**, uint64_t, unsigned))  \
  X(release_host, xpu_host_free, (void*))                         \
  X(copy, xpu_memcpy, (void*, const void*, uint64_t, int))        \
  X(wait, xpu_wait, (void*))

// NULL where this version of XRE has none. xpu_event_query returns 0 once the event has passed.
#define KUNLUN_OPTIONAL_FUNCTIONS(X)                                          \
  X(stream_create, xpu_stream_create, (void**))                               \
  X(stream_destroy, xpu_stream_destroy, (void*))                              \
  X(copy_async, xpu_memcpy_async, (void*, const void*, uint64_t, int, void*)) \
  X(event_create, xpu_event_create, (void**))                                 \
  X(event_destroy, xpu_event_destroy, (void*))                                \
  X(event_record, xpu_event_record, (void*, void*))                           \
  X(event_wait, xpu_event_wait, (void*))                                      \
  X(event_query, xpu_event_query, (void*))                                    \
  X(stream_wait_event, xpu_stream_wait_event, (void*, void*))                 \
  X(copy_peer, xpu_memcpy_peer, (int dst_device, void*, int src_device, const void*, uint64_t))

struct Functions {
#define KUNLUN_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  KUNLUN_RUNTIME_FUNCTIONS(KUNLUN_MEMBER)
  KUNLUN_OPTIONAL_FUNCTIONS(KUNLUN_MEMBER)
#undef KUNLUN_MEMBER
  Context* (*create_context)() = nullptr;
  void (*destroy_context)(Context*) = nullptr;
};
extern Functions xpu;

// Opens libxpurt, once. The text is empty, or says what is missing and how to install it.
const std::string& runtime_problem();
// Opens libxpuapi, once; the same for it.
const std::string& operators_problem();
// A function of libxpuapi by its mangled name; nullptr: this version has none with these parameters.
void* find_operator_function(const char* symbol);

// "xpu_malloc returned -705 (device memory not enough)"
std::string describe_failure(const char* function, int error);

}  // namespace kunlun
