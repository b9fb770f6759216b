// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support.hpp"

namespace opencl_test {
namespace {

namespace fs = std::filesystem;

constexpr char kSource[] = R"(
TK_KERNEL void write(TK_BUFFER(tk_i32, out)) {
  TK_BIND(tk_i32, out);
  out[0] = 17;
})";

// With an empty cache folder of its own.
class OpenclCache : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();  // first: drivers choose folders of their own by the same variable
    char name[] = "/tmp/tenon-opencl-XXXXXX";
    root_ = mkdtemp(name);
    if (const char* old = getenv("XDG_CACHE_HOME")) previous_ = old;
    setenv("XDG_CACHE_HOME", root_.c_str(), 1);
  }
  void TearDown() override {
    DeviceTest::TearDown();
    if (previous_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", previous_.c_str(), 1);
    fs::remove_all(root_);
  }

  std::vector<fs::path> entries() {
    std::vector<fs::path> found;
    if (!fs::exists(root_ / "tenon/opencl")) return found;
    for (const auto& entry : fs::directory_iterator(root_ / "tenon/opencl"))
      found.push_back(entry.path());
    return found;
  }
  void expect_runs() {
    void* out = device_copy(std::vector<int32_t>{0});
    launch(kernel(build(kSource, "test/cached"), "write"), {buffer(out)}, 1, 1);
    EXPECT_EQ(values<int32_t>(out, 1)[0], 17);
  }

  fs::path root_;
  std::string previous_;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ino_t inode(const fs::path& path) {
  struct stat about = {};
  EXPECT_EQ(stat(path.c_str(), &about), 0);
  return about.st_ino;
}

void replace(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST_F(OpenclCache, HoldsOneWholeEntryForAProgram) {
  expect_runs();
  ASSERT_EQ(entries().size(), 1u);
  std::string entry = content(entries()[0]);
  EXPECT_EQ(entry.substr(0, 8), "TENONPC1");
  EXPECT_NE(entry.find(kSource), std::string::npos);  // the key is stored in full
  struct stat about;
  ASSERT_EQ(stat(entries()[0].c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  expect_runs();
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_EQ(content(entries()[0]), entry);  // read, not written again
}

TEST_F(OpenclCache, DamagedEntriesAreBuiltAgain) {
  expect_runs();
  ASSERT_EQ(entries().size(), 1u);
  const fs::path path = entries()[0];
  const std::string good = content(path);
  std::string flipped = good, shorter = good.substr(0, good.size() / 2), huge = good;
  flipped.back() ^= 1;
  huge[16] = huge[22] = '\x7f';  // binary_bytes
  for (const std::string& bad : {flipped, shorter, huge, std::string("TENONPC1"), std::string()}) {
    replace(path, bad);
    expect_runs();
    // Replaced, by what the next run finds good. Two builds need not give equal binaries.
    const ino_t replaced = inode(path);
    EXPECT_EQ(content(path).substr(0, 8), "TENONPC1");
    EXPECT_NE(content(path), bad);
    expect_runs();
    EXPECT_EQ(inode(path), replaced);
  }
}

TEST_F(OpenclCache, TrustsNoFileThatOthersMayWrite) {
  expect_runs();
  ASSERT_EQ(entries().size(), 1u);
  const fs::path path = entries()[0];
  chmod(path.c_str(), 0666);
  expect_runs();
  struct stat about;
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);  // replaced by one of ours
  fs::path elsewhere = root_ / "elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  expect_runs();
  EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(OpenclCache, IsNotNeeded) {
  setenv("XDG_CACHE_HOME", "/proc/none", 1);
  expect_runs();
  EXPECT_TRUE(entries().empty());
}

}  // namespace
}  // namespace opencl_test
