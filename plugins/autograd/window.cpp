// SPDX-License-Identifier: Apache-2.0
#include "window.hpp"

#include <algorithm>
#include <cstring>

#include "engine.hpp"
#include "operators.hpp"

namespace tenon::autograd {
namespace {

// Behind the edges of every node of this file: Window, Shape of the base, Shape of the window,
// strides.
struct Window {
  int64_t offset;       // elements from the base's first to the window's first
  uint32_t base_bytes;  // of the base's Shape
  uint32_t view_bytes;

  const Shape& base() const { return *reinterpret_cast<const Shape*>(this + 1); }
  const Shape& view() const {
    return *reinterpret_cast<const Shape*>(reinterpret_cast<const char*>(this + 1) + base_bytes);
  }
  const int64_t* strides() const {
    return reinterpret_cast<const int64_t*>(reinterpret_cast<const char*>(this + 1) + base_bytes +
                                            view_bytes);
  }
  uint64_t bytes() const {
    return sizeof(Window) + base_bytes + view_bytes +
           sizeof(int64_t) * static_cast<uint64_t>(view().ndim);
  }
};

enum class Map { kTake, kPlace, kClear };

const Window& window_of(Node& node) { return *static_cast<const Window*>(node.payload()); }

uint32_t offset_in(Node& node, const Shape& shape) {
  return static_cast<uint32_t>(reinterpret_cast<const char*>(&shape) -
                               reinterpret_cast<const char*>(&node));
}

void write_shape(const tenon_tensor& tensor, const Shape& at) {
  auto& shape = const_cast<Shape&>(at);
  shape.ndim = tensor.ndim;
  shape.dtype = tensor.dtype;
  std::copy_n(tensor.shape, tensor.ndim, shape.sizes);
}

int64_t byte_position(const tenon_tensor& tensor) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset);
}

Node* new_window_node(const NodeType& type, uint32_t nedges, const tenon_tensor& view,
                      const tenon_tensor& base) {
  Window header = {
      .offset = (byte_position(view) - byte_position(base)) / host->dtype_size(base.dtype),
      .base_bytes = Shape::bytes(base.ndim),
      .view_bytes = Shape::bytes(view.ndim)};
  uint64_t bytes =
      sizeof header + header.base_bytes + header.view_bytes + 8 * static_cast<uint64_t>(view.ndim);
  Node* node = new_node(type, nullptr, 1, nedges, bytes);
  if (!node) return nullptr;
  auto& window = const_cast<Window&>(window_of(*node));
  window = header;
  write_shape(base, window.base());
  write_shape(view, window.view());
  std::copy_n(view.strides, view.ndim, const_cast<int64_t*>(window.strides()));
  return node;
}

// Node of a map with the same window as `like`.
Node* new_map_node(Map map, Node& like, Variable* input);

// The part of `base`, a contiguous tensor, that the window shows; shares its memory.
tenon_status open_window(const Window& window, const Tensor& base, Tensor* out, tenon_err* err) {
  const Shape& shape = window.view();
  tenon_tensor* view;
  TENON_TRY(host->tensor_view(base.get(), base->dtype, shape.ndim, shape.sizes, window.strides(),
                              window.offset, &view, err));
  *out = Tensor::adopt(view);
  return TENON_OK;
}

tenon_status compute(Map map, const Window& window, const Tensor& in, Tensor* out, tenon_err* err) {
  RecordingScope off(false);
  Tensor view;
  switch (map) {
    case Map::kTake: {
      Tensor whole = in;
      if (!(in->flags & TENON_TENSOR_CONTIGUOUS)) TENON_TRY(clone(in, &whole, err));
      return open_window(window, whole, out, err);
    }
    case Map::kPlace: {
      const Shape& shape = window.base();
      TENON_TRY(full(shape.ndim, shape.sizes, 0.0, in->dtype, in->device, out, err));
      TENON_TRY(open_window(window, *out, &view, err));
      return copy_into(view.get(), in, err);
    }
    case Map::kClear:
      TENON_TRY(clone(in, out, err));
      TENON_TRY(open_window(window, *out, &view, err));
      return fill(view.get(), 0.0, err);
  }
  return TENON_OK;
}

// Apply a map with the window of `node`, and record that if gradients are to be differentiated.
tenon_status apply(Map map, Node& node, const Tensor& in, Tensor* out, tenon_err* err) {
  TENON_TRY(compute(map, window_of(node), in, out, err));
  Variable* input = is_recording() ? variable_of(in.get()) : nullptr;
  if (!input) return TENON_OK;
  Node* recorded = new_map_node(map, node, input);
  if (!recorded) return fail_memory(err);
  retain(*recorded);
  attach(out->get(), recorded->variables());
  return TENON_OK;
}

tenon_status pass(Map map, Node& node, Run& run, uint32_t edge, tenon_err* err) {
  if (!run.wants(node.edges()[edge])) return TENON_OK;
  Tensor gradient;
  TENON_TRY(apply(map, node, Tensor::borrow(node.variables()->arriving), &gradient, err));
  return run.deliver(node, node.edges()[edge], std::move(gradient), err);
}

tenon_status backward_of_take(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kPlace, node, run, 0, err);
}
tenon_status backward_of_place(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kTake, node, run, 0, err);
}
tenon_status backward_of_clear(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kClear, node, run, 0, err);
}
tenon_status backward_of_write(Node& node, Run& run, tenon_err* err) {
  TENON_TRY(pass(Map::kClear, node, run, 0, err));
  return pass(Map::kTake, node, run, 1, err);
}
void clear_nothing(Node&) {}

constexpr NodeType kTake = {[](const Node&) { return "view of a base that was written"; },
                            backward_of_take, clear_nothing};
constexpr NodeType kPlace = {[](const Node&) { return "gradient of a view"; }, backward_of_place,
                             clear_nothing};
constexpr NodeType kClear = {[](const Node&) { return "gradient of a write"; }, backward_of_clear,
                             clear_nothing};
constexpr NodeType kWrite = {[](const Node&) { return "write into a view"; }, backward_of_write,
                             clear_nothing};

void set_edge(Node& node, uint32_t index, Variable* to, uint32_t shape) {
  Edge& edge = node.edges()[index];
  edge.argument = index;
  edge.shape = shape;
  connect(node, edge, to);
}

Node* new_map_node(Map map, Node& like, Variable* input) {
  const NodeType& type = map == Map::kTake ? kTake : map == Map::kPlace ? kPlace : kClear;
  const Window& window = window_of(like);
  Node* node = new_node(type, nullptr, 1, 1, window.bytes());
  if (!node) return nullptr;
  std::memcpy(node->payload(), &window, window.bytes());
  const Window& copy = window_of(*node);
  set_edge(*node, 0, input,
           map == Map::kTake    ? offset_in(*node, copy.base())
           : map == Map::kPlace ? offset_in(*node, copy.view())
                                : 0);
  return node;
}

}  // namespace

bool is_injective(const tenon_tensor& tensor) {
  // Ordered by stride, each axis must step over all that the smaller ones reach.
  std::pair<int64_t, int64_t> axes[TENON_MAX_NDIM];  // stride, size
  int32_t count = 0;
  if (tensor.numel <= 1) return true;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis)
    if (tensor.shape[axis] > 1)
      axes[count++] = {tensor.strides[axis] < 0 ? -tensor.strides[axis] : tensor.strides[axis],
                       tensor.shape[axis]};
  std::sort(axes, axes + count);
  int64_t reach = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (axes[i].first <= reach) return false;
    reach += axes[i].first * (axes[i].second - 1);
  }
  return true;
}

tenon_status check_window(const char* operation, const tenon_tensor& view, const tenon_tensor& base,
                          tenon_err* err) {
  const char* reason = nullptr;
  if (view.dtype != base.dtype)
    reason = "it has another dtype than its base";
  else if (!(base.flags & TENON_TENSOR_CONTIGUOUS))
    reason = "its base is not contiguous";
  else if (!is_injective(view))
    reason = "some of its elements share memory";
  if (!reason) return TENON_OK;
  return fail(err, TENON_UNSUPPORTED,
              "[%s] gradients cannot follow writes through this view: %s; use the out-of-place "
              "form, or take the view "
              "again after the write",
              operation, reason);
}

Node* new_take(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base) {
  Node* node = new_window_node(kTake, 1, view, base);
  if (node) set_edge(*node, 0, of_base, offset_in(*node, window_of(*node).base()));
  return node;
}

Node* new_write(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                Variable* of_view) {
  Node* node = new_window_node(kWrite, 2, view, base);
  if (!node) return nullptr;
  set_edge(*node, 0, of_base, 0);
  set_edge(*node, 1, of_view, offset_in(*node, window_of(*node).view()));
  return node;
}

}  // namespace tenon::autograd
