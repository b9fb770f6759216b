// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

extern "C" {
int SIMULATED_NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void** out, const char* source,
                                                            const char* name, int headers,
                                                            const char* const* texts,
                                                            const char* const* names);
int SIMULATED_NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void** program);
int SIMULATED_NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void* program, int count,
                                                              const char* const* options);
int SIMULATED_NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void* program, size_t* bytes);
int SIMULATED_NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void* program, char* out);
int SIMULATED_NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(void* program, size_t* bytes);
int SIMULATED_NAME(nvrtcGetCUBIN, hiprtcGetCode)(void* program, char* out);
int cuDevicePrimaryCtxRetain(void** out, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxSetCurrent(void* context);
int hipSetDevice(int device);
int hipDeviceReset();
}

namespace gpu {
namespace {

struct Compiled {
  int result = 0;
  std::string log, image;
};

Compiled compile(const std::string& source) {
  Compiled compiled;
  void* program = nullptr;
  const std::string whole = kCommon + source;
  SIMULATED_NAME(nvrtcCreateProgram, hiprtcCreateProgram)
  (&program, whole.c_str(), "test.cu", 0, nullptr, nullptr);
  const char* options[] = {SIMULATED_HIP ? "--offload-arch=gfx90a" : "--gpu-architecture=sm_90"};
  compiled.result = SIMULATED_NAME(nvrtcCompileProgram, hiprtcCompileProgram)(program, 1, options);
  size_t bytes = 0;
  SIMULATED_NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(program, &bytes);
  compiled.log.resize(bytes);
  SIMULATED_NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(program, compiled.log.data());
  if (compiled.result == 0) {
    SIMULATED_NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(program, &bytes);
    compiled.image.resize(bytes);
    SIMULATED_NAME(nvrtcGetCUBIN, hiprtcGetCode)(program, compiled.image.data());
  }
  SIMULATED_NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(&program);
  return compiled;
}

}  // namespace

const char* const kCommon = R"(
#if SIMULATED_HIP_TEST || defined(__HIPCC__)
#define SHUFFLE_XOR(value, lanes) __shfl_xor(value, lanes)
#else
#define SHUFFLE_XOR(value, lanes) __shfl_xor_sync(0xffffffffu, value, lanes)
#endif
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
)";

void use_device(int device) {
  ASSERT_EQ(SIMULATED_NAME(cuInit, hipInit)(0), 0);
#if SIMULATED_HIP
  ASSERT_EQ(hipSetDevice(device), 0);
#else
  void* context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), 0);
  ASSERT_EQ(cuCtxSetCurrent(context), 0);
#endif
}

void reset_device(int device) {
#if SIMULATED_HIP
  ASSERT_EQ(hipSetDevice(device), 0);
  ASSERT_EQ(hipDeviceReset(), 0);
#else
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(device), 0);
#endif
}

ModuleHandle load(const std::string& source) {
  const Compiled compiled = compile(source);
  EXPECT_EQ(compiled.result, 0) << compiled.log;
  ModuleHandle module = nullptr;
  if (compiled.result == 0) {
    EXPECT_EQ(module_load(&module, compiled.image.data()), 0);
  }
  return module;
}

FunctionHandle kernel(ModuleHandle module, const char* name) {
  FunctionHandle function = nullptr;
  EXPECT_EQ(module_function(&function, module, name), 0);
  return function;
}

std::string compile_error(const std::string& source) { return compile(source).log; }

StreamHandle make_stream() {
  StreamHandle stream = nullptr;
  EXPECT_EQ(stream_create(&stream, 1, 0), 0);
  return stream;
}

}  // namespace gpu
