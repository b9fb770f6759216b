// SPDX-License-Identifier: Apache-2.0
// Files that are no plugins, or no plugins for this host: refused before any of their code runs.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "support.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

TEST(File, MustExist) {
  EXPECT_TRUE(is_refused(load("/nonexistent/libtenon_acme.so"), "NOT_FOUND", "/nonexistent/"));
}

TEST(File, IsNeverSearchedFor) {
  EXPECT_TRUE(is_refused(load("libtenon_null.so"), "NOT_FOUND", "bare name"));
  EXPECT_TRUE(is_refused(load(""), "NOT_FOUND", "bare name ''"));
}

TEST(File, MustNotBeAFolder) {
  Scratch scratch;
  EXPECT_TRUE(is_refused(load(scratch.folder()), "NOT_FOUND", "is not a file"));
}

TEST(File, OfTextIsNoLibrary) {
  Scratch scratch;
  write_file(scratch / "libtenon_text.so", "INPUT(libreal.so)\n");
  EXPECT_TRUE(is_refused(load(scratch / "libtenon_text.so"), "BAD_ELF", "not an ELF file"));
}

TEST(File, ThatIsEmptyIsNoLibrary) {
  Scratch scratch;
  write_file(scratch / "libtenon_empty.so", "");
  EXPECT_TRUE(is_refused(load(scratch / "libtenon_empty.so"), "BAD_ELF", "not an ELF file"));
}

TEST(File, ThatIsTruncatedIsRefused) {
  Scratch scratch;
  std::string whole = read_file(plugin_path("null"));
  write_file(scratch / "half.so", whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(is_refused(load(scratch / "half.so"), "BAD_ELF", "outside the file"));
}

TEST(File, OfAProgramIsNoLibrary) {
  Scratch scratch;
  std::string bytes = read_file(plugin_path("null"));
  bytes[16] = 2;  // e_type = ET_EXEC
  write_file(scratch / "program.so", bytes);
  EXPECT_TRUE(is_refused(load(scratch / "program.so"), "BAD_ELF", "ELF type 2"));
}

TEST(File, ForAnotherProcessorIsRefused) {
  Scratch scratch;
  std::string bytes = read_file(plugin_path("null"));
  bytes[18] = 8;  // e_machine = EM_MIPS
  bytes[19] = 0;
  write_file(scratch / "mips.so", bytes);
  EXPECT_TRUE(is_refused(load(scratch / "mips.so"), "WRONG_ARCH", "got 8"));
}

TEST(File, OfAnotherClassOrByteOrderSaysWhich) {
  Scratch scratch;
  const std::string whole = read_file(plugin_path("null"));
  std::string bytes = whole;
  bytes[4] = 1;  // ELFCLASS32
  write_file(scratch / "narrow.so", bytes);
  EXPECT_TRUE(is_refused(load(scratch / "narrow.so"), "WRONG_ARCH",
                         "expected a file of 64 bits (ELF class 2), got ELF class 1"));
  bytes = whole;
  bytes[5] ^= 3;  // ELFDATA2LSB and ELFDATA2MSB
  write_file(scratch / "swapped.so", bytes);
  Outcome outcome = load(scratch / "swapped.so");
  EXPECT_TRUE(is_refused(outcome, "WRONG_ARCH", "expected byte order "));
  EXPECT_NE(outcome.text.find("big-endian"), outcome.text.npos) << outcome.text;
  EXPECT_NE(outcome.text.find("little-endian"), outcome.text.npos) << outcome.text;
}

TEST(Note, MustBeThere) {
  EXPECT_TRUE(is_refused(load(fs::path(TENON_TEST_PLUGIN_DIR) / "libabsent_note.so"), "NO_NOTE",
                         ".note.tenon"));
}

struct NoteCase {
  const char* name;
  void (*edit)(tenon_note&);
  const char* reason;
  const char* text;
};
void PrintTo(const NoteCase& value, std::ostream* stream) { *stream << value.name; }

class WrongNote : public testing::TestWithParam<NoteCase> {};

TEST_P(WrongNote, IsRefused) {
  Scratch scratch;
  const NoteCase& expected = GetParam();
  Outcome outcome = load(scratch.copy("null", "libtenon_null.so", expected.edit));
  EXPECT_TRUE(is_refused(outcome, expected.reason, expected.text));
  EXPECT_TRUE(is_ok(load(plugin_path("null"))));
}

void set_json(tenon_note& note, const char* json) {
  std::memset(note.json, 0, sizeof note.json);
  std::strcpy(note.json, json);
}

const NoteCase kNotes[] = {
    {"newer_epoch", [](tenon_note& n) { n.epoch_min = n.epoch_max = 2; }, "EPOCH", "upgrade Tenon"},
    {"older_epoch", [](tenon_note& n) { n.epoch_min = n.epoch_max = 0; }, "EPOCH", "upgrade null"},
    {"reversed_epochs", [](tenon_note& n) { n.epoch_min = 3; }, "BAD_NOTE", "3..1"},
    {"other_sanitizer", [](tenon_note& n) { n.sanitizer ^= 2; }, "SANITIZER", "build both alike"},
    {"unknown_sanitizer", [](tenon_note& n) { n.sanitizer = 77; }, "SANITIZER", "unknown"},
    {"cpu_feature",
     [](tenon_note& n) {
       set_json(n, R"({"kind":"device","devices":["null"],"cpu":["mmx9","zz"]})");
     },
     "CPU_FEATURE", "mmx9, zz"},
    {"reserved", [](tenon_note& n) { n.reserved = 1; }, "BAD_NOTE", "reserved"},
    {"type", [](tenon_note& n) { n.type = 2; }, "BAD_NOTE", "type 1"},
    {"size", [](tenon_note& n) { n.desc_size = 8; }, "BAD_NOTE", "bytes"},
    {"owner", [](tenon_note& n) { std::memcpy(n.owner, "OTHER", 6); }, "BAD_NOTE", "owner TENON"},
    {"endless_name", [](tenon_note& n) { std::memset(n.name, 'a', sizeof n.name); }, "BAD_NOTE",
     "end inside"},
    {"endless_json", [](tenon_note& n) { std::memset(n.json, '{', sizeof n.json); }, "BAD_NOTE",
     "end inside"},
    {"empty_name", [](tenon_note& n) { n.name[0] = 0; }, "BAD_NOTE", "expected a name"},
    {"path_as_name", [](tenon_note& n) { std::strcpy(n.name, "../../x"); }, "BAD_NOTE",
     "expected a name"},
    {"broken_json", [](tenon_note& n) { set_json(n, R"({"kind":"device",})"); }, "BAD_NOTE",
     "does not parse"},
    {"no_kind", [](tenon_note& n) { set_json(n, "{}"); }, "BAD_NOTE", "expected kind"},
    {"kind", [](tenon_note& n) { set_json(n, R"({"kind":"virus"})"); }, "BAD_NOTE", "got 'virus'"},
    {"namespace",
     [](tenon_note& n) { set_json(n, R"({"kind":"operators","namespaces":["A b"]})"); }, "BAD_NOTE",
     "'A b'"},
    {"other_name", [](tenon_note& n) { std::strcpy(n.name, "nil"); }, "BAD_TABLE",
     "the note says 'nil'"},
    {"other_device", [](tenon_note& n) { set_json(n, R"({"kind":"device","devices":["nil"]})"); },
     "BAD_TABLE", "DEVICES null"},
};
INSTANTIATE_TEST_SUITE_P(Notes, WrongNote, testing::ValuesIn(kNotes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Library, ThatMissesASymbolIsRefusedByName) {
  EXPECT_TRUE(is_refused(load(plugin_path("missing_symbol")), "MISSING_SYMBOL",
                         "'tenon_test_absent_function'"));
}

TEST(Library, ThatMissesLibrariesNamesTheFirstAndWhoListsThemAll) {
  Outcome outcome = load(plugin_path("missing_library"));
  EXPECT_TRUE(is_refused(outcome, "MISSING_DEP",
                         "needs the library libtenon_test_absent_one.so, which is not found"));
  EXPECT_NE(outcome.text.find("`tenon plugins doctor "), std::string::npos) << outcome.text;
}

TEST(Library, MustExportTheEntryPoint) {
  EXPECT_TRUE(
      is_refused(load(plugin_path("no_entry_point")), "MISSING_SYMBOL", "tenon_plugin_query"));
}

TEST(Trust, RefusesAFileThatAnyoneMayWrite) {
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", "everyone"));
  Variable variable("TENON_PLUGIN_TRUST", "any");
  EXPECT_TRUE(is_ok(load(file)));
}

TEST(Trust, RefusesAFolderThatAnyoneMayWrite) {
  Scratch scratch;
  fs::create_directory(scratch / "open");
  fs::path file = scratch.copy("null", "open/libtenon_null.so");
  ASSERT_EQ(::chmod((scratch / "open").c_str(), 01777), 0);  // sticky does not help
  EXPECT_TRUE(is_refused(load(file), "NOT_ALLOWED_DIR", "everyone"));
  // Nor does a detour.
  fs::create_symlink(file, scratch / "link.so");
  EXPECT_TRUE(is_refused(load(scratch / "link.so"), "NOT_ALLOWED_DIR", "/open "));
}

TEST(Trust, RefusesWhatAnotherUserOwns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  ASSERT_EQ(::chown(file.c_str(), 54321, 54321), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", "user 54321"));
}

TEST(Trust, RefusesAGroupThatCannotChangeTheHost) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Scratch scratch;
  fs::path file = scratch.copy("null", "libtenon_null.so");
  ASSERT_EQ(::chown(file.c_str(), -1, 54321), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0664), 0);
  EXPECT_TRUE(is_refused(load(file), "WRITABLE", "group 54321"));
}

}  // namespace
}  // namespace tenon::test
