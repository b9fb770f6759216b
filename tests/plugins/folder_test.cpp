// SPDX-License-Identifier: Apache-2.0
// Plugins in folders: known by their notes, loaded when wanted.
#include <sys/stat.h>

#include "formats/json_fields.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
namespace slots = core::slots;

Outcome add_folder(const fs::path& path) {
  tenon_err err;
  tenon_status status = slots::plugin_add_folder(path.c_str(), &err);
  return {status, err.text};
}

bool is_loaded(const std::string& name) {
  return describe().find(R"({"state":"loaded","name":")" + name + '"') != std::string::npos;
}

TEST(Folder, MustExist) {
  EXPECT_TRUE(is_refused(add_folder("/nonexistent"), "NOT_FOUND", "/nonexistent"));
}

TEST(Folder, IsReadAndNotRun) {
  Scratch scratch;
  scratch.copy("null", "libtenon_null.so");
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  EXPECT_NE(describe().find(R"({"state":"known","name":"null")"), std::string::npos) << describe();
  EXPECT_EQ(slots::plugin_load_default(nullptr), TENON_OK);
  EXPECT_FALSE(is_loaded("null"));
}

TEST(Folder, DevicesLoadWhenTheyAreNamed) {
  Scratch scratch;
  scratch.copy("null", "libtenon_null.so");
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  EXPECT_EQ(find_device("nil:0").status, TENON_NOT_FOUND);
  EXPECT_TRUE(is_ok(find_device("null:0")));
  EXPECT_TRUE(is_loaded("null"));
}

TEST(Folder, EagerDevicesLoadByDefaultWithKernelsForThem) {
  Scratch scratch;
  auto set_json = [](tenon_note& note, const std::string& json) {
    json.copy(note.json, sizeof note.json - 1);
    note.json[json.size()] = 0;
  };
  scratch.copy("null", "libtenon_null.so", [&](tenon_note& note) {
    set_json(note, R"({"kind":"device","devices":["null"],"eager":true})");
  });
  // Kernels for a device that is there, and for one that is not. Neither has a sound table: that
  // they were tried is what shows.
  scratch.copy("faulty", "a.so", [&](tenon_note& note) {
    set_json(note, R"({"kind":"kernels","kernels_for":["null"]})");
  });
  scratch.copy("rival", "b.so", [&](tenon_note& note) {
    set_json(note, R"({"kind":"kernels","kernels_for":["acme"]})");
  });
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  ASSERT_EQ(slots::plugin_load_default(nullptr), TENON_OK);
  EXPECT_TRUE(is_loaded("null"));
  std::string json = describe();
  EXPECT_NE(json.find(R"({"state":"refused","name":"faulty")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"({"state":"known","name":"rival")"), std::string::npos) << json;
}

TEST(Folder, BadFilesDoNotMatter) {
  Scratch scratch;
  write_file(scratch / "text.so", "hello");
  write_file(scratch / "readme.txt", "hello");
  fs::create_symlink("/nonexistent", scratch / "dangling.so");
  fs::create_directory(scratch / "folder.so");
  fs::copy(fs::path(TENON_TEST_PLUGIN_DIR) / "libabsent_note.so", scratch / "libsomething.so");
  scratch.copy("null", "libtenon_null.so");
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  EXPECT_EQ(slots::plugin_load_default(nullptr), TENON_OK);
  EXPECT_NE(describe().find("BAD_ELF"), std::string::npos);
  EXPECT_EQ(describe().find("libsomething"), std::string::npos) << "a library that is no plugin";
  EXPECT_TRUE(is_ok(find_device("null")));
}

// A program that finds fewer operators than it should has no other way to learn of it.
TEST(Folder, PluginsThatCannotLoadAreWarnedOf) {
  Scratch scratch;
  scratch.copy("null", "libtenon_null.so", [](tenon_note& note) {
    note.sanitizer =
        note.sanitizer == TENON_SANITIZER_THREAD ? TENON_SANITIZER_ADDRESS : TENON_SANITIZER_THREAD;
  });
  write_file(scratch / "text.so", "hello");
  testing::internal::CaptureStderr();
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("libtenon_null.so) is built with sanitizer "), std::string::npos) << log;
  EXPECT_NE(log.find("; build both alike [SANITIZER]"), std::string::npos) << log;
  EXPECT_EQ(log.find("text.so"), std::string::npos) << log;
}

TEST(Folder, ARefusalIsKeptForTheOneWhoNamesTheDevice) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  for (int i = 0; i < 2; ++i) {
    Outcome outcome = find_device("null:0");
    EXPECT_EQ(outcome.status, TENON_PERMISSION_DENIED);
    EXPECT_NE(outcome.text.find("device kind 'null' cannot be loaded: "), std::string::npos)
        << outcome.text;
    EXPECT_NE(outcome.text.find("[WRITABLE]"), std::string::npos) << outcome.text;
  }
  // TENON_PLUGIN_TRUST is for paths that the program names, not for what lies in folders.
  Variable variable("TENON_PLUGIN_TRUST", "any");
  EXPECT_EQ(find_device("null:0").status, TENON_PERMISSION_DENIED);
  EXPECT_TRUE(is_ok(load(file)));
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Folder, FromTheEnvironmentIsKnown) {
  Scratch scratch;
  scratch.copy("null", "libtenon_null.so");
  Variable variable("TENON_PLUGIN_PATH", "/nonexistent:" + scratch.folder().string());
  EXPECT_TRUE(is_ok(find_device("null")));
}

TEST(Folder, MayBeOneLibrary) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  scratch.copy("faulty", "libtenon_faulty.so");
  ASSERT_TRUE(is_ok(add_folder(file)));
  EXPECT_TRUE(is_ok(find_device("null")));
  EXPECT_EQ(find_device("faulty").status, TENON_NOT_FOUND);
}

TEST(Named, PluginIsKnownByItsPath) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  Variable variable("TENON_PLUGINS", "null:" + file.string());
  EXPECT_NE(describe().find(R"({"state":"known","name":"null")"), std::string::npos) << describe();
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Named, PluginComesBeforeOthersOfItsName) {
  Scratch scratch;
  fs::create_directory(scratch / "a");
  scratch.copy("null", "a/libtenon_null.so");
  fs::path file = scratch.copy("null", "named.so");
  Variable folder("TENON_PLUGIN_PATH", (scratch / "a").string());
  Variable variable("TENON_PLUGINS", "null:" + file.string());
  EXPECT_TRUE(is_ok(find_device("null:0")));
  EXPECT_NE(describe().find("gives way to " + file.string()), std::string::npos) << describe();
}

TEST(Named, PluginThatCannotBeLoadedIsNotReplacedSilently) {
  Scratch scratch;
  fs::create_directory(scratch / "a");
  scratch.copy("null", "a/libtenon_null.so");
  fs::path file = scratch.copy("null", "named.so");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  Variable folder("TENON_PLUGIN_PATH", (scratch / "a").string());
  Variable variable("TENON_PLUGINS", "null:" + file.string());
  EXPECT_EQ(find_device("null:0").status, TENON_PERMISSION_DENIED);
}

TEST(Named, PluginIsTrustedLikeAPathOfTheProgram) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "named.so");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  Variable variable("TENON_PLUGINS", "null:" + file.string());
  Variable trust("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_ok(find_device("null:0")));
}

TEST(Named, PluginNeedsItsNameAndAFullPath) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "named.so");
  Variable variable("TENON_PLUGINS", "acme:" + file.string() + ",null,x:/nonexistent.so");
  std::string json = describe();
  EXPECT_NE(json.find("expected null:" + file.string() + ", got acme:" + file.string()),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("got the bare name 'null'"), std::string::npos) << json;
  EXPECT_NE(json.find("no plugin can be read at /nonexistent.so"), std::string::npos) << json;
  EXPECT_EQ(find_device("null").status, TENON_INVALID_ARGUMENT);
}

TEST(Folder, SameFileUnderTwoNamesIsOneCandidate) {
  Scratch scratch;
  scratch.copy("null", "libtenon_null.so");
  fs::create_symlink("libtenon_null.so", scratch / "libtenon_null_again.so");
  ASSERT_TRUE(is_ok(add_folder(scratch.folder())));
  std::string json = describe();
  size_t first = json.find(R"("name":"null")");
  EXPECT_EQ(json.find(R"("name":"null")", first + 1), std::string::npos) << json;
}

TEST(Describe, IsJsonWhateverPluginsSay) {
  Scratch scratch;
  write_file(scratch / "quo\"te\\.so", "hello");
  ASSERT_FALSE(load(scratch / "quo\"te\\.so").status == TENON_OK);
  ASSERT_TRUE(is_ok(load(plugin_path("null"))));
  JsonFields fields;
  EXPECT_TRUE(parse_json_fields(describe(), fields)) << describe();
}

TEST(DefaultLoading, IsIdempotentAndQuickOnceDone) {
  ASSERT_EQ(slots::plugin_load_default(nullptr), TENON_OK);
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100000; ++i) slots::plugin_load_default(nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace tenon::test
