// SPDX-License-Identifier: Apache-2.0
// What the loader's tests share. Each test runs in a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <tenon/abi.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

// Where the build put libtenon_<name>.so.
std::filesystem::path plugin_path(const std::string& name);

// The result of a call: "OK", or the error's text, which ends with "[REASON]".
struct Outcome {
  tenon_status status;
  std::string text;
};
void PrintTo(const Outcome& outcome, std::ostream* stream);

Outcome load(const std::filesystem::path& path);
Outcome load_with_fault(const std::string& fault);  // the plugin "faulty"
Outcome unload(const std::string& name);
Outcome find_device(const std::string& name);
std::string describe();

testing::AssertionResult is_ok(const Outcome& outcome);
// Refused for `reason`, with `text` somewhere in the message.
testing::AssertionResult is_refused(const Outcome& outcome, const std::string& reason,
                                    const std::string& text);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

// A folder for the test's own files; gone when the test is.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  const std::filesystem::path& folder() const { return folder_; }
  // A copy of a built plugin, possibly with another note.
  std::filesystem::path copy(const std::string& plugin, const std::string& name,
                             const std::function<void(tenon_note&)>& edit = nullptr) const;

 private:
  std::filesystem::path folder_;
};

// Gives entries of a library's dynamic section another meaning, as DT_RUNPATH that of DT_RPATH: all
// with the tag `from` but the first `kept`.
void change_dynamic_tag(const std::filesystem::path& library, int64_t from, int64_t into,
                        int kept = 0);

// Copies two libraries, each an auxiliary of the other, for the plugin "needs_mutual", and returns
// the first: beside/libtenon_test_mutual_one.so.
std::filesystem::path copy_mutual(const Scratch& scratch);

// Offset of the note in the bytes of a plugin.
size_t note_offset(const std::string& bytes);

// Sets an environment variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();

 private:
  const char* name_;
};

}  // namespace tenon::test
