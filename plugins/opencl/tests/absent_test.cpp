// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "support.hpp"

namespace opencl_test {
namespace {

TEST(OpenclDriver, IsNamedWhenItIsAbsent) {
  setenv("TENON_OPENCL_LIBRARY", "libabsent_opencl.so.1", 1);
  ASSERT_NE(plugin(), nullptr);
  uint32_t count = 77;
  EXPECT_FAILS(TENON_UNAVAILABLE, "opencl: driver library libabsent_opencl.so.1 not found",
               plugin()->device->enumerate(nullptr, 0, &count, err));
  tenon_device device = nullptr;
  EXPECT_FAILS(TENON_UNAVAILABLE, "install an OpenCL driver",
               plugin()->device->open(0, &device, err));
  EXPECT_EQ(count, 77u);
}

TEST(OpenclDriver, IsRefusedIfItIsSomethingElse) {
  setenv("TENON_OPENCL_LIBRARY", "libc.so.6", 1);
  ASSERT_NE(plugin(), nullptr);
  uint32_t count;
  EXPECT_FAILS(TENON_UNAVAILABLE, "driver library libc.so.6 lacks clGetPlatformIDs",
               plugin()->device->enumerate(nullptr, 0, &count, err));
}

TEST(OpenclDriver, WithoutPlatformsIsUnavailable) {
  unsetenv("TENON_OPENCL_LIBRARY");
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);  // Debian's loader finds no driver there
  ASSERT_NE(plugin(), nullptr);
  Error error;
  uint32_t count = 0;
  ASSERT_EQ(plugin()->device->enumerate(nullptr, 0, &count, error), TENON_UNAVAILABLE);
  if (error.text().find("driver library") != std::string::npos) GTEST_SKIP() << error.text();
  EXPECT_NE(error.text().find("the OpenCL loader found no driver"), std::string::npos)
      << error.text();
}

}  // namespace
}  // namespace opencl_test
