// SPDX-License-Identifier: Apache-2.0
#include "subject/elf.hpp"

#include <cstring>
#include <fstream>
#include <iterator>

namespace tenon::kit {

Elf::Elf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  std::vector<Elf64_Ehdr> header = table<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_type != ET_DYN) {
    problem_ = "not a 64-bit ELF shared library";
    return;
  }
  header_ = header[0];
  sections_ = table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
  if (sections_.empty()) problem_ = "it has no section table, or one outside the file";
}

template <class Type>
std::vector<Type> Elf::table(uint64_t offset, uint64_t count) const {
  if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Type)) return {};
  std::vector<Type> result(count);
  if (count) std::memcpy(result.data(), bytes_.data() + offset, count * sizeof(Type));
  return result;
}

const Elf64_Shdr* Elf::section(uint32_t type) const {
  for (const Elf64_Shdr& section : sections_)
    if (section.sh_type == type) return &section;
  return nullptr;
}

const Elf64_Shdr* Elf::section(const char* name) const {
  if (header_.e_shstrndx >= sections_.size()) return nullptr;
  for (const Elf64_Shdr& section : sections_)
    if (string(sections_[header_.e_shstrndx], section.sh_name) == name) return &section;
  return nullptr;
}

std::string Elf::string(const Elf64_Shdr& strings, uint64_t offset) const {
  if (offset >= strings.sh_size || strings.sh_offset > bytes_.size()) return "";
  uint64_t from = strings.sh_offset + offset;
  if (from >= bytes_.size()) return "";
  return bytes_.substr(from, strnlen(bytes_.data() + from, bytes_.size() - from));
}

std::vector<Symbol> Elf::dynamic_symbols() const {
  std::vector<Symbol> symbols;
  const Elf64_Shdr* section = this->section(SHT_DYNSYM);
  if (!section || section->sh_link >= sections_.size()) return symbols;
  for (const Elf64_Sym& entry :
       table<Elf64_Sym>(section->sh_offset, section->sh_size / sizeof(Elf64_Sym)))
    symbols.push_back({string(sections_[section->sh_link], entry.st_name),
                       ELF64_ST_BIND(entry.st_info), entry.st_shndx != SHN_UNDEF});
  return symbols;
}

std::vector<Elf64_Dyn> Elf::dynamic() const {
  const Elf64_Shdr* section = this->section(SHT_DYNAMIC);
  if (!section) return {};
  std::vector<Elf64_Dyn> entries =
      table<Elf64_Dyn>(section->sh_offset, section->sh_size / sizeof(Elf64_Dyn));
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].d_tag == DT_NULL) entries.resize(i);
  return entries;
}

std::vector<std::string> Elf::dynamic_strings(int64_t tag) const {
  std::vector<std::string> texts;
  const Elf64_Shdr* section = this->section(SHT_DYNAMIC);
  if (!section || section->sh_link >= sections_.size()) return texts;
  for (const Elf64_Dyn& entry : dynamic())
    if (entry.d_tag == tag) texts.push_back(string(sections_[section->sh_link], entry.d_un.d_val));
  return texts;
}

bool Elf::has_dynamic(int64_t tag, uint64_t flag) const {
  for (const Elf64_Dyn& entry : dynamic())
    if (entry.d_tag == tag && (!flag || entry.d_un.d_val & flag)) return true;
  return false;
}

std::optional<uint32_t> Elf::stack_flags() const {
  for (const Elf64_Phdr& segment : table<Elf64_Phdr>(header_.e_phoff, header_.e_phnum))
    if (segment.p_type == PT_GNU_STACK) return segment.p_flags;
  return std::nullopt;
}

std::optional<tenon_note> Elf::note() const {
  const Elf64_Shdr* section = this->section(".note.tenon");
  if (!section || section->sh_size < sizeof(tenon_note)) return std::nullopt;
  std::vector<tenon_note> notes = table<tenon_note>(section->sh_offset, 1);
  if (notes.empty()) return std::nullopt;
  return notes[0];
}

}  // namespace tenon::kit
