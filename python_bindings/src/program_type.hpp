// SPDX-License-Identifier: Apache-2.0
// A program of the graph service, as Python holds it.
#pragma once

#include <nanobind/nanobind.h>
#include <tenon/services/graph.h>

#include <utility>
#include <vector>

namespace tenon::python {

// Raises if the plugin is not loaded.
const tenon_graph_service_api& graph_service();

// Borrowed handles of a sequence of tensors; TypeError names the function.
std::vector<tenon_tensor*> tensor_handles(nanobind::handle sequence, const char* function);

class Program {
 public:
  explicit Program(tenon_graph_program* owned) : handle_(owned) {}
  Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Program() {
    if (handle_) graph_service().program_release(handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  tenon_graph_program* handle() const { return handle_; }

 private:
  tenon_graph_program* handle_;
};

// (inputs, leaves, steps, results): (id, type) of each input and leaf, (name, operand ids, result ids, given) of each step,
// where bit i of `given` says that the step writes into result i, and the ids of the results.
nanobind::tuple program_parts(const Program& program);

}  // namespace tenon::python
