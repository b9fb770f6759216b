// SPDX-License-Identifier: Apache-2.0
// The kernels of a vendor's library that this version of it has. docs/bindings.md says what a binding is.
#pragma once

#include <string>
#include <vector>

#include "plugin.hpp"

namespace tenon {

// What `problem` says keeps every operator on the host; empty: nothing.
inline bool warn_of_library(const char* plugin, const std::string& problem) {
  if (problem.empty()) return false;
  const std::string text = std::string(plugin) + ": every operator runs on the host: " + problem;
  host->log(2, text.data(), text.size());
  return true;
}

// Collects kernels, each with the function of the library that it needs. A missing function turns its operator off,
// never the plugin: the operator is then lowered, or runs on the host.
class BoundKernels {
 public:
  // `library` is what a message calls the library: "CANN".
  BoundKernels(const char* plugin, const char* library) : plugin_(plugin), library_(library) {}

  void add(bool is_found, const char* function, const tenon_kernel_def& kernel) {
    if (is_found)
      kernels_.push_back(kernel);
    else
      missing_ += (missing_.empty() ? "" : ", ") + std::string(function);
  }

  // Names the missing functions in the log.
  std::vector<tenon_kernel_def> take() {
    if (!missing_.empty()) {
      const std::string text = std::string(plugin_) + ": this version of " + library_ + " lacks " +
                               missing_ +
                               "; the operators that need them are lowered or run on the host";
      host->log(1, text.data(), text.size());
    }
    return std::move(kernels_);
  }

 private:
  const char* plugin_;
  const char* library_;
  std::vector<tenon_kernel_def> kernels_;
  std::string missing_;
};

}  // namespace tenon
