// SPDX-License-Identifier: Apache-2.0
// Memory of nodes: thread-local free lists, and release without recursion.
#include "node.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "hooks.hpp"

namespace tenon::autograd {
namespace {

constexpr uint32_t kUnit = 32;
constexpr uint32_t kClasses = 10;  // blocks of 1 to 10 units come from free lists
constexpr uint32_t kListLimit = 4096;

// Plain data, so that access is one thread-local read; the guard returns the blocks when the thread
// ends. Nodes freed later than that, by other thread-local destructors, go straight to free().
struct FreeLists {
  void* head[kClasses];
  uint16_t count[kClasses];
  uint16_t limit;  // 0 before the guard exists and after it has run
  bool ended;
  bool is_draining;  // this thread is inside release(): freed nodes queue up in `pending`
  Node* pending;
};
constinit thread_local FreeLists lists{};

struct Guard {
  ~Guard() {
    lists.limit = 0;
    lists.ended = true;
    for (void*& head : lists.head)
      while (void* block = head) {
        std::memcpy(&head, block, sizeof(void*));
        std::free(block);
      }
  }
};

// AddressSanitizer shall see every use after free.
constexpr bool kRecycle = TENON_SANITIZER_HERE != TENON_SANITIZER_ADDRESS;

[[gnu::noinline]] void free_block_slowly(void* block, uint32_t index) {
  if (kRecycle && lists.limit == 0 && !lists.ended) {
    static thread_local Guard guard;
    (void)guard;
    lists.limit = kListLimit;
    std::memcpy(block, &lists.head[index], sizeof(void*));
    lists.head[index] = block;
    ++lists.count[index];
    return;
  }
  std::free(block);
}

void free_node(Node* node) {
  uint32_t size_class = node->size_class;
  if (size_class == 0) return std::free(node);
  uint32_t index = size_class - 1;
  if (lists.count[index] >= lists.limit) [[unlikely]]
    return free_block_slowly(node, index);
  std::memcpy(static_cast<void*>(node), &lists.head[index], sizeof(void*));
  lists.head[index] = node;
  ++lists.count[index];
}

// The link of the pending list lives where a node without holders needs nothing any more.
void set_next_pending(Node& node, Node* next) {
  std::memcpy(&node.variables()->arriving, &next, sizeof next);
}
Node* next_pending(Node& node) {
  Node* next;
  std::memcpy(&next, &node.variables()->arriving, sizeof next);
  return next;
}

void dispose(Node& node) {
  if (!(node.flags & (Node::kCleared | Node::kKeepsNothing))) node.type->clear(node);
  for (uint32_t i = 0; i < node.nedges; ++i)
    if (Variable* to = node.edges()[i].to) release(to->node());
  for (uint32_t i = 0; i < node.noutputs; ++i)
    if (node.variables()[i].attachment) [[unlikely]]
      delete_attachment(node.variables()[i].attachment);
  free_node(&node);
}

[[gnu::noinline]] void destroy(Node& node) {
  // A backward that failed may have left gradients here.
  for (uint32_t i = 0; i < node.noutputs; ++i)
    if (tenon_tensor* left = node.variables()[i].arriving) [[unlikely]] {
      node.variables()[i].arriving = nullptr;
      host->tensor_release(left);
    }
  if (lists.is_draining) {
    set_next_pending(node, lists.pending);
    lists.pending = &node;
    return;
  }
  lists.is_draining = true;
  dispose(node);
  while (Node* next = lists.pending) {
    lists.pending = next_pending(*next);
    dispose(*next);
  }
  lists.is_draining = false;
}

const char* leaf_name(const Node&) { return "leaf"; }
void clear_nothing(Node&) {}
// Gradients that reach a leaf go into its .grad; the engine never queues one.
constexpr NodeType kLeaf = {.name = leaf_name, .backward = nullptr, .clear = clear_nothing};

}  // namespace

Node* new_node(const NodeType& type, const void* detail, uint32_t noutputs, uint32_t nedges,
               uint64_t payload_bytes) {
  uint64_t bytes =
      sizeof(Node) + noutputs * sizeof(Variable) + nedges * sizeof(Edge) + payload_bytes;
  uint64_t units = (bytes + kUnit - 1) / kUnit;
  void* block = nullptr;
  uint8_t size_class = 0;
  if (units <= kClasses) [[likely]] {
    size_class = static_cast<uint8_t>(units);
    void*& head = lists.head[units - 1];
    if (head) [[likely]] {
      block = head;
      std::memcpy(&head, block, sizeof(void*));
      --lists.count[units - 1];
    }
  }
  if (!block) [[unlikely]] {
    block = std::malloc(units * kUnit);
    if (!block) return nullptr;
  }
  Node* node = new (block) Node;
  node->type = &type;
  node->detail = detail;
  node->references.store(0, std::memory_order_relaxed);
  node->level = 1;
  node->run.store(0, std::memory_order_relaxed);
  node->nedges = nedges;
  node->noutputs = static_cast<uint16_t>(noutputs);
  node->size_class = size_class;
  node->flags = 0;
  node->nvalues = 0;
  node->saved_outs = 0;
  node->rid_of.store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < noutputs; ++i) {
    auto words = static_cast<uint16_t>((sizeof(Node) + i * sizeof(Variable)) / 8);
    node->variables()[i] = {.arriving = nullptr,
                            .attachment = nullptr,
                            .version = 0,
                            .words = words,
                            .flags = 0,
                            .sum_is_own = false};
  }
  return node;
}

void release(Node& node) {
  // The last holder needs no read-modify-write, as no other thread can count.
  if (node.references.load(std::memory_order_acquire) == 1 ||
      node.references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(node);
}

void drop_slot(void* value) {
  auto bits = reinterpret_cast<uintptr_t>(value);
  auto* variable = reinterpret_cast<Variable*>(bits & ~kStandIn);
  // .grad is reached through the tensor alone. Dropping it here, not with the node, breaks the
  // cycle leaf -> .grad -> history of .grad -> leaf that create_graph makes.
  if (variable->attachment && !(bits & kStandIn)) {
    variable->attachment->takes_grad.store(false, std::memory_order_relaxed);
    drop_grad(*variable->attachment);
  }
  release(variable->node());
}

Variable* new_leaf() {
  Node* node = new_node(kLeaf, nullptr, 1, 0, 0);
  if (!node) return nullptr;
  node->level = 0;
  if (!attachment_of(*node->variables())) {  // made now: several threads may come to accumulate
    free_node(node);
    return nullptr;
  }
  retain(*node);
  return node->variables();
}

}  // namespace tenon::autograd
