// SPDX-License-Identifier: Apache-2.0
// Under a policy, what was examined is what is loaded, whatever happens to the file. The policies
// themselves are a plugin's, and test_policy.py has their tests; here the test says yes or no.
#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <tenon/services/libraries.h>
#include <tenon/services/policy.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
namespace slots = core::slots;

// A policy that notes what it is asked, and does something to the file while it is examined.
struct Policy {
  std::function<void(const fs::path&)> meanwhile = [](const fs::path&) {};
  std::string refused;  // the name of a file that it refuses
  std::vector<std::string> asked;

  Policy() {
    current = this;
    slots::service_register(TENON_POLICY_SERVICE, TENON_POLICY_VERSION, &kService, nullptr);
  }

 private:
  static inline Policy* current = nullptr;
  static tenon_status check(const char*, const char* path, const char* bytes, uint64_t size,
                            tenon_err* err) {
    current->asked.push_back(fs::path(path).filename());
    EXPECT_EQ(std::string(bytes, size), read_file(path));
    current->meanwhile(path);
    if (current->asked.back() != current->refused) return TENON_OK;
    return core::fail(err, TENON_DATA_LOSS, "%s is not accepted", path);
  }
  static constexpr tenon_policy_api kService = {.struct_size = sizeof(tenon_policy_api),
                                                .version = TENON_POLICY_VERSION,
                                                .check_bytes = check};
};

// Is a file of that path mapped, as far as debuggers and dladdr know?
bool is_known(const fs::path& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}

bool is_loaded(const std::string& name) {
  return describe().find(R"({"state":"loaded","name":")" + name + '"') != std::string::npos;
}

TEST(Policy, LoadsWhatItExaminedThoughAnotherFileTookItsPlace) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "plugin.so");
  fs::path other = scratch.copy("faulty", "other.so");
  Policy policy;
  policy.meanwhile = [&](const fs::path& path) { fs::rename(other, path); };
  Variable variable("TENON_PLUGIN_POLICY", "test");
  ASSERT_TRUE(is_ok(load(file)));
  EXPECT_TRUE(is_loaded("null"));
  EXPECT_FALSE(is_loaded("faulty"));
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Policy, LoadsWhatItExaminedThoughTheFileWasWrittenTo) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "plugin.so");
  const std::string bytes = read_file(file);
  Policy policy;
  policy.meanwhile = [&](const fs::path& path) { write_file(path, "no library"); };
  Variable variable("TENON_PLUGIN_POLICY", "test");
  ASSERT_TRUE(is_ok(load(file)));
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Policy, LeavesThePathToDladdr) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "plugin.so");
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  ASSERT_TRUE(is_ok(load(file)));
  EXPECT_TRUE(is_known(file));
  ASSERT_TRUE(is_ok(unload("null")));
  EXPECT_FALSE(is_known(file));
  ASSERT_TRUE(is_ok(load(file)));
  EXPECT_EQ(policy.asked.size(), 2);
}

TEST(Policy, LeavesNoDescriptorsOrMappingsBehind) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "plugin.so");
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  auto held = [] {
    auto files = fs::directory_iterator("/proc/self/fd");
    const std::string maps = read_file("/proc/self/maps");
    return std::pair(std::distance(begin(files), end(files)),
                     std::count(maps.begin(), maps.end(), '\n'));
  };
  auto cycle = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(is_ok(load(file)));
      ASSERT_TRUE(is_ok(unload("null")));
    }
  };
  cycle(5);
  const auto before = held();
  cycle(50);
  EXPECT_EQ(held().first, before.first);
  EXPECT_LE(held().second, before.second + 2) << "the heap may have grown";
}

TEST(Policy, KnowsACopyThatStaysMapped) {
  Scratch scratch;
  fs::path file = scratch.copy("rival", "rival.so");
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  ASSERT_TRUE(is_ok(load(file)));
  ASSERT_TRUE(is_ok(unload("rival")));
  EXPECT_NE(describe().find(R"({"state":"resident","name":"rival")"), std::string::npos);
  // Another library must not be taken for the one that is still there.
  ASSERT_TRUE(is_ok(load(scratch.copy("null", "null.so"))));
  EXPECT_TRUE(is_loaded("null"));
}

// -- libraries that a plugin brings along

fs::path copy_with_libraries(const Scratch& scratch) {
  fs::create_directory(scratch / "beside");
  for (const char* library : {"libtenon_test_absent_one.so", "libtenon_test_absent_two.so"})
    fs::copy(fs::path(TENON_TEST_PLUGIN_DIR) / ".." / "absent" / library,
             scratch / "beside" / library);
  return scratch.copy("brings_along", "plugin.so");
}

TEST(Policy, ExaminesWhatAPluginBringsAlong) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch);
  Policy policy;
  policy.meanwhile = [](const fs::path& path) { fs::remove(path), write_file(path, "nothing"); };
  Variable variable("TENON_PLUGIN_POLICY", "test");
  // Its entry point says no: all was found.
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
  EXPECT_EQ(policy.asked, (std::vector<std::string>{"plugin.so", "libtenon_test_absent_one.so",
                                                    "libtenon_test_absent_two.so"}));
}

TEST(Policy, RefusesAPluginForWhatItBringsAlong) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch);
  Policy policy;
  policy.refused = "libtenon_test_absent_two.so";
  Variable variable("TENON_PLUGIN_POLICY", "test");
  EXPECT_TRUE(is_refused(load(file), "NOT_PINNED", file.string() + " brings it along"));
}

// They cannot be opened one after another. The system alone can map such files.
TEST(Policy, RefusesLibrariesThatNeedEachOther) {
  Scratch scratch;
  fs::path file = scratch.copy("needs_mutual", "plugin.so");
  const fs::path one = copy_mutual(scratch), two = scratch / "beside/libtenon_test_mutual_two.so";
  for (const fs::path& library : {one, two}) change_dynamic_tag(library, DT_AUXILIARY, DT_NEEDED);
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  Outcome outcome = load(file);
  EXPECT_TRUE(is_refused(outcome, "OPEN_FAILED",
                         "got some that need each other: " + one.string() + " needs " +
                             two.string() + " needs " + one.string()));
  EXPECT_NE(outcome.text.find("link them into one library"), outcome.text.npos) << outcome.text;
  EXPECT_EQ(policy.asked.size(), 3);
}

// RPATH of a library holds for what those need that it needs.
TEST(Policy, FindsWhatRpathHandsDown) {
  Scratch scratch;
  fs::path file = scratch.copy("needs_mutual", "plugin.so");
  const fs::path one = copy_mutual(scratch);
  change_dynamic_tag(file, DT_NEEDED, DT_DEBUG, 1);
  change_dynamic_tag(file, DT_RUNPATH, DT_RPATH);
  change_dynamic_tag(one, DT_AUXILIARY, DT_NEEDED);
  change_dynamic_tag(one, DT_RUNPATH, DT_DEBUG);
  change_dynamic_tag(scratch / "beside/libtenon_test_mutual_two.so", DT_AUXILIARY, DT_DEBUG);
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
  EXPECT_EQ(policy.asked, (std::vector<std::string>{"plugin.so", "libtenon_test_mutual_one.so",
                                                    "libtenon_test_mutual_two.so"}));
}

// Without its name the system would not find the copy that was examined, and look for another file.
TEST(Policy, RefusesALibraryWithoutTheNameByWhichItIsNeeded) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch);
  const fs::path library = scratch / "beside" / "libtenon_test_absent_two.so";
  change_dynamic_tag(library, DT_SONAME, DT_DEBUG);
  {
    Policy policy;
    Variable variable("TENON_PLUGIN_POLICY", "test");
    Outcome outcome = load(file);
    EXPECT_TRUE(is_refused(
        outcome, "OPEN_FAILED",
        "expected the name (DT_SONAME) 'libtenon_test_absent_two.so' in " + library.string()));
    EXPECT_NE(outcome.text.find("got none"), outcome.text.npos) << outcome.text;
    EXPECT_NE(outcome.text.find("link it with -Wl,-soname,libtenon_test_absent_two.so"),
              outcome.text.npos)
        << outcome.text;
  }
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", "")) << "without a policy it is found";
}

// A path that is a symbolic link would be opened by the system once more.
TEST(Policy, RefusesALibraryThatIsNeededByALink) {
  Scratch scratch;
  const fs::path full = fs::path(TENON_TEST_PLUGIN_DIR).parent_path() / "full";
  fs::remove_all(full);
  fs::create_directory(full);
  for (std::string which : {"one", "two"}) {
    fs::path library = scratch / ("libtenon_test_absent_" + which + ".so");
    fs::copy(fs::path(TENON_TEST_PLUGIN_DIR) / ".." / "absent" / library.filename(), library);
    if (which == "one")
      fs::copy(library, full / ("libtenon_test_path_" + which + ".so"));
    else
      fs::create_symlink(library, full / ("libtenon_test_path_" + which + ".so"));
  }
  fs::path file = scratch.copy("needs_a_full_path", "plugin.so");
  const fs::path link = full / "libtenon_test_path_two.so";
  {
    Policy policy;
    Variable variable("TENON_PLUGIN_POLICY", "test");
    Outcome outcome = load(file);
    EXPECT_TRUE(is_refused(outcome, "OPEN_FAILED",
                           "expected the name (DT_SONAME) '" + link.string() + "' in " +
                               (scratch / "libtenon_test_absent_two.so").string()));
    EXPECT_NE(outcome.text.find("without a folder, and RUNPATH $ORIGIN"), outcome.text.npos)
        << outcome.text;
    fs::remove(link);
    fs::copy(scratch / "libtenon_test_absent_two.so", link);
    EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", "")) << "the file itself is found";
    EXPECT_EQ(policy.asked.back(), link.filename());
  }
}

// What a variant would be is for the system to say: under a policy the plain file alone is opened.
TEST(Policy, OpensThePlainFileOfVariantsForProcessors) {
  Scratch scratch;
  fs::path file = copy_with_libraries(scratch);
  const fs::path folder = scratch / "beside" / "glibc-hwcaps" / "x86-64-v2";
  fs::create_directories(folder);
  write_file(folder / "libtenon_test_absent_two.so", "no library");
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  EXPECT_TRUE(is_refused(load(file), "QUERY_FAILED", ""));
  EXPECT_EQ(policy.asked.size(), 3);
}

TEST(Policy, TakesNoVariablesThatOnlyTheSystemKnows) {
  Scratch scratch;
  copy_with_libraries(scratch);
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test"), trust("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_refused(load(scratch.copy("variable_folder", "other.so")), "NOT_ALLOWED_DIR",
                         "got '$ORIGIN/$LIB'"));
}

// -- libraries that are no plugins: the service "libraries"

struct Opened {
  Outcome outcome;
  tenon_library library;
};

Opened open_library(const fs::path& path, uint32_t flags = 0) {
  (void)describe();  // makes the loader, which offers the service
  auto service = static_cast<const tenon_libraries_api*>(
      slots::service_find(TENON_LIBRARIES_SERVICE, TENON_LIBRARIES_VERSION));
  tenon_err err;
  tenon_library library = {};
  tenon_status status = service->open(path.c_str(), flags, &library, &err);
  return {{status, err.text}, library};
}

const char* const kNoPlugin = TENON_TEST_PLUGIN_DIR "/libabsent_note.so";

TEST(Libraries, AreOpenedByTheRulesForPlugins) {
  Scratch scratch;
  fs::copy(kNoPlugin, scratch / "library.so");
  Opened first = open_library(scratch / "library.so");
  ASSERT_TRUE(is_ok(first.outcome));
  EXPECT_NE(first.library.handle, nullptr);
  EXPECT_EQ(first.library.opened_as, (scratch / "library.so").string());

  fs::copy(kNoPlugin, scratch / "open.so");
  ASSERT_EQ(::chmod((scratch / "open.so").c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(open_library(scratch / "open.so").outcome, "WRITABLE", "everyone"));
  EXPECT_FALSE(is_known(scratch / "open.so"));
  EXPECT_TRUE(is_refused(open_library("library.so").outcome, "NOT_FOUND", "bare name"));
  EXPECT_NE(describe().find("WRITABLE"), std::string::npos) << "the refusal is kept";
}

TEST(Libraries, InFoldersAreNeverTrustedBlindly) {
  Scratch scratch;
  fs::copy(kNoPlugin, scratch / "library.so");
  ASSERT_EQ(::chmod((scratch / "library.so").c_str(), 0666), 0);
  Variable variable("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_refused(open_library(scratch / "library.so", TENON_LIBRARY_FOUND).outcome,
                         "WRITABLE", "everyone"));
  EXPECT_TRUE(is_ok(open_library(scratch / "library.so").outcome));
}

TEST(Libraries, AreExaminedOnceForTheSameBytes) {
  Scratch scratch;
  fs::path file = scratch / "library.so";
  fs::copy(kNoPlugin, file);
  Policy policy;
  Variable variable("TENON_PLUGIN_POLICY", "test");
  Opened first = open_library(file), again = open_library(file);
  ASSERT_TRUE(is_ok(first.outcome));
  EXPECT_EQ(first.library.handle, again.library.handle) << "its constructors ran once";
  EXPECT_NE(first.library.opened_as, file.string());
  EXPECT_TRUE(is_known(file));
  policy.refused = "library.so";
  EXPECT_TRUE(is_refused(open_library(file).outcome, "NOT_PINNED", "is not accepted"));
}

}  // namespace
}  // namespace tenon::test
