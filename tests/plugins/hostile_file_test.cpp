// SPDX-License-Identifier: Apache-2.0
// Bytes that were changed at random: reading them may fail and must do nothing else.
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "formats/json_fields.hpp"
#include "kernel_core/plugin/library_search.hpp"
#include "kernel_core/plugin/note.hpp"
#include "support.hpp"

namespace tenon::test {
namespace {

// Everything that looks into the file before the system does.
bool examine(const std::string& path) {
  (void)core::read_library_search(path);
  core::Manifest manifest;
  return !core::read_note(path, manifest) && !core::check_note(path, manifest);
}

TEST(HostileFile, WithRandomBytesInHeadersAndNoteIsSurvived) {
  Scratch scratch;
  std::string path = scratch.copy("null", "mutant.so");
  std::string whole = read_file(path);
  Elf64_Ehdr header;
  whole.copy(reinterpret_cast<char*>(&header), sizeof header);
  size_t note = note_offset(whole);
  std::vector<Elf64_Phdr> programs(header.e_phnum);
  std::memcpy(programs.data(), whole.data() + header.e_phoff, programs.size() * sizeof(Elf64_Phdr));
  auto dynamic = std::find_if(programs.begin(), programs.end(),
                              [](const Elf64_Phdr& one) { return one.p_type == PT_DYNAMIC; });
  ASSERT_NE(dynamic, programs.end());
  ASSERT_EQ(core::read_library_search(path).folders.size(), 1);
  struct Range {
    size_t begin, size;
  };
  const Range kRanges[] = {{0, sizeof header},
                           {header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)},
                           {header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)},
                           {dynamic->p_offset, dynamic->p_filesz},
                           {note, sizeof(tenon_note)}};
  std::mt19937 random(20261121);
  int file = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  int sound = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string mutant = whole;
    const Range& range = kRanges[random() % std::size(kRanges)];
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      // Small, huge and arbitrary values; huge ones hit sums that overflow.
      const char kExtremes[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
      size_t at = range.begin + random() % range.size;
      mutant[at] = random() % 2 ? kExtremes[random() % 5] : static_cast<char>(random());
      if (random() % 4 == 0)
        for (size_t k = at; k < std::min(at + 8, mutant.size()); ++k)
          mutant[k] = static_cast<char>(0xff);
    }
    ASSERT_EQ(::pwrite(file, mutant.data(), mutant.size(), 0), static_cast<ssize_t>(mutant.size()));
    sound += examine(path);
  }
  ::close(file);
  EXPECT_GT(sound, 0);      // some bytes do not matter
  EXPECT_LT(sound, 10000);  // and some do
}

TEST(HostileFile, CutAnywhereIsSurvived) {
  Scratch scratch;
  std::string path = scratch.copy("null", "cut.so");
  for (size_t size = read_file(path).size(); size > 0; size -= std::min<size_t>(size, 97)) {
    std::filesystem::resize_file(path, size);
    examine(path);
  }
}

TEST(NoteJson, SurvivesEveryCutAndManyMutations) {
  const std::string whole =
      R"({"kind":"device","devices":["a","b"],"eager":true,"later":{"x":[1,-2.5e3,null,{"y":"z"}]}})";
  JsonFields fields;
  ASSERT_TRUE(parse_json_fields(whole, fields));
  EXPECT_EQ(fields.strings["kind"], "device");
  EXPECT_EQ(fields.lists["devices"], (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(fields.flags["eager"]);
  for (size_t size = 0; size < whole.size(); ++size) {
    JsonFields ignored;
    EXPECT_FALSE(parse_json_fields(whole.substr(0, size), ignored)) << whole.substr(0, size);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 10000; ++i) {
    std::string mutant = whole;
    mutant[random() % mutant.size()] = static_cast<char>(random());
    JsonFields ignored;
    parse_json_fields(mutant, ignored);
  }
  JsonFields ignored;
  EXPECT_FALSE(parse_json_fields("{\"a\":" + std::string(100000, '['), ignored));
}

}  // namespace
}  // namespace tenon::test
