// SPDX-License-Identifier: Apache-2.0
// The system's C compiler, run on kernels, with a cache of what it made.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernel_text.hpp"
#include "queue.hpp"

namespace reference {

// Compiled kernels; unmapped when the last user is gone.
class KernelLibrary {
 public:
  static std::shared_ptr<KernelLibrary> open(
      const std::string& path);  // nullptr: not such a library
  ~KernelLibrary();
  const KernelEntry* find(std::string_view name) const;

 private:
  void* handle_ = nullptr;
  const KernelEntry* entries_ = nullptr;
};

// `name` is for messages. On failure the result says why, in the compiler's words.
Result compile_kernels(std::string_view name, std::string_view source,
                       std::shared_ptr<KernelLibrary>* out);

}  // namespace reference
