// SPDX-License-Identifier: Apache-2.0
#include "subject/elf.hpp"

#include <cstring>

namespace tenon::kit {

Elf::Elf(const std::string& path) { file_->open(path, problem_); }

template <class Type>
std::vector<Type> Elf::table(const Elf64_Shdr& section) const {
  std::vector<char> bytes = file_->contents(section);
  std::vector<Type> result(bytes.size() / sizeof(Type));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(Type));
  return result;
}

const Elf64_Shdr* Elf::section(uint32_t type) const {
  for (const Elf64_Shdr& section : file_->sections())
    if (section.sh_type == type) return &section;
  return nullptr;
}

std::vector<char> Elf::strings_of(const Elf64_Shdr& section) const {
  const auto& sections = file_->sections();
  if (section.sh_link >= sections.size()) return {};
  return file_->contents(sections[section.sh_link]);
}

std::vector<Symbol> Elf::dynamic_symbols() const {
  std::vector<Symbol> symbols;
  const Elf64_Shdr* section = this->section(SHT_DYNSYM);
  if (!section) return symbols;
  std::vector<char> strings = strings_of(*section);
  for (const Elf64_Sym& entry : table<Elf64_Sym>(*section))
    symbols.push_back({std::string(string_at(strings, entry.st_name)), ELF64_ST_BIND(entry.st_info),
                       entry.st_shndx != SHN_UNDEF});
  return symbols;
}

std::vector<Elf64_Dyn> Elf::dynamic() const {
  const Elf64_Shdr* section = this->section(SHT_DYNAMIC);
  if (!section) return {};
  std::vector<Elf64_Dyn> entries = table<Elf64_Dyn>(*section);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].d_tag == DT_NULL) entries.resize(i);
  return entries;
}

std::vector<std::string> Elf::dynamic_strings(int64_t tag) const {
  std::vector<std::string> texts;
  const Elf64_Shdr* section = this->section(SHT_DYNAMIC);
  if (!section) return texts;
  std::vector<char> strings = strings_of(*section);
  for (const Elf64_Dyn& entry : dynamic())
    if (entry.d_tag == tag) texts.emplace_back(string_at(strings, entry.d_un.d_val));
  return texts;
}

bool Elf::has_dynamic(int64_t tag, uint64_t flag) const {
  for (const Elf64_Dyn& entry : dynamic())
    if (entry.d_tag == tag && (!flag || entry.d_un.d_val & flag)) return true;
  return false;
}

std::optional<uint32_t> Elf::stack_flags() const {
  const Elf64_Ehdr& header = file_->header();
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file_->read(header.e_phoff + i * sizeof segment, &segment, sizeof segment)) break;
    if (segment.p_type == PT_GNU_STACK) return segment.p_flags;
  }
  return std::nullopt;
}

std::optional<tenon_note> Elf::note() const {
  const Elf64_Shdr* section = file_->find_section(".note.tenon");
  if (!section) return std::nullopt;
  std::vector<tenon_note> notes = table<tenon_note>(*section);
  if (notes.empty()) return std::nullopt;
  return notes[0];
}

}  // namespace tenon::kit
