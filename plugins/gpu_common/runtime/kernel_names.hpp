// SPDX-License-Identifier: Apache-2.0
// Names of kernels, kept as long as the device: streams remember the last one for their errors, also
// after its program was destroyed.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace gpu {

class KernelNames {
 public:
  const char* keep(const char* name) {
    std::lock_guard lock(mutex_);
    return names_.emplace(name).first->c_str();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

}  // namespace gpu
