// SPDX-License-Identifier: Apache-2.0
// The library of ONNX Runtime, opened when the first program asks for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api.hpp"

namespace tenon::onnxruntime {

class Library {
 public:
  // Throws Error (TENON_UNAVAILABLE) where there is none, or one that is too old: what was tried, and how to get it.
  static const Library& get();

  const Api& api() const { return api_; }
  const Env* env() const { return env_; }
  const MemoryInfo* host_memory() const { return host_memory_; }
  const std::string& version() const { return version_; }  // "1.32.0"
  const std::vector<std::string>& providers() const {
    return providers_;
  }  // that it was built with

  // Throws Error with the library's own text. `what`: the call, in our words.
  void check(Status* status, const char* what) const;

 private:
  Library();
  void open();

  Api api_ = {};
  Env* env_ = nullptr;
  MemoryInfo* host_memory_ = nullptr;
  std::string version_;
  std::vector<std::string> providers_;
  std::string problem_;
};

}  // namespace tenon::onnxruntime
