// SPDX-License-Identifier: Apache-2.0
// Nodes of operator calls: what a rule will read is kept, and given back to it in backward.
//
// Behind the edges: tenon_value[nvalues] with the arguments, Saved for each bit of saved_outs, then
// what the values point at (lists, shapes, text).
#pragma once

#include "node.hpp"
#include "rules.hpp"

namespace tenon::autograd {

extern const NodeType kOperatorNode;
extern const NodeType kMissingRule;  // of operators that cannot be differentiated
extern const NodeType
    kComplexCall;  // of calls with complex tensors whose rule is written for real numbers

// Tags of kept values, besides those of the ABI. TENSOR: `aux` is the version. TENSORS: `v.p`
// points at `aux` handles, followed by as many versions.
enum : int32_t {
  kShapeOnly = -1,   // v.p: a Shape
  kShapesOnly = -2,  // v.p: `aux` Shapes one after another; ndim -1: no tensor
  kStale = -3,   // a tensor that was let go of because it was overwritten; aux: the version it had
  kPacked = -4,  // v.p: a Packed, owned
  kPackedList = -5,  // v.p points at `aux` pointers to Packed, owned; NULL: no tensor
};

class Packed;  // saved_hooks.hpp

struct Saved {
  tenon_tensor* tensor;  // NULL: `packed` stands for it
  union {
    uint32_t version;
    Packed* packed;
  };
};
static_assert(sizeof(Saved) == 16);

inline tenon_value* values_of(Node& node) { return static_cast<tenon_value*>(node.payload()); }
inline Saved* saved_outs_of(Node& node) {
  return reinterpret_cast<Saved*>(values_of(node) + node.nvalues);
}
inline const uint32_t* versions_of(const tenon_value& list) {
  return reinterpret_cast<const uint32_t*>(static_cast<tenon_tensor* const*>(list.v.p) + list.aux);
}

// A call that has run.
struct RecordedCall {
  const OperatorInfo& info;
  const tenon_value* args;
  uint32_t nargs;
  const tenon_value* outs;
  uint32_t nouts;
  uint64_t needs;            // arguments that get a gradient
  Variable* const* inputs;   // [i]: of argument i, for plain tensors in `needs`
  const uint32_t* versions;  // (optional) [i]: what argument i had before the call
};

// A node for the call, without references; attaching its variables adds them. NULL: it failed.
Node* record_call(const RecordedCall& call, tenon_err* err);

// `storage` was overwritten: if `node` keeps a tensor on it, let go of that; it can never be used.
void forget_stale(Node& node, const void* storage);

}  // namespace tenon::autograd
