// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::test {
namespace fs = std::filesystem;
namespace slots = core::slots;

namespace {

Outcome outcome_of(const std::function<tenon_status(tenon_err*)>& call) {
  tenon_err err;
  tenon_status status = call(&err);
  return {status, status == TENON_OK ? "OK" : err.text};
}

}  // namespace

fs::path plugin_path(const std::string& name) {
  return fs::path(TENON_TEST_PLUGIN_DIR) / ("libtenon_" + name + ".so");
}

void PrintTo(const Outcome& outcome, std::ostream* stream) {
  *stream << outcome.status << " " << outcome.text;
}

Outcome load(const fs::path& path) {
  return outcome_of([&](tenon_err* err) { return slots::plugin_load(path.c_str(), err); });
}

Outcome load_with_fault(const std::string& fault) {
  Variable variable("TENON_TEST_FAULT", fault);
  return load(plugin_path("faulty"));
}

Outcome unload(const std::string& name) {
  return outcome_of([&](tenon_err* err) { return slots::plugin_unload(name.c_str(), err); });
}

Outcome find_device(const std::string& name) {
  tenon_device_id device;
  return outcome_of([&](tenon_err* err) { return slots::device_find(name.c_str(), &device, err); });
}

std::string describe() {
  std::string json;
  auto append = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::string*>(user)->append(text, bytes);
  };
  slots::plugin_describe(append, &json);
  return json;
}

testing::AssertionResult is_ok(const Outcome& outcome) {
  if (outcome.status == TENON_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << outcome.text;
}

testing::AssertionResult is_refused(const Outcome& outcome, const std::string& reason,
                                    const std::string& text) {
  bool matches = outcome.status != TENON_OK && outcome.text.ends_with("[" + reason + "]") &&
                 outcome.text.find(text) != std::string::npos;
  if (matches) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "expected [" << reason << "] with '" << text << "', got: " << outcome.text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Scratch::Scratch() {
  // Below the build folder: a folder in /tmp itself is not trusted.
  std::string name = (fs::path(TENON_TEST_PLUGIN_DIR) / "scratch.XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp " + name);
  folder_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

fs::path Scratch::copy(const std::string& plugin, const std::string& name,
                       const std::function<void(tenon_note&)>& edit) const {
  std::string bytes = read_file(plugin_path(plugin));
  if (edit) {
    tenon_note note;
    std::memcpy(&note, bytes.data() + note_offset(bytes), sizeof note);
    edit(note);
    std::memcpy(bytes.data() + note_offset(bytes), &note, sizeof note);
  }
  write_file(folder_ / name, bytes);
  return folder_ / name;
}

void change_dynamic_tag(const fs::path& library, int64_t from, int64_t into, int kept) {
  std::string bytes = read_file(library);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bool is_changed = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    std::memcpy(&program, bytes.data() + header.e_phoff + i * sizeof program, sizeof program);
    for (size_t at = 0; program.p_type == PT_DYNAMIC && at < program.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      char* place = bytes.data() + program.p_offset + at;
      std::memcpy(&entry, place, sizeof entry);
      if (entry.d_tag != from || kept-- > 0) continue;
      entry.d_tag = into;
      std::memcpy(place, &entry, sizeof entry);
      is_changed = true;
    }
  }
  if (!is_changed) throw std::runtime_error("no such entry in " + library.string());
  write_file(library, bytes);
}

fs::path copy_mutual(const Scratch& scratch) {
  fs::create_directory(scratch / "beside");
  for (const char* library : {"libtenon_test_mutual_one.so", "libtenon_test_mutual_two.so"})
    fs::copy(fs::path(TENON_TEST_PLUGIN_DIR) / ".." / "mutual" / library,
             scratch / "beside" / library);
  return scratch / "beside" / "libtenon_test_mutual_one.so";
}

size_t note_offset(const std::string& bytes) {
  const uint32_t words[] = {6, sizeof(tenon_note) - 20, 1};
  std::string header(reinterpret_cast<const char*>(words), sizeof words);
  size_t at = bytes.find(header + "TENON");
  if (at == bytes.npos) throw std::runtime_error("no note");
  return at;
}

Variable::Variable(const char* name, const std::string& value) : name_(name) {
  ::setenv(name, value.c_str(), 1);
}
Variable::~Variable() { ::unsetenv(name_); }

}  // namespace tenon::test
