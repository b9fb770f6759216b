// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <unordered_set>

#include "accumulate.hpp"
#include "hooks.hpp"
#include "operators.hpp"
#include "stand_ins.hpp"
#include "views.hpp"

namespace tenon::autograd {
namespace {

std::atomic<uint32_t> last_run{0};

uint32_t next_run() {
  uint32_t id = last_run.fetch_add(1, std::memory_order_relaxed) + 1;
  return id ? id : next_run();  // 0 means none
}

constinit thread_local const Node* running = nullptr;  // whose gradient this thread computes

class RunningScope {
 public:
  explicit RunningScope(const Node& node) : outer_(std::exchange(running, &node)) {}
  ~RunningScope() { running = outer_; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  const Node* outer_;
};

std::atomic<uint32_t> forward_layers{0};  // that are off in a pass, a bit each

constexpr size_t kSpareEntries = 4096;  // in a list that is kept for the next pass

bool has_hooks(const Variable& variable) {
  return variable.attachment &&
         !(variable.attachment->hooks.empty() && variable.attachment->after_accumulate.empty());
}

bool has_hooks_after_accumulate(Variable* variable) {
  return variable && variable->node().is_leaf() && variable->attachment &&
         !variable->attachment->after_accumulate.empty();
}

}  // namespace

Run::Lists& Run::spare_lists() {
  static thread_local Lists lists;
  return lists;
}

Run::Run(uint32_t flags) : id_(next_run()), flags_(flags) {
  Lists& spare = spare_lists();  // empty if a hook of another pass started this one
  heap_.swap(spare.heap);
  roots_.swap(spare.roots);
}

Run::~Run() {
  for (const Entry& entry : heap_) let_go(*entry.node);
  for (Node* node : claimed_) {
    node->flags &= static_cast<uint8_t>(~(Node::kNeeded | Node::kVisited));
    let_go(*node);
  }
  for (const Capture& capture : captures_) host->tensor_release(capture.sum);
  for (Node* node : roots_) release(*node);
  heap_.clear();
  roots_.clear();
  if (heap_.capacity() > kSpareEntries) return;
  Lists& spare = spare_lists();
  heap_.swap(spare.heap);
  roots_.swap(spare.roots);
}

// -- marks
// -----------------------------------------------------------------------------------------------

tenon_status Run::claim(Node& node, tenon_err* err) {
  uint32_t idle = 0;
  if (node.run.compare_exchange_strong(idle, id_, std::memory_order_acquire,
                                       std::memory_order_relaxed))
    return TENON_OK;
  return fail_format(
      err, TENON_FAILED_PRECONDITION,
      "[%s] is being differentiated already: another thread runs backward through the same "
      "graph, or a hook "
      "started a backward through the graph it was called for; let one finish first",
      short_name(node.name()));
}

// The claim lasts until the end of the pass.
tenon_status Run::claim_for_marks(Node& node, tenon_err* err) {
  if (node.run.load(std::memory_order_relaxed) == id_) return TENON_OK;
  claimed_.push_back(&node);
  tenon_status status = claim(node, err);
  if (status != TENON_OK) claimed_.pop_back();
  return status;
}

void Run::let_go(Node& node) {
  for (uint32_t k = 0; k < node.noutputs; ++k) {
    Variable& variable = node.variables()[k];
    if (variable.arriving) host->tensor_release(std::exchange(variable.arriving, nullptr));
  }
  node.flags &= static_cast<uint8_t>(~Node::kQueued);
  // Marks of a restricted pass stay until its end.
  if (!(node.flags & (Node::kNeeded | Node::kVisited)))
    node.run.store(0, std::memory_order_release);
}

bool Run::is_needed(Variable& variable) const {
  Node& node = variable.node();
  if (node.is_leaf()) return capture_index_.contains(&variable);
  return node.run.load(std::memory_order_relaxed) == id_ && node.flags & Node::kNeeded;
}

Run::Capture* Run::find_capture(const Variable& variable) {
  auto found = capture_index_.find(&variable);
  return found == capture_index_.end() ? nullptr : &captures_[found->second];
}

Run::Capture& Run::add_capture(Variable& variable) {
  auto [position, inserted] =
      capture_index_.try_emplace(&variable, static_cast<uint32_t>(captures_.size()));
  if (inserted) captures_.push_back({&variable, nullptr, false});
  return captures_[position->second];
}

tenon_tensor* Run::captured(Variable* input) const {
  auto found = capture_index_.find(input);
  return found == capture_index_.end() ? nullptr : captures_[found->second].sum;
}

// Mark every node from `root` down that leads to a captured one; below level `floor` there is none.
tenon_status Run::mark_needed(Node& root, uint32_t floor, tenon_err* err) {
  struct Frame {
    Node* node;
    uint32_t next;
  };
  std::vector<Frame> path;
  auto enter = [&](Node& node) -> tenon_status {
    if (node.is_leaf() || node.level < floor) return TENON_OK;
    TENON_TRY(claim_for_marks(node, err));
    if (node.flags & Node::kVisited) return TENON_OK;
    node.flags |= Node::kVisited;
    path.push_back({&node, 0});
    return TENON_OK;
  };
  TENON_TRY(enter(root));
  while (!path.empty()) {
    auto [node, next] = path.back();
    if (next < node->nedges) {
      ++path.back().next;
      if (Variable* to = node->edges()[next].to) TENON_TRY(enter(to->node()));
      continue;
    }
    for (uint32_t i = 0; i < node->nedges; ++i)
      if (wants(node->edges()[i])) node->flags |= Node::kNeeded;
    path.pop_back();
  }
  return TENON_OK;
}

tenon_status Run::restrict_to(tenon_tensor* const* outputs, uint32_t n, tenon_tensor* const* inputs,
                              uint32_t ninputs, tenon_err* err) {
  is_restricted_ = true;
  uint32_t floor = UINT32_MAX;
  for (uint32_t i = 0; i < ninputs; ++i) {
    Variable* variable;
    TENON_TRY(current_variable(inputs[i], &variable, err));
    if (!variable)
      return fail_format(
          err, TENON_FAILED_PRECONDITION,
          "gradients: inputs[%u] does not require grad; set requires_grad before it is used", i);
    add_capture(*variable);
    Node& node = variable->node();
    floor = std::min(floor, node.level);
    if (node.is_leaf()) continue;
    TENON_TRY(claim_for_marks(node, err));
    node.flags |= Node::kNeeded;
  }
  for (uint32_t i = 0; i < n; ++i) {
    Variable* variable;
    TENON_TRY(current_variable(outputs[i], &variable, err));
    if (variable) TENON_TRY(mark_needed(variable->node(), floor, err));
  }
  return TENON_OK;
}

// -- gradients on their way
// ------------------------------------------------------------------------------

tenon_status Run::seed(tenon_tensor* output, tenon_tensor* gradient, uint32_t index,
                       tenon_err* err) {
  Variable* variable;
  TENON_TRY(current_variable(output, &variable, err));
  if (!variable)
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "backward: outputs[%u] does not require grad and was not computed from a tensor "
        "that does; check that "
        "recording was on, and that requires_grad was set before the computation",
        index);
  Tensor seed;
  if (gradient) {
    Form expected = {output->ndim, gradient->dtype, output->shape};
    if (!has_form(*gradient, expected) || gradient->device != output->device)
      return fail_format(
          err, TENON_INVALID_ARGUMENT,
          "backward: expected for outputs[%u] a gradient of its shape %s on its device, "
          "got shape %s",
          index, shape_text(output->ndim, output->shape).c_str(),
          shape_text(gradient->ndim, gradient->shape).c_str());
    seed = Tensor::borrow(gradient);
    TENON_TRY(fit(seed, {output->ndim, output->dtype, output->shape}, "backward", err));
  } else {
    if (output->numel != 1 || is_complex(output->dtype))
      return fail_format(
          err, TENON_INVALID_ARGUMENT,
          "backward: outputs[%u] has shape %s and dtype %s; expected one real number, or a "
          "gradient to start "
          "from; reduce it, for example with sum(), or pass a gradient of its shape",
          index, shape_text(output->ndim, output->shape).c_str(), host->dtype_name(output->dtype));
    TENON_TRY(full(output->ndim, output->shape, 1.0, output->dtype, output->device, &seed, err));
  }
  if (is_restricted_ && !is_needed(*variable)) return TENON_OK;
  roots_.push_back(&variable->node());
  retain(variable->node());
  return arrive(*variable, std::move(seed), err);
}

tenon_status Run::deliver(Node& from, const Edge& edge, Tensor gradient, tenon_err* err) {
  Form form;
  if (const Shape* shape = from.shape_of(edge)) {
    form = {shape->ndim, shape->dtype, shape->sizes};
  } else {
    const tenon_tensor* like = from.variables()->arriving;
    form = {like->ndim, like->dtype, like->shape};
  }
  if (!has_form(*gradient.get(), form)) [[unlikely]]
    TENON_TRY(fit(gradient, form, short_name(from.name()), err));
  return arrive(*edge.to, std::move(gradient), err);
}

tenon_status Run::arrive(Variable& variable, Tensor gradient, tenon_err* err) {
  Node& node = variable.node();
  if (node.is_leaf()) return arrive_at_leaf(variable, std::move(gradient), err);
  bool is_ours = node.run.load(std::memory_order_relaxed) == id_;
  if (!is_ours || !(node.flags & Node::kQueued)) {
    heap_.push_back({uint64_t{node.level} << 32 | arrivals_left_--, &node});
    if (tenon_status status = is_ours ? TENON_OK : claim(node, err); status != TENON_OK) {
      heap_.pop_back();
      return status;
    }
    node.flags |= Node::kQueued;
    std::push_heap(heap_.begin(), heap_.end(), is_lower);
  }
  return add_to(variable.arriving, variable.sum_is_own, std::move(gradient), creates_graph(), err);
}

tenon_status Run::arrive_at_leaf(Variable& variable, Tensor gradient, tenon_err* err) {
  if (is_restricted_ || has_hooks(variable)) {
    Capture& capture = add_capture(variable);
    return add_to(capture.sum, capture.is_own, std::move(gradient), creates_graph(), err);
  }
  if (!variable.attachment->takes_grad.load(std::memory_order_relaxed)) return TENON_OK;
  return accumulate_grad(variable.attachment->grad, std::move(gradient), creates_graph(), err);
}

// -- the pass
// --------------------------------------------------------------------------------------------

// All gradients of the node have arrived: let hooks see them, keep those that are wanted, go on.
tenon_status Run::visit(Node& node, tenon_err* err) {
  for (uint32_t k = 0; k < node.noutputs; ++k) {
    Variable& variable = node.variables()[k];
    if (!variable.arriving) continue;
    if (variable.attachment) [[unlikely]] {
      Tensor gradient = Tensor::adopt(std::exchange(variable.arriving, nullptr));
      tenon_status status = run_hooks(variable, gradient, err);
      variable.arriving = gradient.release();
      TENON_TRY(status);
      if (variable.flags & Variable::kRetainsGrad && !is_restricted_)
        TENON_TRY(accumulate_grad(variable.attachment->grad, Tensor::borrow(variable.arriving),
                                  creates_graph(), err));
    }
    if (is_restricted_ && node.flags & Node::kNeeded)
      if (Capture* capture = find_capture(variable))
        TENON_TRY(add_to(capture->sum, capture->is_own, Tensor::borrow(variable.arriving),
                         creates_graph(), err));
  }
  if (is_restricted_) {
    bool goes_on = false;
    for (uint32_t i = 0; i < node.nedges && !goes_on; ++i) goes_on = wants(node.edges()[i]);
    if (!goes_on) return TENON_OK;
  }
  if (node.flags & Node::kCleared)
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "backward through the graph a second time: what [%s] had saved was freed by the "
        "first; pass "
        "retain_graph=true to every backward but the last",
        short_name(node.name()));
  {
    RunningScope scope(node);
    TENON_TRY(node.type->backward(node, *this, err));
  }
  bool keeps = flags_ & (TENON_BACKWARD_RETAIN_GRAPH | TENON_BACKWARD_CREATE_GRAPH) ||
               node.flags & Node::kKeepsNothing;
  if (!keeps) node.type->clear(node);
  return TENON_OK;
}

// A leaf's gradient is whole when every node that read the leaf was visited. Only hooks that run
// then need the count: an optimizer that steps there need not keep the gradients of all leaves.
void Run::count_consumers() {
  if (is_restricted_ || after_accumulate_hooks.load(std::memory_order_relaxed) == 0) return;
  std::unordered_set<const Node*> seen;
  std::vector<Node*> path;
  auto enter = [&](Node& node) {
    if (!node.is_leaf() && seen.insert(&node).second) path.push_back(&node);
  };
  for (Node* root : roots_) enter(*root);
  while (!path.empty()) {
    Node& node = *path.back();
    path.pop_back();
    for (uint32_t i = 0; i < node.nedges; ++i) {
      Variable* to = node.edges()[i].to;
      if (has_hooks_after_accumulate(to)) ++consumers_[to];
      if (to) enter(to->node());
    }
  }
}

// The leaves to which `node`, which was visited, was the last to hand a gradient.
tenon_status Run::finish_consumed_leaves(Node& node, tenon_err* err) {
  for (uint32_t i = 0; i < node.nedges; ++i) {
    auto found = consumers_.find(node.edges()[i].to);
    if (found == consumers_.end() || --found->second != 0) continue;
    if (Capture* capture = find_capture(*found->first)) TENON_TRY(finish_leaf(*capture, err));
  }
  return TENON_OK;
}

tenon_status Run::execute(tenon_err* err) {
  count_consumers();
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), is_lower);
    Node& node = *heap_.back().node;
    heap_.pop_back();
    tenon_status status = visit(node, err);
    if (status == TENON_OK && !consumers_.empty()) [[unlikely]]
      status = finish_consumed_leaves(node, err);
    let_go(node);
    TENON_TRY(status);
  }
  return finish_leaves(err);
}

tenon_status Run::finish_leaf(Capture& capture, tenon_err* err) {
  Variable& variable = *capture.variable;
  if (!variable.node().is_leaf() || !capture.sum) return TENON_OK;
  Tensor sum = Tensor::adopt(std::exchange(capture.sum, nullptr));
  TENON_TRY(run_hooks(variable, sum, err));
  if (is_restricted_) {
    capture.sum = sum.release();
    return TENON_OK;
  }
  if (!variable.attachment->takes_grad.load(std::memory_order_relaxed)) return TENON_OK;
  TENON_TRY(accumulate_grad(variable.attachment->grad, std::move(sum), creates_graph(), err));
  return run_hooks_after_accumulate(variable, err);
}

// Leaves with hooks, whose sums are complete now.
tenon_status Run::finish_leaves(tenon_err* err) {
  for (Capture& capture : captures_) TENON_TRY(finish_leaf(capture, err));
  return TENON_OK;
}

ForwardLayersOff::ForwardLayersOff() {
  for (uint32_t rest = forward_layers.load(std::memory_order_relaxed); rest; rest &= rest - 1) {
    const int32_t layer = std::countr_zero(rest);
    if (host->layer_enable(layer, 0)) were_on_ |= 1u << layer;
  }
}

ForwardLayersOff::~ForwardLayersOff() {
  for (uint32_t rest = were_on_; rest; rest &= rest - 1)
    host->layer_enable(std::countr_zero(rest), 1);
}

const void* running_node() { return running; }

void turn_off_in_backward(int32_t layer) {
  forward_layers.fetch_or(1u << layer, std::memory_order_relaxed);
}

// -- service functions
// -----------------------------------------------------------------------------------

namespace {

// What a caller forgot to make: only gradients may be NULL.
tenon_status check_tensors(const char* function, const char* list, tenon_tensor* const* tensors,
                           uint32_t n, tenon_err* err) {
  for (uint32_t i = 0; i < n; ++i)
    if (!tensors[i])
      return fail_format(err, TENON_TYPE_MISMATCH, "%s: expected a tensor for %s[%u], got none",
                         function, list, i);
  return TENON_OK;
}

}  // namespace

tenon_status backward(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                      uint32_t flags, tenon_err* err) {
  TENON_TRY(check_tensors("backward", "outputs", outputs, n, err));
  try {
    RecordingScope recording(flags & TENON_BACKWARD_CREATE_GRAPH);
    ForwardLayersOff off;
    Run run(flags);
    for (uint32_t i = 0; i < n; ++i)
      TENON_TRY(run.seed(outputs[i], grads ? grads[i] : nullptr, i, err));
    return run.execute(err);
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

tenon_status gradients(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                       tenon_tensor* const* inputs, uint32_t ninputs, tenon_tensor** results,
                       uint32_t flags, tenon_err* err) {
  TENON_TRY(check_tensors("gradients", "outputs", outputs, n, err));
  TENON_TRY(check_tensors("gradients", "inputs", inputs, ninputs, err));
  try {
    RecordingScope recording(flags & TENON_BACKWARD_CREATE_GRAPH);
    ForwardLayersOff off;
    Run run(flags);
    TENON_TRY(run.restrict_to(outputs, n, inputs, ninputs, err));
    for (uint32_t i = 0; i < n; ++i)
      TENON_TRY(run.seed(outputs[i], grads ? grads[i] : nullptr, i, err));
    TENON_TRY(run.execute(err));
    std::vector<Tensor> found(ninputs);
    for (uint32_t i = 0; i < ninputs; ++i) {
      tenon_tensor* sum = run.captured(variable_of(inputs[i]));
      if (!sum && !(flags & TENON_BACKWARD_ALLOW_UNUSED))
        return fail_format(
            err, TENON_FAILED_PRECONDITION,
            "gradients: the outputs do not depend on inputs[%u]; pass allow_unused=true if "
            "that is expected",
            i);
      found[i] = Tensor::borrow(sum);
      if (sum && sum->layers & place.bit && !(flags & TENON_BACKWARD_CREATE_GRAPH)) {
        TENON_TRY(alias(sum, &found[i], err));
        share_slots(sum, found[i].get());
      }
    }
    for (uint32_t i = 0; i < ninputs; ++i) results[i] = found[i].release();
    return TENON_OK;
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

}  // namespace tenon::autograd
