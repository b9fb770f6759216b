// SPDX-License-Identifier: Apache-2.0
// A file in memory. Pages that are not written are shared by all processes that map the file; what is written
// there stays there, and the file is not changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tenon::graph {

class Mapping {
 public:
  // Throws Error.
  explicit Mapping(const std::string& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  uint64_t size() const { return size_; }
  // Copies bytes of the file, without a page of the mapping in memory for it. False: they cannot be read.
  bool read(uint64_t offset, void* to, uint64_t bytes) const;
  // Makes whole pages of these bytes read-only.
  void protect(uint64_t begin, uint64_t end) const;
  // The service "packed_constants" was given bytes with a source here, which end with the mapping.
  void note_given() { was_given_ = true; }

 private:
  int file_ = -1;
  void* data_ = nullptr;
  uint64_t size_ = 0;
  bool was_given_ = false;
};
using SharedMapping = std::shared_ptr<Mapping>;

}  // namespace tenon::graph
