// SPDX-License-Identifier: Apache-2.0
// Runs the tests that a filter names. Without one, runs all, each in a process of its own: what is
// loaded, known and remembered is the process's, and tests must not see one another's.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  std::vector<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i)
    for (int k = 0; k < all.GetTestSuite(i)->total_test_count(); ++k)
      names.push_back(std::string(all.GetTestSuite(i)->name()) + "." +
                      all.GetTestSuite(i)->GetTestInfo(k)->name());
  if (testing::GTEST_FLAG(list_tests) || testing::GTEST_FLAG(filter) != "*") return RUN_ALL_TESTS();

  int failed = 0;
  for (const std::string& name : names) {
    std::string command =
        std::string("'") + arguments[0] + "' --gtest_brief=1 '--gtest_filter=" + name + "'";
    if (std::system(command.c_str()) != 0) {
      std::printf("[  FAILED  ] %s\n", name.c_str());
      ++failed;
    }
  }
  std::printf("%zu tests, %d failed\n", names.size(), failed);
  return failed != 0;
}
