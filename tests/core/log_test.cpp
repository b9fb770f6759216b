// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tenon::test {
namespace {

using namespace tenon::core;

TEST(Log, WritesOneLinePerMessageFromWarningsUp) {
  testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "not wanted");
  log(LogLevel::kWarning, "%s\n%d", "two lines", 7);
  log_text(LogLevel::kError, std::string(10000, 'x'));
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find("not wanted"), std::string::npos);
  EXPECT_EQ(text.rfind("[tenon warning ", 0), 0u);
  EXPECT_NE(text.find("] two lines 7\n[tenon error "), std::string::npos) << text;
  EXPECT_LT(text.size(), 5000u);
}

}  // namespace
}  // namespace tenon::test
