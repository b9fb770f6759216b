// SPDX-License-Identifier: Apache-2.0
// The graph: one node for each recorded call and each leaf, in one block of memory.
//
//   Node | Variable[noutputs] | Edge[nedges] | what the node's type keeps
//
// A tensor with gradient points at the Variable that stands for it (its extension slot) and so
// holds a reference to the node; a node holds references to the nodes of its inputs. Nothing points
// forward.
#pragma once

#include <atomic>
#include <cstdint>

#include "support.hpp"

namespace tenon::autograd {

class Run;
struct Node;
struct Attachment;  // hooks.hpp

// A gradient on its way through the graph: one output of a node.
struct Variable {
  enum : uint8_t {
    kRetainsGrad = 1,  // a non-leaf whose .grad is wanted
    kView = 2,         // of a tensor's base; `version` says which writes its history knows of
  };
  tenon_tensor* arriving;  // sum of the gradients so far in the running backward; owned
  Attachment* attachment;  // .grad and hooks, for the few that have any; owned
  uint32_t version;
  uint16_t words;  // of 8 bytes, from the node to here
  uint8_t flags;
  bool sum_is_own;  // the engine made `arriving` and may change it in place

  Node& node() { return *reinterpret_cast<Node*>(reinterpret_cast<uint64_t*>(this) - words); }
};

// What an input looked like, where it differs from output 0: its gradient is summed and cast to
// this.
struct Shape {
  int32_t ndim;
  int32_t dtype;
  int64_t sizes[1];  // ndim of them

  static uint32_t bytes(int32_t ndim) { return 8 + 8 * static_cast<uint32_t>(ndim); }
};

// An input of a node. `to` is NULL for elements of a Tensor[] that need no gradient.
struct Edge {
  Variable* to;
  uint32_t shape;     // bytes from the node to a Shape; 0: shape and dtype of output 0
  uint32_t argument;  // of the operator; consecutive edges of a Tensor[] share one
};

// One kind of node: how gradients pass through it.
struct NodeType {
  const char* (*name)(const Node&);
  // Take the gradients from the node's variables and hand one to run.deliver() for each wanted
  // edge.
  tenon_status (*backward)(Node&, Run&, tenon_err*);
  // Release what was kept for backward. Called once, before the node is freed at the latest.
  void (*clear)(Node&);
};

struct Node {
  enum : uint8_t {
    kQueued = 1,         // a running backward will come to this node
    kNeeded = 2,         // lies between the outputs and the inputs that gradients() was asked about
    kVisited = 4,        // by the search for such nodes
    kCleared = 8,        // kept tensors are gone
    kKeepsNothing = 16,  // there never were any
    kHolomorphic = 32,   // a complex call whose rule is written as for real numbers
  };
  const NodeType* type;
  const void* detail;  // of the type
  std::atomic<uint32_t> references;
  uint32_t level;  // above that of all inputs; leaves are 0. Backward goes down the levels
  std::atomic<uint32_t> run;  // the backward that works on this node now; 0: none
  uint32_t nedges;
  uint16_t noutputs;
  uint8_t size_class;  // 0: not from the free lists
  uint8_t flags;
  uint8_t nvalues;               // operator nodes: arguments kept
  uint8_t saved_outs;            // operator nodes: outputs kept, a bit each
  std::atomic<uint16_t> rid_of;  // mark of the storage whose stale tensors were let go of last

  Variable* variables() { return reinterpret_cast<Variable*>(this + 1); }
  Edge* edges() { return reinterpret_cast<Edge*>(variables() + noutputs); }
  void* payload() { return edges() + nedges; }
  const Shape* shape_of(const Edge& edge) const {
    return edge.shape
               ? reinterpret_cast<const Shape*>(reinterpret_cast<const char*>(this) + edge.shape)
               : nullptr;
  }
  bool is_leaf() const { return level == 0; }
  const char* name() const { return type->name(*this); }
};
static_assert(sizeof(Node) == 40 && sizeof(Variable) == 24 && sizeof(Edge) == 16);

// As many as Variable::words can reach.
inline constexpr uint32_t kMaxOutputs = (UINT16_MAX - sizeof(Node) / 8) / (sizeof(Variable) / 8);

// A node with `payload_bytes` behind its edges, no references and no level yet; edges are
// uninitialised. NULL: out of memory.
Node* new_node(const NodeType& type, const void* detail, uint32_t noutputs, uint32_t nedges,
               uint64_t payload_bytes);

inline void retain(Node& node) { node.references.fetch_add(1, std::memory_order_relaxed); }
// Graphs of any depth are released without recursion.
void release(Node& node);

// Point `edge` at an input and raise the node's level above it.
inline void connect(Node& node, Edge& edge, Variable* to) {
  edge.to = to;
  if (!to) return;
  Node& source = to->node();
  retain(source);
  if (source.level >= node.level) node.level = source.level + 1;
}

// -- tensors and their variables
// ---------------------------------------------------------------------

// Several tensors may point at one variable: the one whose history it is, and stand-ins that the
// engine made for its value. A stand-in carries a mark, so that its death takes no .grad with it.
inline constexpr uintptr_t kStandIn = 1;

inline Variable* variable_in_slot(const tenon_tensor* tensor) {
  auto bits = reinterpret_cast<uintptr_t>(host->ext_get(tensor, place.slot));
  return reinterpret_cast<Variable*>(bits & ~kStandIn);
}
// NULL if the tensor takes no part in differentiation. Leaves that do not require grad have a
// variable only to hold .grad.
inline Variable* variable_of(const tenon_tensor* tensor) {
  return tensor->layers & place.bit ? variable_in_slot(tensor) : nullptr;
}

// Make `variable` the history of `tensor`, which has none yet; takes over one reference to its
// node.
inline void attach(tenon_tensor* tensor, Variable* variable, uintptr_t mark = 0) {
  host->ext_set(tensor, place.slot,
                reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(variable) | mark));
  host->tensor_set_layer(tensor, place.layer, 1);
}
// Take the history off; the caller receives the reference to the variable's node.
inline Variable* detach_variable(tenon_tensor* tensor) {
  Variable* variable = variable_in_slot(tensor);
  host->ext_set(tensor, place.slot, nullptr);
  host->tensor_set_layer(tensor, place.layer, 0);
  return variable;
}
// The host's extension slot calls this when a tensor dies.
void drop_slot(void* value);

// -- leaves
// --------------------------------------------------------------------------------------------

// With an attachment. NULL: out of memory. One reference, for the tensor.
Variable* new_leaf();

}  // namespace tenon::autograd
