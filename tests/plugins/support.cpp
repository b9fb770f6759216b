// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

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
