// SPDX-License-Identifier: Apache-2.0
// Generated text is pinned: golden/<case>/input.yaml gives golden/<case>/expected/. The case's file
// `emit` lists emitters; lines `import <case>` name others whose operators may be used, and
// `names.yaml` is the file of names, if there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "emit/emit.hpp"
#include "load/names.hpp"
#include "run.hpp"
#include "support/text.hpp"

namespace tenon::codegen::testing {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(TENON_TEST_FOLDER) / "golden";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

const EmitterRow& emitter(const std::string& name) {
  for (const EmitterRow& row : emitters())
    if (name == row.name) return row;
  throw std::runtime_error("no emitter " + name);
}

std::string first_difference(const std::string& expected, const std::string& actual) {
  std::vector<std::string> a = lines_of(expected), b = lines_of(actual);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string left = i < a.size() ? a[i] : "(end)", right = i < b.size() ? b[i] : "(end)";
    if (left != right) return cat("line ", i + 1, "\n  expected: ", left, "\n  got:      ", right);
  }
  return "";
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, TextIsAsBefore) {
  fs::path folder = kFolder / GetParam();
  std::vector<std::string> imports, kinds;
  for (const std::string& line : lines_of(read_file(folder / "emit"))) {
    if (line.rfind("import ", 0) == 0)
      imports.push_back(kFolder / line.substr(7) / "input.yaml");
    else
      kinds.push_back(line);
  }
  Loaded loaded;
  load({folder / "input.yaml"}, imports, loaded);
  if (fs::exists(folder / "names.yaml"))
    load_names(folder / "names.yaml", loaded.package, loaded.errors);
  ASSERT_TRUE(loaded.errors.empty()) << join(loaded.errors, "\n");
  EmitOptions options{loaded.package.name_space + "::operators", "operators"};

  bool update = std::getenv("TENON_UPDATE_GOLDEN") != nullptr;
  if (update) fs::remove_all(folder / "expected");
  std::vector<std::string> written;
  for (const std::string& kind : kinds) {
    for (const OutputFile& file : emitter(kind).emit(loaded.package, options)) {
      fs::path path = folder / "expected" / file.path;
      written.push_back(path);
      if (update) {
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << file.text;
      }
      EXPECT_EQ("", first_difference(read_file(path), file.text))
          << path.string()
          << "\nIf this is meant: TENON_UPDATE_GOLDEN=1 codegen_test, and look at the diff.";
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder / "expected"))
    if (entry.is_regular_file()) {
      EXPECT_NE(std::find(written.begin(), written.end(), entry.path()), written.end())
          << entry.path() << " is not generated any more; remove it";
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon::codegen::testing
