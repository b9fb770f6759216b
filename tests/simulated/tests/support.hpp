// SPDX-License-Identifier: Apache-2.0
// The simulated driver as a program sees it: the functions by their members' names, whichever
// vendor's names they have, and a compiled kernel in one call.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../driver/functions.hpp"
#include "../failures.hpp"

#if SIMULATED_HIP
#define SIMULATED_NAME(cuda, hip) hip
#else
#define SIMULATED_NAME(cuda, hip) cuda
#endif

#define SIMULATED_IMPORT(member, cuda, hip, parameters, arguments) \
  extern "C" int SIMULATED_NAME(cuda, hip) parameters;
using simulated::HostFunction;
using simulated::IpcHandle;
using namespace simulated;
SIMULATED_FUNCTIONS(SIMULATED_IMPORT)
extern "C" int SIMULATED_NAME(cuInit, hipInit)(unsigned);

namespace gpu {
#define SIMULATED_ALIAS(member, cuda, hip, parameters, arguments) \
  inline constexpr auto member = SIMULATED_NAME(cuda, hip);
SIMULATED_FUNCTIONS(SIMULATED_ALIAS)

#define SIMULATED_TEXT(name) #name
#define SIMULATED_STRING(member, cuda, hip, parameters, arguments) \
  inline constexpr const char* member = SIMULATED_HIP ? #hip : #cuda;
namespace name {
SIMULATED_FUNCTIONS(SIMULATED_STRING)
}

// Makes a device current on this thread; the first call initialises the driver.
void use_device(int device);
// Ends what use_device began, so that a sticky error is forgotten.
void reset_device(int device);

// Compiles and loads; the log of a failure is what the test fails with.
ModuleHandle load(const std::string& source);
FunctionHandle kernel(ModuleHandle module, const char* name);
std::string compile_error(const std::string& source);

template <class... P>
int run(FunctionHandle kernel, unsigned blocks, unsigned threads, StreamHandle stream,
        P... arguments) {
  void* parameters[] = {static_cast<void*>(&arguments)..., nullptr};
  return launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

template <class T>
T* alloc(size_t count) {
  void* memory = nullptr;
  EXPECT_EQ(device_alloc(&memory, count * sizeof(T)), 0);
  return static_cast<T*>(memory);
}

template <class T>
T* upload(const std::vector<T>& values) {
  T* memory = alloc<T>(values.size());
  EXPECT_EQ(copy_to_device_now(memory, values.data(), values.size() * sizeof(T)), 0);
  return memory;
}

template <class T>
std::vector<T> download(const T* memory, size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(copy_to_host_now(values.data(), memory, count * sizeof(T)), 0);
  return values;
}

StreamHandle make_stream();

// What kernels are called in both languages.
extern const char* const kCommon;

}  // namespace gpu

class Simulated : public testing::Test {
 protected:
  void SetUp() override { gpu::use_device(0); }
  void TearDown() override { simulated_forget_failures(); }
};
