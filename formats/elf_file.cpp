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
constexpr uint64_t kMaxDynamicEntries = 1 << 12;
constexpr uint64_t kMaxTextBytes = 1 << 16;

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

std::string byte_order_name(unsigned char order) {
  if (order == ELFDATA2LSB) return "little-endian";
  if (order == ELFDATA2MSB) return "big-endian";
  return "number " + std::to_string(order);
}

// Where in the file the byte lies that is mapped at that address; false: nowhere.
bool file_offset(const std::vector<Elf64_Phdr>& headers, uint64_t address, uint64_t& offset) {
  for (const Elf64_Phdr& header : headers)
    if (header.p_type == PT_LOAD && address >= header.p_vaddr &&
        address - header.p_vaddr < header.p_filesz) {
      offset = header.p_offset + (address - header.p_vaddr);
      return true;
    }
  return false;
}

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
  return read_header(text);
}

ElfFile::Problem ElfFile::open(int descriptor, const std::string& path, std::string& text) {
  path_ = path;
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return read_header(text);
}

ElfFile::Problem ElfFile::read_header(std::string& text) {
  const std::string& path = path_;
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
  // The machine's number is read in our byte order, and means nothing in a file of another one.
  std::string difference;
  if (header_.e_ident[EI_CLASS] != ELFCLASS64)
    difference = "a file of 64 bits (ELF class 2), got ELF class " +
                 std::to_string(header_.e_ident[EI_CLASS]);
  else if (header_.e_ident[EI_DATA] != kByteOrder)
    difference = "byte order " + byte_order_name(kByteOrder) + ", got " +
                 byte_order_name(header_.e_ident[EI_DATA]);
  else if (header_.e_machine != kMachine)
    difference =
        "ELF machine " + std::to_string(kMachine) + ", got " + std::to_string(header_.e_machine);
  if (!difference.empty()) {
    text = path + " is built for another processor: expected " + difference;
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

std::vector<Elf64_Phdr> ElfFile::program_headers() const {
  std::vector<Elf64_Phdr> headers(header_.e_phnum);
  if (header_.e_phentsize != sizeof(Elf64_Phdr) ||
      !read(header_.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr)))
    return {};
  return headers;
}

std::string ElfFile::string_in_file(uint64_t offset) const {
  if (offset >= size_) return {};
  std::string bytes(std::min(size_ - offset, kMaxTextBytes), '\0');
  if (!read(offset, bytes.data(), bytes.size())) return {};
  return bytes.c_str();
}

std::vector<std::string> ElfFile::dynamic_strings(int64_t tag) const {
  const std::vector<Elf64_Phdr> headers = program_headers();
  auto dynamic = std::find_if(headers.begin(), headers.end(),
                              [](const Elf64_Phdr& header) { return header.p_type == PT_DYNAMIC; });
  uint64_t at = 0, names = 0;
  if (dynamic == headers.end() || !file_offset(headers, dynamic->p_vaddr, at)) return {};
  std::vector<uint64_t> offsets;
  bool has_names = false;
  for (uint64_t i = 0; i < kMaxDynamicEntries; ++i) {
    Elf64_Dyn entry;
    if (!read(at + i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == tag) offsets.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) has_names = file_offset(headers, entry.d_un.d_ptr, names);
  }
  if (!has_names) return {};
  std::vector<std::string> texts;
  for (uint64_t offset : offsets) texts.push_back(string_in_file(names + offset));
  return texts;
}

std::string_view string_at(const std::vector<char>& table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = table.data() + offset;
  const void* end = std::memchr(begin, '\0', table.size() - offset);
  return end ? std::string_view(begin, static_cast<const char*>(end)) : std::string_view();
}

}  // namespace tenon
