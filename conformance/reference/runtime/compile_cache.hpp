// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk, under a hash of all that they were made from. A library found there is
// run, so the folder must be ours alone.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace reference {

class KernelLibrary;

class CompileCache {
 public:
  explicit CompileCache(const std::string& key);
  std::shared_ptr<KernelLibrary> find() const;  // nullptr: not there
  // Where the library is after it was put into the cache; where it was, if there is no cache.
  std::string keep(const std::filesystem::path& library) const;

 private:
  std::filesystem::path path_;  // empty: no cache
};

}  // namespace reference
