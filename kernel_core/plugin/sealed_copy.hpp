// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, copied to memory that is sealed against changes. What a policy has examined is then
// what the system maps, whatever becomes of the file in between and afterwards.
//
// Made only where a policy demands it: tools such as debuggers see the copy's name until the
// library is loaded, and $ORIGIN is no folder there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::core {

class SealedCopy {
 public:
  SealedCopy() = default;
  SealedCopy(SealedCopy&& other) noexcept;
  SealedCopy& operator=(SealedCopy&& other) noexcept;
  ~SealedCopy();

  // Opens the file once. False: it cannot be copied, and `problem` says why.
  bool make(const std::string& path, std::string& problem);

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  std::string_view bytes() const { return {bytes_, size_}; }
  // What dlopen takes. No other library of the process has this name while the copy lives; a
  // debugger of the process can read it as well.
  std::string path() const;

  // Give the descriptor away, to stay open for the life of the process: what was mapped by its name
  // is still mapped, and the name must not come to mean another library.
  void keep();

 private:
  int descriptor_ = -1;
  const char* bytes_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace tenon::core
