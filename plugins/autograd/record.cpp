// SPDX-License-Identifier: Apache-2.0
// From a call that has run to its node. Most are laid out in one pass; others twice, by the same
// code: first to measure it, then to fill it.
#include <bit>
#include <cstring>

#include "operator_node.hpp"
#include "operators.hpp"
#include "saved_hooks.hpp"

namespace tenon::autograd {
namespace {

constexpr uint64_t round_up(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

// What a node of the call takes.
class Measure {
 public:
  static constexpr bool kFills = false;
  uint32_t edges = 0;
  uint64_t tail = 0;

  void edge(uint32_t, Variable*, const Shape*) { ++edges; }
  void value(uint32_t, const tenon_value&) {}
  char* take(uint64_t bytes) {
    tail += round_up(bytes);
    return nullptr;
  }
};

class Fill {
 public:
  static constexpr bool kFills = true;
  Fill(Node& node, char* tail)
      : node_(node), edge_(node.edges()), values_(values_of(node)), tail_(tail) {}

  void edge(uint32_t argument, Variable* to, const Shape* shape) {
    Edge& edge = *edge_++;
    edge.argument = argument;
    edge.shape = shape ? static_cast<uint32_t>(reinterpret_cast<const char*>(shape) -
                                               reinterpret_cast<const char*>(&node_))
                       : 0;
    connect(node_, edge, to);
  }
  void value(uint32_t index, const tenon_value& value) { values_[index] = value; }
  char* take(uint64_t bytes) { return std::exchange(tail_, tail_ + round_up(bytes)); }

 private:
  Node& node_;
  Edge* edge_;
  tenon_value* values_;
  char* tail_;
};

bool looks_like(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.ndim != b.ndim || a.dtype != b.dtype) return false;
  for (int32_t axis = 0; axis < a.ndim; ++axis)
    if (a.shape[axis] != b.shape[axis]) return false;
  return true;
}

// `tensor` NULL: an absent element of a list.
template <class Pass>
Shape* put_shape(Pass& pass, const tenon_tensor* tensor) {
  auto* shape = reinterpret_cast<Shape*>(pass.take(Shape::bytes(tensor ? tensor->ndim : 0)));
  if constexpr (Pass::kFills) {
    shape->ndim = tensor ? tensor->ndim : -1;
    shape->dtype = tensor ? tensor->dtype : 0;
    for (int32_t axis = 0; axis < shape->ndim; ++axis) shape->sizes[axis] = tensor->shape[axis];
  }
  return shape;
}

template <class Pass>
void* put_copy(Pass& pass, const void* from, uint64_t bytes) {
  char* to = pass.take(bytes);
  if constexpr (Pass::kFills)
    if (bytes) std::memcpy(to, from, bytes);
  return to;
}

// The only output, if there is only one: edges to tensors that look like it say nothing more.
const tenon_tensor* model_of(const RecordedCall& call) {
  return call.nouts == 1 ? as_tensor(call.outs[0]) : nullptr;
}

template <class Pass>
[[gnu::noinline]] void put_list_edges(Pass& pass, const RecordedCall& call, uint32_t i) {
  const tenon_value& value = call.args[i];
  auto* list = static_cast<tenon_tensor* const*>(value.v.p);
  for (uint32_t k = 0; k < value.aux; ++k) {
    Variable* to = list[k] ? variable_of(list[k]) : nullptr;
    pass.edge(i, to, to ? put_shape(pass, list[k]) : nullptr);
  }
}

template <class Pass>
void put_edges(Pass& pass, const RecordedCall& call, uint64_t alike) {
  for (uint64_t rest = call.needs; rest; rest &= rest - 1) {
    auto i = static_cast<uint32_t>(std::countr_zero(rest));
    const tenon_value& value = call.args[i];
    if (value.tag != TENON_VALUE_TENSOR) [[unlikely]]
      put_list_edges(pass, call, i);
    else
      pass.edge(
          i, call.inputs[i],
          alike >> i & 1 ? nullptr : put_shape(pass, static_cast<const tenon_tensor*>(value.v.p)));
  }
}

uint64_t find_alike(const RecordedCall& call) {
  const tenon_tensor* model = model_of(call);
  uint64_t alike = 0;
  if (!model) return alike;
  for (uint64_t rest = call.needs; rest; rest &= rest - 1) {
    auto i = static_cast<uint32_t>(std::countr_zero(rest));
    const tenon_tensor* tensor = as_tensor(call.args[i]);
    if (tensor && looks_like(*tensor, *model)) alike |= rest & (~rest + 1);
  }
  return alike;
}

template <class Pass>
tenon_value put_list(Pass& pass, const tenon_value& value) {
  auto* handles = static_cast<tenon_tensor**>(put_copy(pass, value.v.p, value.aux * sizeof(void*)));
  auto* versions = reinterpret_cast<uint32_t*>(pass.take(value.aux * sizeof(uint32_t)));
  if constexpr (Pass::kFills) {
    for (uint32_t k = 0; k < value.aux; ++k) {
      if (!handles[k]) continue;
      host->tensor_retain(handles[k]);
      versions[k] = version_of(handles[k]);
    }
  }
  return {TENON_VALUE_TENSORS, value.aux, {.p = handles}};
}

template <class Pass>
tenon_value put_shapes(Pass& pass, const tenon_value& value) {
  auto* list = static_cast<tenon_tensor* const*>(value.v.p);
  Shape* first = nullptr;
  for (uint32_t k = 0; k < value.aux; ++k) {
    Shape* shape = put_shape(pass, list[k]);
    if (k == 0) first = shape;
  }
  return {kShapesOnly, value.aux, {.p = first}};
}

template <class Pass>
tenon_value put_numbers(Pass& pass, const tenon_value& list) {
  static_assert(sizeof(int64_t) == sizeof(double));
  auto* to = reinterpret_cast<int64_t*>(pass.take(list.aux * sizeof(int64_t)));
  if constexpr (Pass::kFills)
    for (uint32_t k = 0; k < list.aux; ++k) to[k] = static_cast<const int64_t*>(list.v.p)[k];
  return {list.tag, list.aux, {.p = to}};
}

// Any value but a tensor that is read, lists of numbers, and those that fit where they stand.
template <class Pass>
[[gnu::noinline]] void put_other_value(Pass& pass, const RecordedCall& call, uint32_t i,
                                       bool is_read) {
  const tenon_value& value = call.args[i];
  bool is_shape = call.info.shapes_args >> i & 1;
  tenon_value kept = value;
  switch (value.tag) {
    case TENON_VALUE_TENSOR:
      kept = kNoValue;
      if (is_shape)
        kept = {kShapeOnly, 0, {.p = put_shape(pass, static_cast<const tenon_tensor*>(value.v.p))}};
      break;
    case TENON_VALUE_TENSORS:
      kept = kNoValue;
      if (is_read || is_shape) kept = is_read ? put_list(pass, value) : put_shapes(pass, value);
      break;
    case TENON_VALUE_STRING:
      kept.v.p = put_copy(pass, value.v.p, value.aux);
      break;
    case TENON_VALUE_COMPLEX:
      kept.v.p = put_copy(pass, value.v.p, 2 * sizeof(double));
      break;
    default:
      break;
  }
  pass.value(i, kept);
}

template <class Pass>
void put_values(Pass& pass, const RecordedCall& call, uint64_t reads) {
  for (uint32_t i = 0; i < call.nargs; ++i) {
    const tenon_value& value = call.args[i];
    bool is_read = reads >> i & 1;
    if (value.tag < TENON_VALUE_TENSOR) {
      pass.value(i, value);
    } else if (value.tag == TENON_VALUE_INTS || value.tag == TENON_VALUE_FLOATS) {
      pass.value(i, put_numbers(pass, value));
    } else if (!is_read || value.tag != TENON_VALUE_TENSOR) {
      put_other_value(pass, call, i, is_read);
    } else if constexpr (Pass::kFills) {
      auto* tensor = static_cast<tenon_tensor*>(value.v.p);
      uint32_t version = call.versions ? call.versions[i] : version_of(tensor);
      host->tensor_retain(tensor);
      pass.value(i, {TENON_VALUE_TENSOR, version, {.p = tensor}});
    }
  }
}

// The most frequent call, in one pass: one result, gradients for tensors that look like it, and
// values that fit where they stand. `fixed`: bytes of values and kept outputs. NULL: it is another,
// or memory ran out.
Node* record_plain(const RecordedCall& call, uint32_t nvalues, uint64_t reads, uint64_t fixed) {
  if (call.nouts != 1) return nullptr;
  const tenon_tensor& out = *static_cast<const tenon_tensor*>(call.outs[0].v.p);
  const tenon_value* args = call.args;
  uint32_t nedges = 0;
  for (uint64_t rest = call.needs; rest; rest &= rest - 1, ++nedges) {
    const tenon_value& arg = args[std::countr_zero(rest)];
    if (arg.tag != TENON_VALUE_TENSOR || !looks_like(*static_cast<tenon_tensor*>(arg.v.p), out))
      return nullptr;
  }
  uint64_t only_shapes = call.info.shapes_args & ~reads;
  for (uint32_t i = 0; i < nvalues; ++i)
    if (args[i].tag > TENON_VALUE_TENSOR || only_shapes >> i & 1) return nullptr;

  Node* node = new_node(kOperatorNode, &call.info, 1, nedges, fixed);
  if (!node) [[unlikely]]
    return nullptr;
  Edge* edge = node->edges();
  for (uint64_t rest = call.needs; rest; rest &= rest - 1, ++edge) {
    auto i = static_cast<uint32_t>(std::countr_zero(rest));
    edge->shape = 0;
    edge->argument = i;
    connect(*node, *edge, call.inputs[i]);
  }
  auto* values = reinterpret_cast<tenon_value*>(edge);
  for (uint32_t i = 0; i < nvalues; ++i, reads >>= 1) {
    values[i] = args[i];
    if (args[i].tag != TENON_VALUE_TENSOR) continue;
    auto* tensor = static_cast<tenon_tensor*>(args[i].v.p);
    if (reads & 1) {
      host->tensor_retain(tensor);
      values[i].aux = version_of(tensor);
    } else {
      values[i] = kNoValue;
    }
  }
  return node;
}

// Any call: what its node takes is measured first.
Node* record_measured(const RecordedCall& call, uint32_t nvalues, uint64_t reads, uint64_t fixed) {
  uint64_t alike = find_alike(call);
  Measure measure;
  put_edges(measure, call, alike);
  if (nvalues) put_values(measure, call, reads);
  Node* node = new_node(kOperatorNode, &call.info, call.nouts, measure.edges, fixed + measure.tail);
  if (!node) return nullptr;
  node->nvalues = static_cast<uint8_t>(nvalues);
  Fill fill(*node, static_cast<char*>(node->payload()) + fixed);
  put_edges(fill, call, alike);
  if (nvalues) put_values(fill, call, reads);
  return node;
}

// Outputs are kept as views without history: the tensors themselves would hold their own node.
tenon_status keep_outputs(const RecordedCall& call, uint64_t mask, Node& node, tenon_err* err) {
  uint32_t count = 0;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    tenon_tensor* out = as_tensor(call.outs[std::countr_zero(rest)]);
    Tensor view;
    TENON_TRY(alias(out, &view, err));
    saved_outs_of(node)[count++] = {view.release(), {.version = version_of(out)}};
    node.saved_outs |= static_cast<uint8_t>(rest & (~rest + 1));
  }
  return TENON_OK;
}

// Keeps nothing, and fails when a gradient has to pass. It has its edges all the same: a pass that
// is restricted to some inputs finds through them that these lie behind it.
Node* new_dead_end(const NodeType& type, const RecordedCall& call, tenon_err* err) {
  constexpr uint64_t no_shapes = ~uint64_t{0};
  Measure measure;
  put_edges(measure, call, no_shapes);
  Node* node = new_node(type, &call.info, call.nouts, measure.edges, measure.tail);
  if (!node) {
    fail_host_memory(err);
    return nullptr;
  }
  Fill fill(*node, static_cast<char*>(node->payload()));
  put_edges(fill, call, no_shapes);
  return node;
}

constexpr uint32_t kComplexRules = TENON_GRAD_RULE_COMPLEX | TENON_GRAD_RULE_HOLOMORPHIC;

// Is a complex tensor among those that get a gradient?
bool has_complex_argument(const RecordedCall& call) {
  for (uint64_t rest = call.needs; rest; rest &= rest - 1) {
    const tenon_value& value = call.args[std::countr_zero(rest)];
    if (const tenon_tensor* tensor = as_tensor(value)) {
      if (is_complex(tensor->dtype)) return true;
    } else if (value.tag == TENON_VALUE_TENSORS) {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      for (uint32_t k = 0; k < value.aux; ++k)
        if (list[k] && is_complex(list[k]->dtype)) return true;
    }
  }
  return false;
}

Node* record_with_rule(const RecordedCall& call, tenon_err* err) {
  uint64_t arguments = call.info.arguments_read(call.needs),
           outputs = call.info.outputs_read(call.needs);
  uint32_t nvalues = call.info.keeps_values ? call.nargs : 0;
  uint64_t fixed = nvalues * sizeof(tenon_value);
  for (uint64_t rest = outputs; rest; rest &= rest - 1) fixed += sizeof(Saved);

  Node* node = call.versions ? nullptr : record_plain(call, nvalues, arguments, fixed);
  if (!node) {
    // Arguments of a plain call have the dtype of its output.
    if (!(call.info.rule->flags & kComplexRules) && has_complex_argument(call)) [[unlikely]]
      return new_dead_end(kComplexCall, call, err);
    node = record_measured(call, nvalues, arguments, fixed);
  }
  if (!node) {
    fail_host_memory(err);
    return nullptr;
  }
  node->nvalues = static_cast<uint8_t>(nvalues);
  if (!arguments && !outputs) {
    node->flags |= Node::kKeepsNothing;
    return node;
  }
  bool failed = outputs && keep_outputs(call, outputs, *node, err) != TENON_OK;
  if (saved_hooks && !failed) [[unlikely]]
    failed = pack_saved(*node, err) != TENON_OK;
  if (failed) [[unlikely]] {
    retain(*node);
    release(*node);
    return nullptr;
  }
  return node;
}

[[gnu::cold, gnu::noinline]] Node* record_complex_call(const RecordedCall& call, tenon_err* err) {
  const uint32_t flags = call.info.rule->flags;
  if (!(flags & kComplexRules)) return new_dead_end(kComplexCall, call, err);
  Node* node = record_with_rule(call, err);
  if (node && flags & TENON_GRAD_RULE_HOLOMORPHIC) node->flags |= Node::kHolomorphic;
  return node;
}

}  // namespace

Node* record_call(const RecordedCall& call, tenon_err* err) {
  if (!call.info.rule) [[unlikely]]
    return new_dead_end(kMissingRule, call, err);
  for (uint32_t k = 0; k < call.nouts; ++k)
    if (is_complex(as_tensor(call.outs[k])->dtype)) [[unlikely]]
      return record_complex_call(call, err);
  return record_with_rule(call, err);
}

}  // namespace tenon::autograd
