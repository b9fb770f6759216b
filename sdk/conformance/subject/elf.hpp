// SPDX-License-Identifier: Apache-2.0
// What a shared library says about itself, read as data. Every offset may be a lie: nothing outside
// the file is touched.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/abi.h>

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
  std::vector<Type> table(uint64_t offset, uint64_t count) const;
  const Elf64_Shdr* section(uint32_t type) const;
  const Elf64_Shdr* section(const char* name) const;
  std::string string(const Elf64_Shdr& strings, uint64_t offset) const;
  std::vector<Elf64_Dyn> dynamic() const;

  std::string bytes_, problem_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace tenon::kit
