// SPDX-License-Identifier: Apache-2.0
// Several devices, and one that is opened again.
#include "support.hpp"

namespace opencl_test {
namespace {

class OpenclDevices : public DeviceTest {};

TEST_F(OpenclDevices, EachHasItsOwnMemoryAndPlace) {
  tenon_device_info infos[2] = {};
  uint32_t count = 0;
  EXPECT_OK(api()->enumerate(infos, 2, &count, err));
  if (count < 2) GTEST_SKIP() << "there is one device";
  EXPECT_STRNE(infos[0].bus_id, infos[1].bus_id);
  tenon_device second = nullptr;
  EXPECT_OK(api()->open(1, &second, err));
  tenon_alloc_request request = {sizeof request, TENON_ALLOC_DEVICE, 0, 4096, 512, nullptr};
  void *here = allocate(4096), *there = nullptr;
  EXPECT_OK(api()->alloc(second, &request, &there, err));
  EXPECT_NE(here, there);
  char byte = 1;
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "expected memory of this device",
               api()->fill(device_, there, 0, 1, &byte, 1, nullptr, err));
  EXPECT_OK(api()->fill(second, there, 0, 4096, &byte, 1, nullptr, err));
  char seen = 0;
  tenon_copy_request back = {
      sizeof back, TENON_COPY_DEVICE_TO_HOST, 0, &seen, static_cast<char*>(there) + 4095, 1, 0, 0,
      nullptr};
  EXPECT_OK(api()->copy(second, &back, err));
  EXPECT_EQ(seen, 1);
  api()->free(second, there, 4096, nullptr);
  api()->close(second);
}

TEST_F(OpenclDevices, OneMayBeOpenTwiceAndAgain) {
  for (int round = 0; round < 3; ++round) {
    tenon_device again = nullptr;
    EXPECT_OK(api()->open(0, &again, err));
    EXPECT_NE(again, nullptr);
    EXPECT_NE(again, device_);
    api()->close(again);
  }
  EXPECT_NE(allocate(64), nullptr);
  EXPECT_OK(api()->quiesce->quiesce(1'000'000'000, err));
}

}  // namespace
}  // namespace opencl_test
