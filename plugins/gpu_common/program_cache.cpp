// SPDX-License-Identifier: Apache-2.0
#include "program_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/cache_folder.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace gpu_common {
namespace {

struct Head {
  char magic[8];
  uint64_t key_bytes;
  uint64_t binary_bytes;
  uint64_t checksum;  // of key and binary
};
constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'P', 'C', '1'};
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

uint64_t hash_text(const std::string& text, uint64_t hash = 0xcbf29ce484222325u) {  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// Empty: no cache.
std::string path_for(const char* folder, const std::string& key) {
  std::string path = tenon::cache_folder(folder);
  if (path.empty()) return path;
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.bin", static_cast<unsigned long long>(hash_text(key)));
  return path + name;
}

bool read_all(int file, void* to, uint64_t bytes) {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    ssize_t got = read(file, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

bool write_all(int file, const void* from, uint64_t bytes) {
  for (const char* at = static_cast<const char*>(from); bytes > 0;) {
    ssize_t put = write(file, at, bytes);
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<uint64_t>(put);
  }
  return true;
}

// The device will run what the file holds: no other user may have written it.
bool is_ours(int file, uint64_t* bytes) {
  struct stat about;
  if (fstat(file, &about) || !S_ISREG(about.st_mode)) return false;
  *bytes = static_cast<uint64_t>(about.st_size);
  return about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
}

std::string read_entry(int file, const std::string& key) {
  uint64_t bytes;
  Head head;
  if (!is_ours(file, &bytes) || bytes > kMaxBytes || !read_all(file, &head, sizeof head)) return "";
  bool fits = std::memcmp(head.magic, kMagic, sizeof kMagic) == 0 && head.key_bytes == key.size() &&
              head.binary_bytes <= kMaxBytes &&
              bytes == sizeof head + head.key_bytes + head.binary_bytes;
  if (!fits) return "";
  std::string stored(head.key_bytes, '\0'), binary(head.binary_bytes, '\0');
  if (!read_all(file, stored.data(), stored.size()) || stored != key) return "";
  if (!read_all(file, binary.data(), binary.size())) return "";
  return hash_text(binary, hash_text(key)) == head.checksum ? binary : "";
}

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0700);
}

}  // namespace

std::string read_cached_binary(const char* folder, const std::string& key) {
  std::string path = path_for(folder, key);
  if (path.empty()) return "";
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return "";
  std::string binary = read_entry(file, key);
  close(file);
  return binary;
}

void write_cached_binary(const char* folder, const std::string& key, const std::string& binary) {
  std::string path = path_for(folder, key);
  if (path.empty() || binary.empty() || key.size() + binary.size() + sizeof(Head) > kMaxBytes)
    return;
  make_folders(path);
  // Under a name of its own first: others see the whole entry or none.
  static std::atomic<unsigned> counter{0};
  std::string draft = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  Head head = {{}, key.size(), binary.size(), hash_text(binary, hash_text(key))};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  bool written = write_all(file, &head, sizeof head) && write_all(file, key.data(), key.size()) &&
                 write_all(file, binary.data(), binary.size());
  written = close(file) == 0 && written;
  if (!written || rename(draft.c_str(), path.c_str())) unlink(draft.c_str());
}

}  // namespace gpu_common
