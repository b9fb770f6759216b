// SPDX-License-Identifier: Apache-2.0
// Where a plugin makes the system look for libraries (RUNPATH): held to the rules for its own file.
#include <elf.h>
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

// The same where the folder itself is absent.
TEST(Search, RefusesALinkToWhatAnyoneMayMake) {
  Scratch scratch;
  fs::create_directory(scratch / "open");
  ASSERT_EQ(::chmod((scratch / "open").c_str(), 0777), 0);
  fs::path file = scratch.copy("brings_along", "libtenon_brings_along.so");
  fs::create_directory_symlink(scratch / "open" / "absent", scratch / "beside");
  EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", "looks for libraries (RUNPATH)"));

  fs::remove(scratch / "beside");
  copy_with_libraries(scratch, "brings_along");
  fs::remove(scratch / "beside" / kLibraries[0]);
  fs::create_symlink(scratch / "open" / "absent.so", scratch / "beside" / kLibraries[0]);
  EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", "which " + file.string() + " needs,"));
}

// A link in a folder that others can change leads elsewhere whenever they like.
TEST(Search, RefusesLinksThatAnyoneMayChange) {
  Scratch scratch;
  fs::create_directory(scratch / "open");
  ASSERT_EQ(::chmod((scratch / "open").c_str(), 0777), 0);
  fs::path file = copy_with_libraries(scratch, "brings_along");
  fs::rename(scratch / "beside", scratch / "good");
  fs::create_directory_symlink(scratch / "good", scratch / "open" / "link");
  fs::create_directory_symlink(scratch / "open" / "link", scratch / "beside");
  EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", "looks for libraries (RUNPATH)"));
}

// The system prefers variants for its processor, which lie in folders of certain names.
TEST(Search, LooksAtVariantsForProcessors) {
  for (const char* variant : {"glibc-hwcaps/x86-64-v2", "glibc-hwcaps/of-a-later-system", "haswell",
                              "tls/haswell/x86_64"}) {
    Scratch scratch;
    fs::path file = copy_with_libraries(scratch, "brings_along");
    const fs::path folder = scratch / "beside" / variant;
    fs::create_directories(folder);
    fs::copy(scratch / "beside" / kLibraries[1], folder / kLibraries[1]);
    EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
    ASSERT_EQ(::chmod((folder / kLibraries[1]).c_str(), 0666), 0);
    EXPECT_TRUE(is_refused(load(file), "WRITABLE", (folder / kLibraries[1]).string()));
    fs::remove(folder / kLibraries[1]);
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", folder.string())) << "one can be added";
  }
}

// The system goes on to the next folder where it cannot use what the first one has.
TEST(Search, LooksAtEveryFolder) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "two_folders");
  std::string other = read_file(scratch / "beside" / kLibraries[1]);
  other[EI_CLASS] = ELFCLASS32;
  fs::create_directory(scratch / "first");
  write_file(scratch / "first" / kLibraries[1], other);
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", "")) << "the second was found";
  ASSERT_EQ(::chmod((scratch / "beside" / kLibraries[1]).c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", (scratch / "beside" / kLibraries[1]).string()));
}

TEST(Search, TakesNoVariablesThatOnlyTheSystemKnows) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "variable_folder");
  Outcome outcome = load(file);
  EXPECT_TRUE(is_refused(outcome, "NOT_ALLOWED_DIR",
                         "without variables other than a leading $ORIGIN, got '$ORIGIN/$LIB'"));
  EXPECT_NE(outcome.text.find("write the folder out"), outcome.text.npos) << outcome.text;
  Variable variable("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
}

// dlopen replaces them in paths as well, and would open another file than what was examined.
TEST(Search, TakesADollarSignForWhatTheSystemTakesItFor) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "brings_along");
  for (const char* name : {"a$b", "a$LIB", "a${ORIGIN}", "a$PLATFORMS"}) {
    const fs::path folder = scratch / name;
    fs::create_directory(folder);
    fs::copy(file, folder / "plugin.so");
    fs::copy(scratch / "beside", folder / "beside");
    Outcome outcome = load(folder / "plugin.so");
    if (std::string_view(name).ends_with('b') || std::string_view(name).ends_with('S'))
      EXPECT_TRUE(is_refused(outcome, "QUERY_FAILED", "")) << name;
    else
      EXPECT_TRUE(is_refused(outcome, "NOT_ALLOWED_DIR", "expected a path without variables"));
  }
}

// The system ignores RPATH where there is a RUNPATH, and so the files that are found there.
TEST(Search, IsThatOfRunpathWhereThereAreBoth) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch, "two_searches");
  change_dynamic_tag(file, DT_AUXILIARY, DT_RPATH);
  const fs::path ignored = fs::path(TENON_TEST_PLUGIN_DIR) / ".." / "ignored";
  fs::create_directories(ignored);
  fs::copy(scratch / "beside", ignored,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  ASSERT_EQ(::chmod((ignored / kLibraries[0]).c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
  ASSERT_EQ(::chmod((ignored / kLibraries[0]).c_str(), 0644), 0);
  ASSERT_EQ(::chmod((scratch / "beside" / kLibraries[0]).c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", (scratch / "beside" / kLibraries[0]).string()));
}

// The plugin needs the first library, which needs the second and does not say where that is.
TEST(Search, OfRpathHoldsForWhatNeededLibrariesNeed) {
  Scratch scratch;
  const fs::path one = copy_mutual(scratch), two = scratch / "beside/libtenon_test_mutual_two.so";
  fs::path file = scratch.copy("needs_mutual", "plugin.so");
  change_dynamic_tag(file, DT_NEEDED, DT_DEBUG, 1);
  change_dynamic_tag(file, DT_RUNPATH, DT_RPATH);
  change_dynamic_tag(one, DT_AUXILIARY, DT_NEEDED);
  change_dynamic_tag(one, DT_RUNPATH, DT_DEBUG);
  ASSERT_EQ(::chmod(two.c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", two.string() + ", which " + one.string()));
  ASSERT_EQ(::chmod(two.c_str(), 0644), 0);
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", "")) << "all was found";
}

// An auxiliary library is loaded where it is found.
TEST(Search, LooksAtAuxiliaryLibraries) {
  Scratch scratch;
  const fs::path one = copy_mutual(scratch), two = scratch / "beside/libtenon_test_mutual_two.so";
  EXPECT_TRUE(is_refused(load(one), "NO_NOTE", ""));
  ASSERT_EQ(::chmod(two.c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(one), "WRITABLE", two.string() + ", which " + one.string()));
}

TEST(Search, EndsWhereLibrariesNeedEachOther) {
  Scratch scratch;
  change_dynamic_tag(copy_mutual(scratch), DT_AUXILIARY, DT_NEEDED);
  change_dynamic_tag(scratch / "beside/libtenon_test_mutual_two.so", DT_AUXILIARY, DT_NEEDED);
  EXPECT_TRUE(is_refused(load(scratch.copy("needs_mutual", "plugin.so")), "QUERY_FAILED", ""));
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
