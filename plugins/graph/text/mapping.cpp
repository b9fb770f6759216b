// SPDX-License-Identifier: Apache-2.0
#include "text/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/error.hpp>

#include <cerrno>
#include <cstring>

#include "support/host.hpp"

namespace tenon::graph {

Mapping::Mapping(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) throw Error(TENON_NOT_FOUND, "load: " + path + ": " + std::strerror(errno));
  struct stat status {};
  const bool is_file = fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  size_ = is_file ? static_cast<uint64_t>(status.st_size) : 0;
  void* const mapped =
      size_ ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_, 0) : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    close(file_);
    throw Error(TENON_INVALID_ARGUMENT, "load: " + path + " is no file with a program");
  }
  data_ = mapped;
}

Mapping::~Mapping() {
  if (was_given_) packed_constants()->withdraw(data_, size_);
  munmap(data_, size_);
  close(file_);
}

bool Mapping::read(uint64_t offset, void* to, uint64_t bytes) const {
  return pread(file_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

void Mapping::protect(uint64_t begin, uint64_t end) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = (begin + page - 1) / page * page, last = end / page * page;
  // Where the system refuses, the pages are as others of the mapping.
  if (first < last) mprotect(data() + first, last - first, PROT_READ);
}

}  // namespace tenon::graph
