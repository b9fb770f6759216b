// SPDX-License-Identifier: Apache-2.0
#include "window.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine.hpp"
#include "operators.hpp"

namespace tenon::autograd {
namespace {

// Behind the edges of every node of this file: Window, Shape of the base, Shape of the window,
// strides of the window, strides of the base.
struct Window {
  int64_t offset;       // elements from the first in memory to the window's first
  int64_t base_offset;  // likewise of the base
  int64_t extent;       // elements from the base's first in memory to its last; 0: it is contiguous
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
  const int64_t* base_strides() const { return strides() + view().ndim; }
  uint64_t bytes() const {
    auto dims = static_cast<uint64_t>(view().ndim) + static_cast<uint64_t>(base().ndim);
    return sizeof(Window) + base_bytes + view_bytes + sizeof(int64_t) * dims;
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

// Where the elements of a base lie that is not contiguous: gradients are laid out like it.
void measure_memory(const tenon_tensor& base, Window& window) {
  int64_t low = 0, high = 0;
  for (int32_t axis = 0; axis < base.ndim; ++axis) {
    int64_t reach = (base.shape[axis] - 1) * base.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  window.base_offset = -low;
  window.offset -= low;
  window.extent = base.numel ? high - low + 1 : 0;
}

Node* new_window_node(const NodeType& type, uint32_t nedges, const tenon_tensor& view,
                      const tenon_tensor& base) {
  Window header = {
      .offset = (byte_position(view) - byte_position(base)) / host->dtype_size(base.dtype),
      .base_offset = 0,
      .extent = 0,
      .base_bytes = Shape::bytes(base.ndim),
      .view_bytes = Shape::bytes(view.ndim)};
  if (!(base.flags & TENON_TENSOR_CONTIGUOUS)) measure_memory(base, header);
  uint64_t bytes = sizeof header + header.base_bytes + header.view_bytes +
                   8 * (static_cast<uint64_t>(view.ndim) + static_cast<uint64_t>(base.ndim));
  Node* node = new_node(type, nullptr, 1, nedges, bytes);
  if (!node) return nullptr;
  auto& window = const_cast<Window&>(window_of(*node));
  window = header;
  write_shape(base, window.base());
  write_shape(view, window.view());
  std::copy_n(view.strides, view.ndim, const_cast<int64_t*>(window.strides()));
  std::copy_n(base.strides, base.ndim, const_cast<int64_t*>(window.base_strides()));
  return node;
}

// Node of a map with the same window as `like`.
Node* new_map_node(Map map, Node& like, Variable* input);

// What of `memory`, a contiguous tensor, the base shows; shares it.
tenon_status open_base(const Window& window, const Tensor& memory, Tensor* out, tenon_err* err) {
  *out = memory;
  if (window.extent == 0) return TENON_OK;
  const Shape& shape = window.base();
  tenon_tensor* base;
  TENON_TRY(host->tensor_view(memory.get(), memory->dtype, shape.ndim, shape.sizes,
                              window.base_strides(), window.base_offset, &base, err));
  *out = Tensor::adopt(base);
  return TENON_OK;
}

// What the window shows of it. `once`: elements that it shows repeatedly, by a stride of 0, only
// once.
tenon_status open_window(const Window& window, const Tensor& memory, bool once, Tensor* out,
                         tenon_err* err) {
  const Shape& shape = window.view();
  int64_t sizes[TENON_MAX_NDIM];
  for (int32_t axis = 0; axis < shape.ndim; ++axis)
    sizes[axis] = once && window.strides()[axis] == 0 ? 1 : shape.sizes[axis];
  tenon_tensor* view;
  TENON_TRY(host->tensor_view(memory.get(), memory->dtype, shape.ndim, sizes, window.strides(),
                              window.offset, &view, err));
  *out = Tensor::adopt(view);
  return TENON_OK;
}

tenon_status new_memory(const Window& window, const tenon_tensor& like, Tensor* out,
                        tenon_err* err) {
  const Shape& shape = window.base();
  return window.extent ? full(1, &window.extent, 0.0, like.dtype, like.device, out, err)
                       : full(shape.ndim, shape.sizes, 0.0, like.dtype, like.device, out, err);
}

// A tensor of the base's shape, brought into memory laid out like the base's.
tenon_status lay_out(const Window& window, const Tensor& in, Tensor* memory, tenon_err* err) {
  if (window.extent == 0) return clone(in, memory, err);
  TENON_TRY(new_memory(window, *in.get(), memory, err));
  Tensor base;
  TENON_TRY(open_base(window, *memory, &base, err));
  return copy_into(base.get(), in, err);
}

// The sum over what the window shows repeatedly.
tenon_status sum_repeats(const Window& window, const Tensor& in, Tensor* out, tenon_err* err) {
  int64_t axes[TENON_MAX_NDIM];
  uint32_t count = 0;
  for (int32_t axis = 0; axis < in->ndim; ++axis)
    if (window.strides()[axis] == 0 && in->shape[axis] != 1) axes[count++] = axis;
  if (count) return sum(in, axes, count, true, out, err);
  *out = in;
  return TENON_OK;
}

// Meta tensors have a shape and nothing else.
tenon_status describe(const Shape& shape, int32_t dtype, Tensor* out, tenon_err* err) {
  tenon_tensor* made;
  TENON_TRY(host->tensor_create(TENON_DEVICE_META, dtype, shape.ndim, shape.sizes, &made, err));
  *out = Tensor::adopt(made);
  return TENON_OK;
}

tenon_status compute(Map map, const Window& window, const Tensor& in, Tensor* out, tenon_err* err) {
  RecordingScope off(false);
  if (in->device == TENON_DEVICE_META)
    return describe(map == Map::kTake ? window.view() : window.base(), in->dtype, out, err);
  Tensor memory = in, view;
  switch (map) {
    case Map::kTake:
      if (window.extent || !(in->flags & TENON_TENSOR_CONTIGUOUS))
        TENON_TRY(lay_out(window, in, &memory, err));
      return open_window(window, memory, false, out, err);
    case Map::kPlace: {
      Tensor distinct;
      TENON_TRY(sum_repeats(window, in, &distinct, err));
      TENON_TRY(new_memory(window, *in.get(), &memory, err));
      TENON_TRY(open_window(window, memory, true, &view, err));
      TENON_TRY(copy_into(view.get(), distinct, err));
      return open_base(window, memory, out, err);
    }
    case Map::kClear:
      TENON_TRY(lay_out(window, in, &memory, err));
      TENON_TRY(open_window(window, memory, true, &view, err));
      TENON_TRY(fill(view.get(), 0.0, err));
      return open_base(window, memory, out, err);
  }
  return TENON_OK;
}

// Apply a map with the window of `node`, and record that if gradients are to be differentiated.
tenon_status apply(Map map, Node& node, const Tensor& in, Tensor* out, tenon_err* err) {
  TENON_TRY(compute(map, window_of(node), in, out, err));
  Variable* input = is_recording() ? variable_of(in.get()) : nullptr;
  if (!input) return TENON_OK;
  Node* recorded = new_map_node(map, node, input);
  if (!recorded) return fail_host_memory(err);
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

const char* name_of_take(const Node& node) {
  auto* info = static_cast<const OperatorInfo*>(node.detail);
  return info ? info->name : "view of a base that was written";
}

constexpr NodeType kTake = {name_of_take, backward_of_take, clear_nothing};
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

// Do no two elements share memory? For reading, those may that a stride of 0 repeats.
bool is_injective(const tenon_tensor& tensor, WindowUse use) {
  // Ordered by stride, each axis must step over all that the smaller ones reach.
  std::pair<int64_t, int64_t> axes[TENON_MAX_NDIM];  // stride, size
  int32_t count = 0;
  if (tensor.numel <= 1 || tensor.flags & TENON_TENSOR_CONTIGUOUS) return true;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    int64_t stride = std::abs(tensor.strides[axis]);
    if (stride == 0 && use == WindowUse::kRead) continue;
    if (tensor.shape[axis] > 1) axes[count++] = {stride, tensor.shape[axis]};
  }
  std::sort(axes, axes + count);
  int64_t reach = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (axes[i].first <= reach) return false;
    reach += axes[i].first * (axes[i].second - 1);
  }
  return true;
}

}  // namespace

tenon_status check_window(const char* operation, const tenon_tensor& view, const tenon_tensor& base,
                          WindowUse use, tenon_err* err) {
  const char* reason = nullptr;
  if (view.dtype != base.dtype)
    reason = "it has another dtype than its base";
  else if (!is_injective(base, WindowUse::kWrite))
    reason = "some elements of its base share memory";
  else if (!is_injective(view, use))
    reason = "some of its elements share memory";
  if (!reason) return TENON_OK;
  return fail_format(
      err, TENON_UNSUPPORTED,
      "[%s] gradients cannot follow writes through this view: %s; use the out-of-place "
      "form, or take the view "
      "again after the write",
      operation, reason);
}

Node* new_take(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
               const OperatorInfo* info) {
  Node* node = new_window_node(kTake, 1, view, base);
  if (!node) return nullptr;
  node->detail = info;
  set_edge(*node, 0, of_base, offset_in(*node, window_of(*node).base()));
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
