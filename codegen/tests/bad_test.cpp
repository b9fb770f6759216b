// SPDX-License-Identifier: Apache-2.0
// Refusals are pinned: bad/<case>.yaml begins with the messages it must cause, one `# <line>:
// <text>` each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "run.hpp"
#include "support/text.hpp"

namespace tenon::codegen::testing {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(TENON_TEST_FOLDER) / "bad";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class Bad : public ::testing::TestWithParam<std::string> {};

TEST_P(Bad, IsRefusedWithLineAndReason) {
  std::string path = kFolder / (GetParam() + ".yaml");
  std::string expected, actual;
  for (const std::string& line : lines_of(read_file(path))) {
    if (line.rfind("# ", 0) != 0) break;
    expected += line.substr(2) + "\n";
  }
  Loaded loaded;
  load({path}, {}, loaded);
  for (const std::string& error : loaded.errors) actual += error.substr(path.size() + 1) + "\n";
  EXPECT_EQ(expected, actual);
}

INSTANTIATE_TEST_SUITE_P(Cases, Bad, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon::codegen::testing
