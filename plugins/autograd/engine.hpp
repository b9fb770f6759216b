// SPDX-License-Identifier: Apache-2.0
// One backward pass, on the calling thread: from the outputs down the levels of the graph.
#pragma once

#include <unordered_map>
#include <vector>

#include "node.hpp"

namespace tenon::autograd {

class Run {
 public:
  explicit Run(uint32_t flags);
  ~Run();
  Run(const Run&) = delete;

  // Restrict the pass to what lies between `outputs` and `inputs`; gradients of the latter are
  // captured. Call before seed().
  tenon_status restrict_to(tenon_tensor* const* outputs, uint32_t n, tenon_tensor* const* inputs,
                           uint32_t ninputs, tenon_err* err);
  // Start with `gradient` (NULL: one) at `output`.
  tenon_status seed(tenon_tensor* output, tenon_tensor* gradient, uint32_t index, tenon_err* err);
  tenon_status execute(tenon_err* err);
  // What arrived at an input that restrict_to() was told of; NULL: nothing.
  tenon_tensor* captured(Variable* input) const;

  // -- for node types
  // ---------------------------------------------------------------------------------
  bool creates_graph() const { return flags_ & TENON_BACKWARD_CREATE_GRAPH; }
  // Is a gradient for this input of use?
  bool wants(const Edge& edge) const { return edge.to && (!is_restricted_ || is_needed(*edge.to)); }
  // Hand over the gradient of an input of `from`; it is brought to the input's shape and dtype.
  tenon_status deliver(Node& from, const Edge& edge, Tensor gradient, tenon_err* err);

 private:
  // Of one level, who was reached first comes first, so that sums of several gradients have one order whatever else is in the
  // graph: with units of ZeRO, say, or without.
  struct Entry {
    uint64_t order;  // the level, and behind it who came first
    Node* node;
  };
  struct Capture {
    Variable* variable;
    tenon_tensor* sum;  // owned
    bool is_own;
  };

  bool is_needed(Variable& variable) const;
  Capture* find_capture(const Variable& variable);
  Capture& add_capture(Variable& variable);
  tenon_status mark_needed(Node& root, uint32_t floor, tenon_err* err);
  static bool is_lower(const Entry& a, const Entry& b) { return a.order < b.order; }
  tenon_status claim(Node& node, tenon_err* err);
  tenon_status claim_for_marks(Node& node, tenon_err* err);
  tenon_status arrive(Variable& variable, Tensor gradient, tenon_err* err);
  tenon_status arrive_at_leaf(Variable& variable, Tensor gradient, tenon_err* err);
  tenon_status visit(Node& node, tenon_err* err);
  tenon_status run_node(Node& node, tenon_err* err);
  void count_consumers();
  tenon_status finish_consumed_leaves(Node& node, tenon_err* err);
  tenon_status finish_leaf(Capture& capture, tenon_err* err);
  tenon_status finish_leaves(tenon_err* err);
  void let_go(Node& node);

  // Memory that one pass of a thread leaves to the next.
  struct Lists {
    std::vector<Entry> heap;
    std::vector<Node*> roots;
  };
  static Lists& spare_lists();

  const uint32_t id_;
  const uint32_t flags_;
  bool is_restricted_ = false;
  std::vector<Entry> heap_;  // nodes with gradients, highest level first
  uint32_t arrivals_left_ = UINT32_MAX;
  std::vector<Node*> roots_;    // keep the graph alive: a hook may drop the caller's last handle
  std::vector<Node*> claimed_;  // restricted passes: nodes with marks
  // Sums that are wanted whole: of the inputs of a restricted pass, and of leaves with hooks.
  std::vector<Capture> captures_;
  std::unordered_map<const Variable*, uint32_t> capture_index_;
  // Edges that a gradient may still come by, to leaves with hooks that wait for the last one.
  std::unordered_map<const Variable*, uint32_t> consumers_;
};

// Forward layers are off on this thread while one lives: turn_off_in_backward.
class ForwardLayersOff {
 public:
  ForwardLayersOff();
  ~ForwardLayersOff();
  ForwardLayersOff(const ForwardLayersOff&) = delete;
  ForwardLayersOff& operator=(const ForwardLayersOff&) = delete;

 private:
  uint32_t were_on_ = 0;  // a bit each
};

// -- service functions
// -----------------------------------------------------------------------------
tenon_status backward(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                      uint32_t flags, tenon_err* err);
tenon_status gradients(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                       tenon_tensor* const* inputs, uint32_t ninputs, tenon_tensor** results,
                       uint32_t flags, tenon_err* err);
void turn_off_in_backward(int32_t layer);
const void* running_node();

}  // namespace tenon::autograd
