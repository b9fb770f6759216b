// SPDX-License-Identifier: Apache-2.0
// How one process names its memory to another: by the open file behind it. No name in any file
// system is left behind, whatever ends a process.
#pragma once

#include <cstdint>

namespace reference {

struct MemoryFile {
  int32_t process;
  int32_t descriptor;
  uint64_t inode;  // descriptors are used again; this says that it is still the same file
};

bool name_memory_file(int descriptor, MemoryFile* out);
// A descriptor of this process for it, which the caller closes; -1: gone, or not allowed. `*bytes`
// receives the file's size.
int open_memory_file(const MemoryFile& name, uint64_t* bytes);

}  // namespace reference
