// SPDX-License-Identifier: Apache-2.0
// The program that a model becomes, through the builder of service "graph". What follows from known tensors alone is
// computed at once.
#pragma once

#include <tenon/services/graph.h>

#include <memory>
#include <unordered_map>

#include "value.hpp"

namespace tenon::onnx {

// Of a tensor of which something is computed at once, and of the product of such tensors' elements.
inline constexpr int64_t kMaxKnownBytes = int64_t{64} << 10, kMaxKnownProduct = int64_t{1} << 20;

// Throws Error where the plugin is not loaded, or is older than this one.
const tenon_graph_service_api& graph_service();

struct Argument {
  Value value;
  std::string name;  // of the parameter; empty: the next one
  Argument(Value given) : value(std::move(given)) {}
  template <class Given>
  Argument(Given&& given) : value(std::forward<Given>(given)) {}
  Argument(std::string parameter, Value given)
      : value(std::move(given)), name(std::move(parameter)) {}
};
using Arguments = std::vector<Argument>;

struct ReleaseProgram {
  void operator()(tenon_graph_program* program) const;
};
using OwnedProgram = std::unique_ptr<tenon_graph_program, ReleaseProgram>;

// What a node sees of sizes that other imports of the model have otherwise.
enum class SeenSizes {
  kNone,    // constants alone
  kValues,  // values of the program, which have shapes
  kNumbers  // known tensors that follow from shapes
};

class Steps {
 public:
  Steps();
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  Tensor input(int32_t dtype, const Ints& shape);
  // A weight, which the program uses by reference.
  Tensor leaf(const Tensor& tensor, const std::string& name);
  // Calls an operator: "matmul", "acme::swiglu". Host values that a parameter does not take as they are, known tensors for numbers
  // among them, are converted; none stands for the default.
  Values call(const std::string& name, const Arguments& arguments);
  // A branch or loop, as builder_control of the service `graph` takes it; known tensors may be among the operands.
  Values control(int32_t kind, const Values& operands, size_t ncarried, size_t nscanned,
                 const std::vector<tenon_graph_program*>& regions, size_t nresults);
  // A value of the same elements that is never known, as what follows from it differs by it.
  Tensor variable(const Tensor& tensor);
  // Calls from now on are of a node that sees this; what it was before. What they compute at once from sizes is kept with its calls,
  // which are made again as steps where another step reads the tensor.
  SeenSizes see_sizes(SeenSizes seen) { return std::exchange(seen_, seen); }
  bool follows_from_sizes(const Tensor& tensor) const { return derived_.count(tensor.get()) > 0; }
  // A known tensor that follows from sizes otherwise than by calls.
  void add_sizes(const Tensor& tensor);
  // The gradient of the sum of `result` by each of `variables`, as builder_gradients of the service `graph` gives it.
  Values gradients(const Tensor& result, const std::vector<Tensor>& variables);
  // What a program may return for the tensor: memory of its own, never the program's data.
  Tensor result(const Tensor& tensor);
  tenon_graph_program* finish(const std::vector<Tensor>& results);

 private:
  // How a known tensor follows from sizes; without an operator: no steps make it.
  struct Derivation {
    Tensor tensor;
    std::string op;
    Arguments arguments;
    size_t result = 0;
    int depth = 0;
    Tensor step;  // of the program, once it is made
  };

  Values call_now(const tenon_op* op, std::vector<tenon_value>& args) const;
  void derive(const std::string& op, const Arguments& arguments,
              const std::vector<tenon_value>& args, const Values& results);
  // The step that makes a known tensor of any sizes; an empty one for what has none.
  Tensor step_of(const tenon_tensor* tensor);
  tenon_tensor* constant(tenon_tensor* tensor, std::vector<Tensor>& held);
  Values build(const tenon_op* op, std::vector<tenon_value>& args);
  bool may_compute(const tenon_op_def& def, const std::vector<tenon_value>& args) const;

  const tenon_graph_service_api* graph_;
  tenon_graph_builder* builder_ = nullptr;
  SeenSizes seen_ = SeenSizes::kNone;
  std::unordered_map<const tenon_tensor*, Derivation> derived_;
};

}  // namespace tenon::onnx
