// SPDX-License-Identifier: Apache-2.0
// From a call that has run to its node.
#include <bit>
#include <cstring>

#include "operator_node.hpp"
#include "operators.hpp"

namespace tenon::autograd {
namespace {

bool looks_like(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.ndim != b.ndim || a.dtype != b.dtype) return false;
  for (int32_t axis = 0; axis < a.ndim; ++axis)
    if (a.shape[axis] != b.shape[axis]) return false;
  return true;
}

// The node is laid out twice: first to measure it, then to fill it.
class Tail {
 public:
  explicit Tail(char* begin) : at_(begin) {}
  bool is_filling() const { return at_ != nullptr; }
  uint64_t bytes() const { return bytes_; }
  char* take(uint64_t bytes) {
    bytes = (bytes + 7) & ~uint64_t{7};
    bytes_ += bytes;
    char* result = at_;
    if (at_) at_ += bytes;
    return result;
  }
  void* copy(const void* from, uint64_t bytes) {
    char* to = take(bytes);
    if (to && bytes) std::memcpy(to, from, bytes);
    return to;
  }
  Shape* shape(const tenon_tensor* tensor) {
    auto* to = reinterpret_cast<Shape*>(take(Shape::bytes(tensor ? tensor->ndim : 0)));
    if (!to) return nullptr;
    to->ndim = tensor ? tensor->ndim : -1;
    to->dtype = tensor ? tensor->dtype : 0;
    if (tensor && tensor->ndim) std::memcpy(to->sizes, tensor->shape, sizeof(int64_t) * static_cast<size_t>(tensor->ndim));
    return to;
  }

 private:
  char* at_;
  uint64_t bytes_ = 0;
};

void lay_out_edge(Node* node, uint32_t& index, uint32_t argument, Variable* to, const tenon_tensor* tensor,
                  const tenon_tensor* like, Tail& tail) {
  Shape* shape = to && !(like && looks_like(*tensor, *like)) ? tail.shape(tensor) : nullptr;
  if (node) {
    Edge& edge = node->edges()[index];
    edge.argument = argument;
    edge.shape = shape ? static_cast<uint32_t>(reinterpret_cast<char*>(shape) - reinterpret_cast<char*>(node)) : 0;
    connect(*node, edge, to);
  }
  ++index;
}

// Returns how many edges there are.
uint32_t lay_out_edges(const RecordedCall& call, const tenon_tensor* like, Node* node, Tail& tail) {
  uint32_t count = 0;
  for (uint64_t rest = call.needs; rest; rest &= rest - 1) {
    auto i = static_cast<uint32_t>(std::countr_zero(rest));
    const tenon_value& value = call.args[i];
    if (value.tag == TENON_VALUE_TENSOR) {
      lay_out_edge(node, count, i, call.inputs[i], static_cast<const tenon_tensor*>(value.v.p), like, tail);
    } else {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      for (uint32_t k = 0; k < value.aux; ++k)
        lay_out_edge(node, count, i, list[k] ? variable_of(list[k]) : nullptr, list[k], like, tail);
    }
  }
  return count;
}

tenon_value keep_tensor(const tenon_value& value, const uint32_t* version, bool filling) {
  if (!filling) return value;
  tenon_tensor* tensor = as_tensor(value);
  host->tensor_retain(tensor);
  return {TENON_VALUE_TENSOR, version ? *version : host->tensor_version(tensor), {.p = tensor}};
}

tenon_value keep_list(const tenon_value& value, Tail& tail) {
  auto* list = static_cast<tenon_tensor* const*>(value.v.p);
  auto* handles = static_cast<tenon_tensor**>(tail.copy(list, value.aux * sizeof(void*)));
  auto* versions = reinterpret_cast<uint32_t*>(tail.take(value.aux * sizeof(uint32_t)));
  if (handles)
    for (uint32_t k = 0; k < value.aux; ++k) {
      if (!handles[k]) continue;
      host->tensor_retain(handles[k]);
      versions[k] = host->tensor_version(handles[k]);
    }
  return {TENON_VALUE_TENSORS, value.aux, {.p = handles}};
}

tenon_value keep_shapes(const tenon_value& value, Tail& tail) {
  auto* list = static_cast<tenon_tensor* const*>(value.v.p);
  Shape* first = nullptr;
  for (uint32_t k = 0; k < value.aux; ++k) {
    Shape* shape = tail.shape(list[k]);
    if (k == 0) first = shape;
  }
  return {kShapesOnly, value.aux, {.p = first}};
}

void lay_out_values(const RecordedCall& call, uint64_t reads, Node* node, Tail& tail) {
  for (uint32_t i = 0; i < call.nargs; ++i) {
    const tenon_value& value = call.args[i];
    bool is_read = reads >> i & 1, is_shape = call.info.shapes_args >> i & 1;
    tenon_value kept = value;
    switch (value.tag) {
      case TENON_VALUE_TENSOR:
        if (is_read)
          kept = keep_tensor(value, call.versions ? &call.versions[i] : nullptr, node != nullptr);
        else if (is_shape)
          kept = {kShapeOnly, 0, {.p = tail.shape(static_cast<const tenon_tensor*>(value.v.p))}};
        else
          kept = {TENON_VALUE_NONE, 0, {.i = 0}};
        break;
      case TENON_VALUE_TENSORS:
        if (is_read)
          kept = keep_list(value, tail);
        else if (is_shape)
          kept = keep_shapes(value, tail);
        else
          kept = {TENON_VALUE_NONE, 0, {.i = 0}};
        break;
      case TENON_VALUE_INTS:
      case TENON_VALUE_FLOATS: kept.v.p = tail.copy(value.v.p, value.aux * sizeof(int64_t)); break;
      case TENON_VALUE_STRING: kept.v.p = tail.copy(value.v.p, value.aux); break;
      case TENON_VALUE_COMPLEX: kept.v.p = tail.copy(value.v.p, 2 * sizeof(double)); break;
      default: break;
    }
    if (node) values_of(*node)[i] = kept;
  }
}

// Outputs are kept as views without history: the tensors themselves would hold their own node.
tenon_status keep_outputs(const RecordedCall& call, uint64_t mask, Node& node, tenon_err* err) {
  uint32_t count = 0;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    tenon_tensor* out = as_tensor(call.outs[std::countr_zero(rest)]);
    Tensor view;
    TENON_TRY(alias(out, &view, err));
    saved_outs_of(node)[count++] = {view.release(), host->tensor_version(out), 0};
    node.saved_outs |= static_cast<uint8_t>(rest & (~rest + 1));
  }
  return TENON_OK;
}

}  // namespace

Node* record_call(const RecordedCall& call, tenon_err* err) {
  if (!call.info.rule) {
    // Nothing is kept: backward through it fails.
    Node* node = new_node(kMissingRule, &call.info, call.nouts, 0, 0);
    if (!node) fail_memory(err);
    return node;
  }
  uint64_t arguments = call.info.arguments_read(call.needs), outputs = call.info.outputs_read(call.needs);
  uint32_t nvalues = call.info.keeps_values ? call.nargs : 0;
  // With one output, edges to tensors that look like it say nothing more.
  const tenon_tensor* like = call.nouts == 1 ? as_tensor(call.outs[0]) : nullptr;

  Tail measured(nullptr);
  uint32_t nedges = lay_out_edges(call, like, nullptr, measured);
  if (nvalues) lay_out_values(call, arguments, nullptr, measured);
  uint64_t fixed = nvalues * sizeof(tenon_value) + static_cast<uint64_t>(std::popcount(outputs)) * sizeof(Saved);
  Node* node = new_node(kOperatorNode, &call.info, call.nouts, nedges, fixed + measured.bytes());
  if (!node) {
    fail_memory(err);
    return nullptr;
  }
  node->nvalues = static_cast<uint8_t>(nvalues);
  Tail tail(static_cast<char*>(node->payload()) + fixed);
  lay_out_edges(call, like, node, tail);
  if (nvalues) lay_out_values(call, arguments, node, tail);
  if (outputs && keep_outputs(call, outputs, *node, err) != TENON_OK) {
    retain(*node);
    release(*node);
    return nullptr;
  }
  return node;
}

}  // namespace tenon::autograd
