// SPDX-License-Identifier: Apache-2.0
#include "memory_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace reference {

bool name_memory_file(int descriptor, MemoryFile* out) {
  struct stat state;
  if (fstat(descriptor, &state) != 0) return false;
  *out = {static_cast<int32_t>(getpid()), descriptor, state.st_ino};
  return true;
}

int open_memory_file(const MemoryFile& name, uint64_t* bytes) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", name.process, name.descriptor);
  // A handle may come from another process, which must not make this one map any file that a
  // process has open.
  char target[64] = {};
  constexpr std::string_view kOurs = "/memfd:tenon-reference";
  if (readlink(path, target, sizeof target - 1) < 0 || !std::string_view(target).starts_with(kOurs))
    return -1;
  struct stat state;
  if (stat(path, &state) != 0 || !S_ISREG(state.st_mode) || state.st_ino != name.inode) return -1;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return -1;
  if (fstat(file, &state) != 0 || state.st_ino != name.inode) {
    close(file);
    return -1;
  }
  *bytes = static_cast<uint64_t>(state.st_size);
  return file;
}

}  // namespace reference
