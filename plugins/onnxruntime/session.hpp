// SPDX-License-Identifier: Apache-2.0
// A session of ONNX Runtime for one sub-graph: what becomes of a tenon_executable.
#pragma once

#include <unistd.h>

#include <tenon/abi.h>

#include <memory>
#include <string>
#include <vector>

#include "library.hpp"
#include "options.hpp"

namespace tenon::onnxruntime {

class Executable {
 public:
  // Writes the sub-graph as a model and opens a session of it. Throws Error, also for what ONNX Runtime refuses.
  Executable(const tenon_subgraph& graph, const Options& options);
  ~Executable();
  Executable(const Executable&) = delete;

  // Reads inputs and writes outputs where they lie. Any thread, also several at once. Throws Error, also in a child of a
  // fork, in which the session has no threads.
  void run(const tenon_executable_request& request) const;

 private:
  struct ReleaseValue {
    void operator()(Value* value) const;
  };
  using ValuePtr = std::unique_ptr<Value, ReleaseValue>;
  static ValuePtr value_of(const tenon_tensor& tensor);

  const pid_t process_ = ::getpid();  // whose threads the session has
  Session* session_ = nullptr;
  std::vector<ValuePtr> constants_;  // over the program's memory
  std::vector<uint32_t> inputs_;     // of the sub-graph, those that differ from run to run
  std::vector<std::string> input_names_, output_names_;
};

// Throws Error: the library does not have one of the providers.
void check_providers(const Options& options);

}  // namespace tenon::onnxruntime
