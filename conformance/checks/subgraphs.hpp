// SPDX-License-Identifier: Apache-2.0
// Small programs of the kit's own, offered to a device's compiler as the host offers a program's.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "operators/engine.hpp"
#include "operators/stream_work.hpp"
#include "operators/values.hpp"

namespace tenon::kit {

// An argument: a value of the example, or something else than a tensor.
struct ExampleArgument {
  int value = -1;
  tenon_value attribute = kNoValue;
};
struct ExampleStep {
  const tenon_op* op = nullptr;
  std::vector<ExampleArgument> arguments;  // complete
  int result = -1;
};
struct Example {
  std::string name;
  int ninputs = 0;
  std::vector<std::vector<int64_t>>
      shapes;  // of the inputs, then of what the steps make; all float32
  std::vector<ExampleStep> steps;
};

// Steps that the device has claimed as one.
struct Part {
  const Example* example = nullptr;
  size_t begin = 0, end = 0;
  std::vector<int> inputs, outputs;  // values

  std::string text() const;  // "layer, steps 0 to 2"
};

// What a part gets, and what the device's own kernels make of it.
struct Run {
  Tensors inputs, expected;
};

class Description;
class Executable;

// The device's compiler, borrowed from the host.
class Compiler {
 public:
  explicit Compiler(Session&);  // ends the check as absent if the device has none
  ~Compiler();
  Compiler(const Compiler&) = delete;

  Engine& engine() { return engine_; }
  tenon_device_id device() const { return engine_.device(); }
  const tenon_subgraph_api& api() const { return *api_; }
  tenon_device handle() const { return handle_; }
  const std::deque<Example>& examples() const {
    return examples_;
  }  // that the device can run step by step

  void claim(const Description&, uint32_t* parts);
  std::vector<Part> claim(const Example&);

  Run prepare(const Part&, uint32_t seed = 1);
  Tensors outputs(const Part&);  // room for the results
  Tensor filled(int32_t dtype, const std::vector<int64_t>& shape, unsigned char byte);

  enum Request { kKeeps, kForgets };  // kForgets: names other tensors once the call has returned
  // Without a `workspace`, the run gets one of its own.
  void run(const Executable&, const Tensors& inputs, const Tensors& outputs, tenon_stream,
           Request = kKeeps, Tensor workspace = {});
  tenon_status try_run(const Executable&, const Tensors& inputs, const Tensors& outputs,
                       tenon_stream, tenon_err*, uint64_t must_understand = 0, Request = kKeeps,
                       Tensor workspace = {});
  void keep_busy();  // much work on the current stream, so that what follows waits
  void sync(tenon_stream);
  void compare(const Part&, const Executable&, const Tensors& expected, const Tensors& got,
               const std::string& what);
  void compare(const Part&, bool is_exact, const Tensors& expected, const Tensors& got,
               const std::string& what);

 private:
  void add_examples();
  bool evaluate(const Example&, uint32_t seed, Tensors& values);

  Engine engine_;
  const tenon_subgraph_api* api_ = nullptr;
  tenon_device handle_ = nullptr;
  std::deque<Example> examples_;
  // Requests stay, with what they name once they were overwritten.
  struct Kept {
    tenon_executable_request request;
    std::vector<tenon_tensor*> inputs, outputs;
    Tensors decoys;
  };
  std::deque<Kept> kept_;
  Tensor from_, to_;  // of work that keeps a stream busy
};

// Steps `begin` to before `end` as the device reads them.
class Description {
 public:
  Description(Compiler&, const Example&, size_t begin, size_t end, const Tensors& constants = {},
              size_t behind_steps = 0);
  Description(const Description&) = delete;
  const tenon_subgraph& table() const { return table_; }

 private:
  tenon_subgraph table_ = {};
  std::vector<Tensor> values_;
  std::deque<std::vector<tenon_value>> arguments_;
  std::deque<tenon_tensor*> results_;
  std::deque<std::pair<double, tenon_tensor>> numbers_;
  std::vector<unsigned char> steps_;
  std::vector<tenon_tensor*> inputs_, outputs_, constants_;
  std::string name_;
};

// Destroyed at the end.
class Executable {
 public:
  enum Host { kThisHost, kLaterHost };  // kLaterHost: its steps are longer
  Executable(Compiler&, const Part&, const Tensors& constants = {}, Host = kThisHost);
  ~Executable();
  Executable(const Executable&) = delete;

  tenon_executable handle() const { return executable_; }
  bool is_exact() const { return info_.flags & TENON_EXECUTABLE_EXACT; }
  uint64_t workspace_bytes() const { return info_.workspace_bytes; }

 private:
  Compiler& compiler_;
  tenon_executable executable_ = nullptr;
  tenon_executable_info info_ = {};
};

}  // namespace tenon::kit
