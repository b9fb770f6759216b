// SPDX-License-Identifier: Apache-2.0
// Where a plugin makes the system look for libraries (RUNPATH): held to the rules for its own file.
#include <sys/stat.h>
#include <unistd.h>

#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libtenon_test_absent_one.so", "libtenon_test_absent_two.so"};

// A plugin and, in a folder beside it, the libraries that it needs. Its entry point then says no.
fs::path copy_with_libraries(const Scratch& scratch, const std::string& plugin) {
  fs::create_directory(scratch / "beside");
  for (const char* library : kLibraries)
    fs::copy(fs::path(TENON_TEST_PLUGIN_DIR) / ".." / "absent" / library,
             scratch / "beside" / library);
  return scratch.copy(plugin, "libtenon_" + plugin + ".so");
}

TEST(Search, FindsWhatLiesBesideThePlugin) {
  Scratch scratch;
  EXPECT_TRUE(is_refused(load(copy_with_libraries(scratch, "brings_along")), "QUERY_FAILED", ""));
}

TEST(Search, RefusesAFolderThatAnyoneMayWrite) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "brings_along");
  ASSERT_EQ(::chmod((scratch / "beside").c_str(), 0777), 0);
  Outcome outcome = load(file);
  EXPECT_TRUE(is_refused(outcome, "NOT_ALLOWED_DIR", "looks for libraries (RUNPATH)"));
  EXPECT_NE(outcome.text.find("can be changed by everyone"), outcome.text.npos) << outcome.text;
  Variable variable("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
}

TEST(Search, RefusesALibraryThatAnyoneMayWrite) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "brings_along");
  ASSERT_EQ(::chmod((scratch / "beside" / kLibraries[1]).c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", std::string(kLibraries[1]) + ", which "));
}

// The user who makes the folder decides what is found there.
TEST(Search, RefusesAFolderThatAnyoneMayMake) {
  Scratch scratch;
  fs::create_directory(scratch / "open");
  fs::path file = scratch.copy("brings_along", "libtenon_brings_along.so");
  fs::create_directory_symlink(scratch / "open", scratch / "beside");
  ASSERT_EQ(::chmod((scratch / "open").c_str(), 0777), 0);
  EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", "looks for libraries (RUNPATH)"));
}

// The last entry of the list is empty, which the system takes for the current folder.
TEST(Search, NeverBeginsInTheCurrentFolder) {
  for (const char* plugin : {"current_folder", "relative_folder"}) {
    Scratch scratch;
    Outcome outcome = load(copy_with_libraries(scratch, plugin));
    EXPECT_TRUE(is_refused(outcome, "NOT_ALLOWED_DIR", "the current folder of the program"));
    EXPECT_NE(outcome.text.find("expected $ORIGIN or full paths as RUNPATH"), outcome.text.npos)
        << outcome.text;
  }
}

TEST(Search, TakesNoPathBelowTheCurrentFolder) {
  EXPECT_TRUE(is_refused(load(plugin_path("needs_a_path")), "NOT_ALLOWED_DIR",
                         "got 'beside/libtenon_test_path_one.so'"));
}

}  // namespace
}  // namespace tenon::test
