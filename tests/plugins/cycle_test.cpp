// SPDX-License-Identifier: Apache-2.0
// In and out a thousand times: a device, a package of operators, kernels for another's device.
#include <malloc.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "kernel_core/abi/slots.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
namespace slots = core::slots;

constexpr const char* kPlugins[] = {"null", "package", "extra_kernels"};

// What a process could lose a little of each time.
struct Footprint {
  size_t heap_bytes, anonymous_bytes, files, threads, mappings;
};

size_t entries(const char* folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

Footprint footprint() {
  Footprint now{.heap_bytes = ::mallinfo2().uordblks,
                .anonymous_bytes = 0,
                .files = entries("/proc/self/fd"),
                .threads = entries("/proc/self/task"),
                .mappings = 0};
  // Anonymous memory: how much of a mapped file is resident is the system's affair.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "RssAnon:") status >> now.anonymous_bytes;
  now.anonymous_bytes *= 1024;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  return now;
}

void print(const char* when, const Footprint& f) {
  std::printf("%-18s heap %zu B, anonymous %zu kB, %zu files, %zu threads, %zu mappings\n", when,
              f.heap_bytes, f.anonymous_bytes / 1024, f.files, f.threads, f.mappings);
}

bool is_mapped(const std::string& plugin) {
  return read_file("/proc/self/maps").find("libtenon_" + plugin + ".so") != std::string::npos;
}

// Everything that a call through all three touches.
void use() {
  tenon_device_id device;
  ASSERT_EQ(slots::device_find("null:0", &device, nullptr), TENON_OK);
  int64_t shape = 16;
  tenon_tensor* tensor = nullptr;
  ASSERT_EQ(slots::tensor_create(device, TENON_DTYPE_F32, 1, &shape, &tensor, nullptr), TENON_OK);
  tenon_value argument = {.tag = TENON_VALUE_TENSOR, .aux = 0, .v = {.p = tensor}}, result = {};
  const tenon_op* twice = slots::op_find("package::twice");
  ASSERT_NE(twice, nullptr);
  ASSERT_EQ(slots::op_call(twice, &argument, 1, &result, 1, nullptr), TENON_OK);
  slots::tensor_release(static_cast<tenon_tensor*>(result.v.p));
  slots::tensor_release(tensor);
}

// `turn`: who comes first, and who leaves first.
void cycle(int turn) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(is_ok(load(plugin_path(kPlugins[(turn + i) % 3]))));
  use();
  for (int i = 0; i < 3; ++i) {
    const char* plugin = kPlugins[(turn / 3 + i) % 3];
    ASSERT_TRUE(is_ok(unload(plugin)));
    ASSERT_FALSE(is_mapped(plugin)) << plugin;
  }
}

TEST(Cycles, OfDeviceOperatorsAndKernelsDoNotGrow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kCycles = 36;
#else
  constexpr int kCycles = 1000;
#endif
  // Until caches are warm and the heap has the pages between which its pieces wander.
  for (int i = 0; i < kCycles; ++i) ASSERT_NO_FATAL_FAILURE(cycle(i));
  Footprint before = footprint();
  for (int i = 0; i < kCycles; ++i) ASSERT_NO_FATAL_FAILURE(cycle(i));
  Footprint after = footprint();
  print("before:", before);
  print("1000 cycles later:", after);
  EXPECT_EQ(after.files, before.files);
  EXPECT_EQ(after.threads, before.threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  // Now and then the system maps a library at another address; what is kept about it at the former
  // one is a few hundred bytes. If that were kept each time, it would be 300 kB.
  EXPECT_LT(after.heap_bytes, before.heap_bytes + 32768);
  EXPECT_LT(after.anonymous_bytes, before.anonymous_bytes + (256 << 10));
  EXPECT_LE(after.mappings, before.mappings + 2);
#endif
}

}  // namespace
}  // namespace tenon::test
