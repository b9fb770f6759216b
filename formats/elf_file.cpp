// SPDX-License-Identifier: Apache-2.0
#include "formats/elf_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tenon {
namespace {

constexpr uint64_t kMaxNamesBytes = 1 << 20;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr uint16_t kMachine = EM_PPC64;
#elif defined(__loongarch__)
constexpr uint16_t kMachine = 258;  // EM_LOONGARCH, absent from older headers
#else
#error "elf_file.cpp: name this processor's ELF machine number"
#endif

constexpr unsigned char kByteOrder =
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

ElfFile::Problem damage(const std::string& path, const char* what, std::string& text) {
  text = path + " is damaged: " + what;
  return ElfFile::Problem::kDamaged;
}

}  // namespace

ElfFile::~ElfFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ElfFile::read(uint64_t offset, void* into, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return false;
  char* at = static_cast<char*>(into);
  while (bytes > 0) {
    ssize_t got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

ElfFile::Problem ElfFile::open(const std::string& path, std::string& text) {
  path_ = path;
  // O_NONBLOCK: a pipe that took the file's place must not hang us.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    text = path + " cannot be read: " + std::strerror(errno);
    return Problem::kUnreadable;
  }
  size_ = static_cast<uint64_t>(status.st_size);

  if (!read(0, &header_, sizeof header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
    text = "expected a shared library, but " + path + " is not an ELF file";
    return Problem::kNotElf;
  }
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != kByteOrder ||
      header_.e_machine != kMachine) {
    text = path + " is built for another processor: expected ELF machine " +
           std::to_string(kMachine) + ", got " + std::to_string(header_.e_machine);
    return Problem::kOtherProcessor;
  }
  if (header_.e_type != ET_DYN) {
    text = "expected a shared library, but " + path + " is of ELF type " +
           std::to_string(header_.e_type);
    return Problem::kNotShared;
  }
  return read_sections(text);
}

ElfFile::Problem ElfFile::read_sections(std::string& text) {
  uint64_t bytes = uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr);
  if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shnum == 0 ||
      header_.e_shoff > size_ || bytes > size_ - header_.e_shoff)
    return damage(path_, "its section table lies outside the file", text);
  sections_.resize(header_.e_shnum);
  if (!read(header_.e_shoff, sections_.data(), bytes))
    return damage(path_, "its section table cannot be read", text);
  if (header_.e_shstrndx < sections_.size())
    names_ = contents(sections_[header_.e_shstrndx], kMaxNamesBytes);
  if (names_.empty()) return damage(path_, "its section names lie outside the file", text);
  return Problem::kNone;
}

const Elf64_Shdr* ElfFile::find_section(std::string_view name) const {
  for (const Elf64_Shdr& section : sections_)
    if (string_at(names_, section.sh_name) == name) return &section;
  return nullptr;
}

std::vector<char> ElfFile::contents(const Elf64_Shdr& section, uint64_t limit) const {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > size_ ||
      section.sh_size > size_ - section.sh_offset)
    return {};
  std::vector<char> bytes(std::min(section.sh_size, limit));
  if (!read(section.sh_offset, bytes.data(), bytes.size())) return {};
  return bytes;
}

std::string_view string_at(const std::vector<char>& table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = table.data() + offset;
  const void* end = std::memchr(begin, '\0', table.size() - offset);
  return end ? std::string_view(begin, static_cast<const char*>(end)) : std::string_view();
}

}  // namespace tenon
