// SPDX-License-Identifier: Apache-2.0
// What tests of the allocator ask of it.
#pragma once
#include <gtest/gtest.h>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "tests/core/fake_device.hpp"

namespace tenon::test {

inline constexpr uint64_t kMiB = 1 << 20;

inline void* take(Device& device, uint64_t bytes, tenon_stream stream = nullptr) {
  tenon_err err;
  void* data = nullptr;
  EXPECT_EQ(allocate(device, bytes, stream, &data, &err), TENON_OK) << err.text;
  EXPECT_EQ(err.code, TENON_OK) << err.text;  // also where it took two attempts
  return data;
}

inline uint64_t trim(Device& device) {
  uint64_t released = 0;
  EXPECT_EQ(slots::memory_trim(device.id, &released, nullptr), TENON_OK);
  return released;
}

}  // namespace tenon::test
