// SPDX-License-Identifier: Apache-2.0
#include "custom.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "engine.hpp"
#include "operators.hpp"
#include "saved_hooks.hpp"
#include "stand_ins.hpp"
#include "views.hpp"

struct tenon_saved {
  tenon::Tensor tensor;        // an output: a view without history, or it would hold its own node
  const tenon_tensor* output;  // which output it is; compared, never followed
  uint32_t version;
  // Hooks took the tensor's place.
  std::unique_ptr<tenon::autograd::Packed> packed;
  tenon::autograd::Variable* history = nullptr;  // of a packed input; holds its node

  ~tenon_saved() {
    if (history) tenon::autograd::release(history->node());
  }
};

namespace tenon::autograd {
namespace {

// Behind the edges: Custom, the outputs' handles (compared, never followed), the name, Shapes of
// inputs.
struct Custom {
  tenon_custom_backward_fn backward;
  void* user;
  tenon_drop_fn drop;
  const char* name;

  const tenon_tensor** outputs() { return reinterpret_cast<const tenon_tensor**>(this + 1); }
};

Custom& custom_of(Node& node) { return *static_cast<Custom*>(node.payload()); }

// Whose backward runs on this thread: saved outputs get their history from it.
constinit thread_local Node* running = nullptr;

class RunningScope {
 public:
  explicit RunningScope(Node& node) : before_(std::exchange(running, &node)) {}
  ~RunningScope() { running = before_; }
  RunningScope(const RunningScope&) = delete;

 private:
  Node* before_;
};

const char* custom_name(const Node& node) { return custom_of(const_cast<Node&>(node)).name; }

tenon_status backward(Node& node, Run& run, tenon_err* err) {
  std::vector<tenon_tensor*> gradients(node.noutputs), results(node.nedges, nullptr);
  std::vector<Tensor> owned(node.nedges);
  for (uint32_t k = 0; k < node.noutputs; ++k) gradients[k] = node.variables()[k].arriving;
  Custom& custom = custom_of(node);
  tenon_status status;
  {
    RunningScope scope(node);
    status = custom.backward(custom.user, gradients.data(), node.noutputs, results.data(),
                             node.nedges, err);
  }
  for (uint32_t i = 0; i < node.nedges; ++i) owned[i] = Tensor::adopt(results[i]);
  if (status != TENON_OK) {
    add_context(err, "gradient of [%s]", custom.name);
    return status;
  }
  for (uint32_t i = 0; i < node.nedges; ++i)
    if (owned[i] && run.wants(node.edges()[i]))
      TENON_TRY(run.deliver(node, node.edges()[i], std::move(owned[i]), err));
  return TENON_OK;
}

void clear(Node& node) {
  Custom& custom = custom_of(node);
  node.flags |= Node::kCleared;
  if (custom.drop) custom.drop(custom.user);
}

constexpr NodeType kCustom = {.name = custom_name, .backward = backward, .clear = clear};

bool looks_like(const tenon_tensor& a, const tenon_tensor& b) {
  return a.ndim == b.ndim && a.dtype == b.dtype && std::equal(a.shape, a.shape + a.ndim, b.shape);
}

struct CustomCall {
  const char* name;
  tenon_tensor* const* inputs;
  uint32_t ninputs;
  tenon_tensor* const* outputs;
  uint32_t noutputs;
};

Node* new_custom_node(const CustomCall& call, const std::vector<Variable*>& variables,
                      const Custom& custom) {
  const tenon_tensor* like = call.noutputs == 1 ? call.outputs[0] : nullptr;
  auto needs_shape = [&](uint32_t i) {
    return variables[i] && !(like && looks_like(*call.inputs[i], *like));
  };
  uint64_t name_bytes = (std::strlen(call.name) + 8) & ~uint64_t{7};  // with its NUL
  uint64_t bytes = sizeof(Custom) + call.noutputs * sizeof(void*) + name_bytes;
  uint64_t shapes_at = bytes;
  for (uint32_t i = 0; i < call.ninputs; ++i)
    if (needs_shape(i)) bytes += Shape::bytes(call.inputs[i]->ndim);
  Node* node = new_node(kCustom, nullptr, call.noutputs, call.ninputs, bytes);
  if (!node) return nullptr;

  Custom& kept = custom_of(*node);
  kept = custom;
  std::copy_n(call.outputs, call.noutputs, kept.outputs());
  auto* name = reinterpret_cast<char*>(kept.outputs() + call.noutputs);
  std::strcpy(name, call.name);
  kept.name = name;
  auto* at = static_cast<char*>(node->payload()) + shapes_at;
  for (uint32_t i = 0; i < call.ninputs; ++i) {
    Edge& edge = node->edges()[i];
    edge.argument = i;
    edge.shape = 0;
    connect(*node, edge, variables[i]);
    if (!needs_shape(i)) continue;
    auto* shape = reinterpret_cast<Shape*>(at);
    shape->ndim = call.inputs[i]->ndim;
    shape->dtype = call.inputs[i]->dtype;
    std::copy_n(call.inputs[i]->shape, shape->ndim, shape->sizes);
    edge.shape = static_cast<uint32_t>(at - reinterpret_cast<char*>(node));
    at += Shape::bytes(shape->ndim);
  }
  return node;
}

bool is_written(const CustomCall& call, const tenon_tensor* output) {
  return output->layers & place.bit || inherits_history(output) ||
         std::find(call.inputs, call.inputs + call.ninputs, output) != call.inputs + call.ninputs;
}

tenon_status attach_outputs(const CustomCall& call, Node& node, tenon_err* err) {
  retain(node);
  tenon_status status = TENON_OK;
  for (uint32_t k = 0; k < call.noutputs && status == TENON_OK; ++k) {
    tenon_tensor* output = call.outputs[k];
    if (!output || !is_differentiable(output->dtype)) continue;
    Variable* old = variable_in_slot(output);
    if (old && &old->node() == &node) continue;  // returned twice
    retain(node);
    if (is_written(call, output)) {
      status = set_history(output, &node.variables()[k], err);
    } else {
      if (old) release(detach_variable(output)->node());
      attach(output, &node.variables()[k]);
    }
  }
  release(node);
  return status;
}

tenon_status record_call(const CustomCall& call, const Custom& custom, tenon_err* err) {
  std::vector<Variable*> variables(call.ninputs, nullptr);
  bool has_gradient = false, has_output = false;
  for (uint32_t i = 0; i < call.ninputs; ++i) {
    if (call.inputs[i]) TENON_TRY(current_variable(call.inputs[i], &variables[i], err));
    has_gradient |= variables[i] != nullptr;
  }
  for (uint32_t k = 0; k < call.noutputs; ++k)
    has_output |= call.outputs[k] && is_differentiable(call.outputs[k]->dtype);
  if (!is_recording() || !has_gradient || !has_output) {
    if (custom.drop) custom.drop(custom.user);
    return TENON_OK;
  }
  for (uint32_t k = 0; k < call.noutputs; ++k)
    if (call.outputs[k] && is_differentiable(call.outputs[k]->dtype) &&
        is_written(call, call.outputs[k]))
      TENON_TRY(check_writable(call.name, call.outputs[k], true, err));
  Node* node = new_custom_node(call, variables, custom);
  if (!node) return fail_host_memory(err);
  return attach_outputs(call, *node, err);
}

}  // namespace

tenon_status record(const char* name, tenon_tensor* const* inputs, uint32_t ninputs,
                    tenon_tensor* const* outputs, uint32_t noutputs,
                    tenon_custom_backward_fn backward, void* user, tenon_drop_fn drop,
                    tenon_err* err) {
  if (!name || !backward || noutputs == 0 || noutputs > kMaxOutputs)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "record: expected a name, a backward function and 1 to %u outputs, got %u outputs",
        kMaxOutputs, noutputs);
  try {
    return record_call({name, inputs, ninputs, outputs, noutputs}, {backward, user, drop, nullptr},
                       err);
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

tenon_status saved_create(tenon_tensor* tensor, int32_t is_output, tenon_saved** out,
                          tenon_err* err) {
  Tensor kept = Tensor::borrow(tensor);
  if (tensor && is_output) {
    TENON_TRY(alias(tensor, &kept, err));
    share_slots(tensor, kept.get());
  }
  std::unique_ptr<tenon_saved> saved(new (std::nothrow) tenon_saved{
      std::move(kept), is_output ? tensor : nullptr, tensor ? version_of(tensor) : 0, nullptr});
  if (!saved) return fail_host_memory(err);
  if (tensor && saved_hooks) {
    Packed* packed;
    TENON_TRY(Packed::make(saved->tensor.get(), &packed, err));
    saved->packed.reset(packed);
    if (!is_output) TENON_TRY(current_variable(tensor, &saved->history, err));
    if (saved->history) retain(saved->history->node());
    saved->tensor = {};
  }
  *out = saved.release();
  return TENON_OK;
}

// The variable of the running node that a saved output belongs to, while it matters.
static Variable* history_of_output(const tenon_saved& saved) {
  if (!saved.output || !running || !is_recording()) return nullptr;
  const tenon_tensor** outputs = custom_of(*running).outputs();
  auto k = static_cast<uint32_t>(std::find(outputs, outputs + running->noutputs, saved.output) -
                                 outputs);
  return k < running->noutputs ? &running->variables()[k] : nullptr;
}

static tenon_status unpack_packed(const tenon_saved& saved, tenon_tensor** out, tenon_err* err) {
  Variable* history = saved.output ? history_of_output(saved) : saved.history;
  Tensor result;
  TENON_TRY(saved.packed->unpack(is_recording() ? history : nullptr,
                                 running ? running->name() : "a custom function", &result, err));
  *out = result.release();
  return TENON_OK;
}

tenon_status saved_unpack(tenon_saved* saved, tenon_tensor** out, tenon_err* err) {
  if (saved->packed) return unpack_packed(*saved, out, err);
  if (!saved->tensor) {
    *out = nullptr;
    return TENON_OK;
  }
  uint32_t found = version_of(saved->tensor.get());
  if (found != saved->version)
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "gradient of [%s]: a tensor saved for backward was modified in place: expected "
        "version %u, found version "
        "%u; use the out-of-place form of the operator that modified it, or save a clone()",
        running ? running->name() : "a custom function", saved->version, found);
  Tensor result = saved->tensor;
  if (Variable* history = history_of_output(*saved)) {
    TENON_TRY(alias(saved->tensor.get(), &result, err));
    share_slots(saved->tensor.get(), result.get());
    retain(*running);
    attach(result.get(), history, kStandIn);
  }
  *out = result.release();
  return TENON_OK;
}

void saved_destroy(tenon_saved* saved) { delete saved; }

}  // namespace tenon::autograd
