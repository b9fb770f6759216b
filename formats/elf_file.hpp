// SPDX-License-Identifier: Apache-2.0
// Reads an ELF file as data. Every offset and size in it may be a lie: nothing is used before it
// was compared with the size of the file, and nothing is mapped or run.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class ElfFile {
 public:
  // Why a file is no shared library that could run here.
  enum class Problem { kNone, kUnreadable, kNotElf, kOtherProcessor, kNotShared, kDamaged };

  ElfFile() = default;
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile();

  // A problem unless the file is a shared library for this processor with a readable section table;
  // `text` then says more.
  Problem open(const std::string& path, std::string& text);
  // The same of a file that is open already and stays the caller's; `path` is its name in texts.
  Problem open(int descriptor, const std::string& path, std::string& text);

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  // The first section of that name; NULL if there is none.
  const Elf64_Shdr* find_section(std::string_view name) const;

  // Contents of a section, or its first `limit` bytes if it is longer. Empty if it lies about where
  // it is.
  std::vector<char> contents(const Elf64_Shdr& section, uint64_t limit = UINT64_MAX) const;

  // False if they lie outside the file.
  bool read(uint64_t offset, void* into, uint64_t bytes) const;

  // The texts of the dynamic section's entries with that tag, such as DT_NEEDED. Found by program
  // headers, as the system's loader finds them: section tables may be absent, or may lie.
  std::vector<std::string> dynamic_strings(int64_t tag) const;

 private:
  Problem read_header(std::string& text);
  Problem read_sections(std::string& text);
  std::vector<Elf64_Phdr> program_headers() const;
  std::string string_in_file(uint64_t offset) const;

  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string path_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> sections_;
  std::vector<char> names_;
};

// The NUL-terminated string at `offset` in a string table; empty if it does not end inside.
std::string_view string_at(const std::vector<char>& table, uint64_t offset);

}  // namespace tenon
