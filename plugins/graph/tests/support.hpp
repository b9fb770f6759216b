// SPDX-License-Identifier: Apache-2.0
// Programs and tensors for tests, in few words. Calls throw Error on failure.
#pragma once

#include <gtest/gtest.h>
#include <tenon/services/autograd.h>
#include <tenon/services/graph.h>
#include <tenon/error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::test {

inline const tenon_graph_service_api* graph = nullptr;

inline const tenon_autograd_api* autograd = nullptr;

class NoGradients {
 public:
  NoGradients() : before_(autograd->set_enabled(0)) {}
  ~NoGradients() { autograd->set_enabled(before_); }

 private:
  int32_t before_;
};

struct Release {
  void operator()(tenon_graph_program* program) const { graph->program_release(program); }
};
using Program = std::unique_ptr<tenon_graph_program, Release>;

Tensor tensor(std::vector<int64_t> shape, std::vector<float> values);
std::vector<float> values(const Tensor& tensor);
Tensor call(const char* op, std::vector<tenon_value> args);
void call_into(const Tensor& out, const char* op, std::vector<tenon_value> args);

Program record(const std::vector<Tensor>& inputs,
               const std::function<std::vector<Tensor>()>& function);
std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs);
std::string text_of(const Program& program);
Program parse(const std::string& text);
Program bind(const Program& program, const std::vector<Tensor>& leaves);

// Text of the failure; "" if there was none.
std::string error_of(const std::function<void()>& action);

}  // namespace tenon::test
