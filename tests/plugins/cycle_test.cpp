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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeepsFreed = true;  // the sanitizer's allocator, in mappings of its own
#else
constexpr bool kKeepsFreed = false;
#endif
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
  // Anonymous memory: how much of a mapped file is resident is the system's affair. The roll-up
  // counts pages; RssAnon in /proc/self/status is a sum of per-processor counters, some 100 kB out
  // at any time.
  std::ifstream roll_up("/proc/self/smaps_rollup");
  for (std::string word; roll_up >> word;)
    if (word == "Anonymous:") roll_up >> now.anonymous_bytes;
  now.anonymous_bytes *= 1024;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    now.mappings += !kKeepsFreed || line.find('/') != std::string::npos;  // of files
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
  constexpr int kCycles = kKeepsFreed ? 18 : 500;
  ASSERT_EQ(slots::plugin_allow_overrides("extra_kernels", 1, nullptr), TENON_OK);
  // What leaks leaks every time. What else grows (caches that warm up, the pages between which the
  // pieces of a heap wander, a library that the system maps at another address) has a round without
  // growth.
  Footprint before, after;
  bool grew = true;
  for (int round = 0; round < 5 && grew; ++round) {
    before = footprint();
    for (int i = 0; i < kCycles; ++i) ASSERT_NO_FATAL_FAILURE(cycle(i));
    after = footprint();
    print("before:", before);
    print("some cycles later:", after);
    grew = after.files > before.files || after.threads > before.threads ||
           after.mappings > before.mappings;
    // A piece of 32 bytes in each cycle would be twice this.
    grew |= !kKeepsFreed && after.heap_bytes > before.heap_bytes + kCycles * 16;
    grew |= !kKeepsFreed && after.anonymous_bytes > before.anonymous_bytes + (64 << 10);
  }
  EXPECT_FALSE(grew) << "each round of " << kCycles << " cycles keeps something, see above";
}

}  // namespace
}  // namespace tenon::test
