// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/sealed_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tenon::core {
namespace {

#ifndef MFD_EXEC
constexpr unsigned kExecutable = 0x10;  // MFD_EXEC, absent from older headers
#else
constexpr unsigned kExecutable = MFD_EXEC;
#endif
constexpr size_t kMaxNameBytes = 200;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

struct Descriptor {
  int number;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

int make_memory(const std::string& file_name) {
  const std::string name = file_name.substr(0, kMaxNameBytes);
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int descriptor = ::memfd_create(name.c_str(), kFlags | kExecutable);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return ::memfd_create(name.c_str(), kFlags);  // before Linux 6.3 all were executable
}

bool copy(int from, int to, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = ::sendfile(to, from, nullptr, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;  // it has become shorter
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

}  // namespace

SealedCopy::SealedCopy(SealedCopy&& other) noexcept { *this = std::move(other); }

SealedCopy& SealedCopy::operator=(SealedCopy&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  return *this;
}

SealedCopy::~SealedCopy() {
  if (bytes_) ::munmap(const_cast<char*>(bytes_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SealedCopy::make(const std::string& path, std::string& problem) {
  auto failed = [&](const std::string& what) {
    problem = what + ": " + std::strerror(errno);
    return false;
  };
  // O_NONBLOCK: a pipe that took the file's place must not hang us.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    return failed(path + " cannot be read");
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
    problem = "expected a shared library, but " + path + " is not a file, or empty";
    return false;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  Descriptor memory(make_memory(std::filesystem::path(path).filename()));
  if (memory.number < 0 || !copy(file.number, memory.number, size) ||
      ::fcntl(memory.number, F_ADD_SEALS, kSeals) != 0)
    return failed(path + " cannot be copied to sealed memory");
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, memory.number, 0);
  if (mapped == MAP_FAILED) return failed("the copy of " + path + " cannot be mapped");
  SealedCopy made;
  made.descriptor_ = std::exchange(memory.number, -1);
  made.bytes_ = static_cast<const char*>(mapped);
  made.size_ = size;
  if (::access(made.path().c_str(), R_OK) != 0)
    return failed("the copy of " + path + " cannot be opened as " + made.path() +
                  ", for which /proc must be mounted");
  *this = std::move(made);
  return true;
}

std::string SealedCopy::path() const {
  // By the number that this /proc knows, and not as "self": a debugger is another process.
  char process[32] = {};
  if (::readlink("/proc/self", process, sizeof process - 1) <= 0) std::strcpy(process, "self");
  return std::string("/proc/") + process + "/fd/" + std::to_string(descriptor_);
}

void SealedCopy::keep() { descriptor_ = -1; }

}  // namespace tenon::core
