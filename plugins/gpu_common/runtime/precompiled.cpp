// SPDX-License-Identifier: Apache-2.0
#include "runtime/precompiled.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "runtime/errors.hpp"
#include "runtime/library.hpp"
#include "runtime/vendor.hpp"

namespace gpu {
namespace {

struct Hash {
  uint64_t first, second;
  friend auto operator<=>(const Hash&, const Hash&) = default;
};

struct Entry {
  Hash hash;
  uint64_t offset, bytes;
};

struct Head {
  char magic[8];
  uint64_t count;
};
constexpr char kMagic[] = "TENONAOT";

// Two multiplicative hashes of the source's words of 8 bytes, the last word filled up with zeros. They need not resist an
// attacker: a user who can write this file could as well write the images.
Hash hash_of(std::string_view source) {
  constexpr uint64_t kFirst = 0x9e3779b97f4a7c15u, kSecond = 0xc2b2ae3d27d4eb4fu;  // odd
  Hash hash = {source.size(), ~uint64_t{source.size()}};
  for (size_t at = 0; at < source.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, source.data() + at, std::min(sizeof word, source.size() - at));
    hash.first = (hash.first ^ word) * kFirst;
    hash.first ^= hash.first >> 29;
    hash.second = (hash.second ^ word) * kSecond;
    hash.second ^= hash.second >> 31;
  }
  return hash;
}

// Why the file is of no use, or nullptr.
const char* find_fault(std::string_view file, std::span<const Entry> entries) {
  if (!std::is_sorted(entries.begin(), entries.end(),
                      [](const Entry& a, const Entry& b) { return a.hash < b.hash; }))
    return "its entries are not in order";
  for (const Entry& entry : entries)
    if (entry.bytes == 0 || entry.offset > file.size() || entry.bytes > file.size() - entry.offset)
      return "an image lies outside of it";
  return nullptr;
}

// The whole file, mapped for as long as the process lives; empty if it cannot be read.
std::string_view map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat about;
  void* memory = MAP_FAILED;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
    memory = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return {};
  return {static_cast<const char*>(memory), static_cast<size_t>(about.st_size)};
}

class Programs {
 public:
  Programs() {
    const std::string path = path_of_file();
    file_ = map_file(path);
    if (file_.empty()) return;
    const char* fault = read_table();
    if (fault) {
      log(2, "the precompiled programs %s are not used: %s; install them again", path.c_str(),
          fault);
      entries_ = {};
    } else {
      log(0, "%zu precompiled programs from %s", entries_.size(), path.c_str());
    }
  }

  const void* find(std::string_view source) const {
    if (entries_.empty()) return nullptr;
    const Hash hash = hash_of(source);
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), hash,
                                        [](const Entry& a, const Hash& b) { return a.hash < b; });
    if (found == entries_.end() || found->hash != hash) return nullptr;
    return file_.data() + found->offset;
  }

 private:
  // The variable may name another file; one that does not exist switches them off.
  static std::string path_of_file() {
    const char* chosen = secure_getenv(vendor::kProgramsVariable);
    if (chosen && *chosen) return chosen;
    const std::filesystem::path packages = site_packages();
    return packages.empty() ? "" : packages / vendor::kProgramsFile;
  }

  const char* read_table() {
    Head head;
    if (file_.size() < sizeof head) return "it is too short";
    std::memcpy(&head, file_.data(), sizeof head);
    if (std::memcmp(head.magic, kMagic, sizeof head.magic) != 0) return "it is of another kind";
    if (head.count > (file_.size() - sizeof head) / sizeof(Entry)) return "it is cut off";
    entries_ = {reinterpret_cast<const Entry*>(file_.data() + sizeof head), head.count};
    return find_fault(file_, entries_);
  }

  std::string_view file_;
  std::span<const Entry> entries_;
};

}  // namespace

const void* precompiled_image(std::string_view source) {
  static const Programs programs;
  return programs.find(source);
}

}  // namespace gpu
