// SPDX-License-Identifier: Apache-2.0
// What a shared library says about itself, read as data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/abi.h>

#include "formats/elf_file.hpp"

namespace tenon::kit {

struct Symbol {
  std::string name;
  int binding = 0;
  bool is_defined = false;
};

class Elf {
 public:
  explicit Elf(const std::string& path);
  bool is_readable() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

  std::vector<Symbol> dynamic_symbols() const;
  std::vector<std::string> dynamic_strings(int64_t tag) const;  // DT_NEEDED, DT_RUNPATH, ...
  bool has_dynamic(int64_t tag, uint64_t flag = 0) const;       // present; with `flag` set in it
  // Flags of the PT_GNU_STACK segment; none: the system's default, which is executable.
  std::optional<uint32_t> stack_flags() const;
  std::optional<tenon_note> note() const;

 private:
  template <class Type>
  std::vector<Type> table(const Elf64_Shdr& section) const;
  const Elf64_Shdr* section(uint32_t type) const;
  std::vector<char> strings_of(const Elf64_Shdr& section) const;  // that it refers to
  std::vector<Elf64_Dyn> dynamic() const;

  std::unique_ptr<ElfFile> file_ = std::make_unique<ElfFile>();  // Elf can be moved
  std::string problem_;
};

}  // namespace tenon::kit
