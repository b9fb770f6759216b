// SPDX-License-Identifier: Apache-2.0
#include "view_nodes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine.hpp"
#include "operators.hpp"

namespace tenon::autograd {
namespace {

// The layout of a view in its base. Every node of this file stores behind its edges: a ViewLayout,
// the Shape of the base, the Shape of the view, the strides of the view, the strides of the base.
struct ViewLayout {
  int64_t offset;       // elements from the base's lowest address to the view's first element
  int64_t base_offset;  // elements from the base's lowest address to the base's first element
  int64_t extent;       // elements from the base's lowest address to its highest; 0: contiguous
  uint32_t base_bytes;  // size of the base's Shape
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
    return sizeof(ViewLayout) + base_bytes + view_bytes + sizeof(int64_t) * dims;
  }
};

// The linear maps between a base and a view of it. kSliceBackward is the gradient of kSlice: it
// writes the view's gradient into a base of zeros. kZeroSlice sets the view's elements of a base to
// zero.
enum class Map { kSlice, kSliceBackward, kZeroSlice };

const ViewLayout& layout_of(Node& node) { return *static_cast<const ViewLayout*>(node.payload()); }

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

// Finds the memory extent of a base that is not contiguous, because its gradient gets the same
// layout.
void measure_memory(const tenon_tensor& base, ViewLayout& layout) {
  int64_t low = 0, high = 0;
  for (int32_t axis = 0; axis < base.ndim; ++axis) {
    int64_t reach = (base.shape[axis] - 1) * base.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  layout.base_offset = -low;
  layout.offset -= low;
  layout.extent = base.numel ? high - low + 1 : 0;
}

Node* new_layout_node(const NodeType& type, uint32_t nedges, const tenon_tensor& view,
                      const tenon_tensor& base) {
  ViewLayout header = {
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
  auto& layout = const_cast<ViewLayout&>(layout_of(*node));
  layout = header;
  write_shape(base, layout.base());
  write_shape(view, layout.view());
  std::copy_n(view.strides, view.ndim, const_cast<int64_t*>(layout.strides()));
  std::copy_n(base.strides, base.ndim, const_cast<int64_t*>(layout.base_strides()));
  return node;
}

// A node for `map` with the layout of `like`.
Node* new_map_node(Map map, Node& like, Variable* input);

// The base as a view of `memory`, a contiguous tensor.
tenon_status base_view(const ViewLayout& layout, const Tensor& memory, Tensor* out,
                       tenon_err* err) {
  *out = memory;
  if (layout.extent == 0) return TENON_OK;
  const Shape& shape = layout.base();
  tenon_tensor* base;
  TENON_TRY(host->tensor_view(memory.get(), memory->dtype, shape.ndim, shape.sizes,
                              layout.base_strides(), layout.base_offset, &base, err));
  *out = Tensor::adopt(base);
  return TENON_OK;
}

// The view as a view of `memory`. If `once`, axes of stride 0 get length 1, so that elements which
// such axes repeat occur once.
tenon_status slice(const ViewLayout& layout, const Tensor& memory, bool once, Tensor* out,
                   tenon_err* err) {
  const Shape& shape = layout.view();
  int64_t sizes[TENON_MAX_NDIM];
  for (int32_t axis = 0; axis < shape.ndim; ++axis)
    sizes[axis] = once && layout.strides()[axis] == 0 ? 1 : shape.sizes[axis];
  tenon_tensor* view;
  TENON_TRY(host->tensor_view(memory.get(), memory->dtype, shape.ndim, sizes, layout.strides(),
                              layout.offset, &view, err));
  *out = Tensor::adopt(view);
  return TENON_OK;
}

tenon_status new_memory(const ViewLayout& layout, const tenon_tensor& like, Tensor* out,
                        tenon_err* err) {
  const Shape& shape = layout.base();
  return layout.extent ? full(1, &layout.extent, 0.0, like.dtype, like.device, out, err)
                       : full(shape.ndim, shape.sizes, 0.0, like.dtype, like.device, out, err);
}

// Copies a tensor of the base's shape into memory with the base's layout.
tenon_status lay_out(const ViewLayout& layout, const Tensor& in, Tensor* memory, tenon_err* err) {
  if (layout.extent == 0) return clone(in, memory, err);
  TENON_TRY(new_memory(layout, *in.get(), memory, err));
  Tensor base;
  TENON_TRY(base_view(layout, *memory, &base, err));
  return copy_into(base.get(), in, err);
}

// Sums over the axes of stride 0, which repeat elements.
tenon_status sum_repeats(const ViewLayout& layout, const Tensor& in, Tensor* out, tenon_err* err) {
  int64_t axes[TENON_MAX_NDIM];
  uint32_t count = 0;
  for (int32_t axis = 0; axis < in->ndim; ++axis)
    if (layout.strides()[axis] == 0 && in->shape[axis] != 1) axes[count++] = axis;
  if (count) return sum(in, axes, count, true, out, err);
  *out = in;
  return TENON_OK;
}

// A meta tensor of this shape.
tenon_status describe(const Shape& shape, int32_t dtype, Tensor* out, tenon_err* err) {
  tenon_tensor* made;
  TENON_TRY(host->tensor_create(TENON_DEVICE_META, dtype, shape.ndim, shape.sizes, &made, err));
  *out = Tensor::adopt(made);
  return TENON_OK;
}

tenon_status compute(Map map, const ViewLayout& layout, const Tensor& in, Tensor* out,
                     tenon_err* err) {
  RecordingScope off(false);
  if (in->device == TENON_DEVICE_META)
    return describe(map == Map::kSlice ? layout.view() : layout.base(), in->dtype, out, err);
  Tensor memory = in, view;
  switch (map) {
    case Map::kSlice:
      if (layout.extent || !(in->flags & TENON_TENSOR_CONTIGUOUS))
        TENON_TRY(lay_out(layout, in, &memory, err));
      return slice(layout, memory, false, out, err);
    case Map::kSliceBackward: {
      Tensor distinct;
      TENON_TRY(sum_repeats(layout, in, &distinct, err));
      TENON_TRY(new_memory(layout, *in.get(), &memory, err));
      TENON_TRY(slice(layout, memory, true, &view, err));
      TENON_TRY(copy_into(view.get(), distinct, err));
      return base_view(layout, memory, out, err);
    }
    case Map::kZeroSlice:
      TENON_TRY(lay_out(layout, in, &memory, err));
      TENON_TRY(slice(layout, memory, true, &view, err));
      TENON_TRY(fill(view.get(), 0.0, err));
      return base_view(layout, memory, out, err);
  }
  return TENON_OK;
}

// Applies a map with the layout of `node`, and records it if gradients are to be differentiated.
tenon_status apply(Map map, Node& node, const Tensor& in, Tensor* out, tenon_err* err) {
  TENON_TRY(compute(map, layout_of(node), in, out, err));
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

tenon_status backward_of_slice(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kSliceBackward, node, run, 0, err);
}
tenon_status backward_of_slice_backward(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kSlice, node, run, 0, err);
}
tenon_status backward_of_zero_slice(Node& node, Run& run, tenon_err* err) {
  return pass(Map::kZeroSlice, node, run, 0, err);
}
tenon_status backward_of_write(Node& node, Run& run, tenon_err* err) {
  TENON_TRY(pass(Map::kZeroSlice, node, run, 0, err));
  return pass(Map::kSlice, node, run, 1, err);
}
void clear_nothing(Node&) {}

const char* name_of_slice(const Node& node) {
  auto* info = static_cast<const OperatorInfo*>(node.detail);
  return info ? info->name : "view of a base that was written";
}

constexpr NodeType kSlice = {name_of_slice, backward_of_slice, clear_nothing};
constexpr NodeType kSliceBackward = {[](const Node&) { return "gradient of a view"; },
                                     backward_of_slice_backward, clear_nothing};
constexpr NodeType kZeroSlice = {[](const Node&) { return "gradient of a write"; },
                                 backward_of_zero_slice, clear_nothing};
constexpr NodeType kViewWrite = {[](const Node&) { return "write into a view"; }, backward_of_write,
                                 clear_nothing};

void set_edge(Node& node, uint32_t index, Variable* to, uint32_t shape) {
  Edge& edge = node.edges()[index];
  edge.argument = index;
  edge.shape = shape;
  connect(node, edge, to);
}

Node* new_map_node(Map map, Node& like, Variable* input) {
  const NodeType& type = map == Map::kSlice           ? kSlice
                         : map == Map::kSliceBackward ? kSliceBackward
                                                      : kZeroSlice;
  const ViewLayout& layout = layout_of(like);
  Node* node = new_node(type, nullptr, 1, 1, layout.bytes());
  if (!node) return nullptr;
  std::memcpy(node->payload(), &layout, layout.bytes());
  const ViewLayout& copy = layout_of(*node);
  set_edge(*node, 0, input,
           map == Map::kSlice           ? offset_in(*node, copy.base())
           : map == Map::kSliceBackward ? offset_in(*node, copy.view())
                                        : 0);
  return node;
}

// True if no two elements share memory. For reads, elements repeated by a stride of 0 are allowed.
bool is_injective(const tenon_tensor& tensor, ViewUse use) {
  // In the order of their strides, each axis must step over all elements of the axes before it.
  std::pair<int64_t, int64_t> axes[TENON_MAX_NDIM];  // stride, size
  int32_t count = 0;
  if (tensor.numel <= 1 || tensor.flags & TENON_TENSOR_CONTIGUOUS) return true;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    int64_t stride = std::abs(tensor.strides[axis]);
    if (stride == 0 && use == ViewUse::kRead) continue;
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

tenon_status check_view(const char* operation, const tenon_tensor& view, const tenon_tensor& base,
                        ViewUse use, tenon_err* err) {
  const char* reason = nullptr;
  if (view.dtype != base.dtype)
    reason = "it has another dtype than its base";
  else if (!is_injective(base, ViewUse::kWrite))
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

Node* new_view_node(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                    const OperatorInfo* info) {
  Node* node = new_layout_node(kSlice, 1, view, base);
  if (!node) return nullptr;
  node->detail = info;
  set_edge(*node, 0, of_base, offset_in(*node, layout_of(*node).base()));
  return node;
}

Node* new_view_write_node(const tenon_tensor& view, const tenon_tensor& base, Variable* of_base,
                          Variable* of_view) {
  Node* node = new_layout_node(kViewWrite, 2, view, base);
  if (!node) return nullptr;
  set_edge(*node, 0, of_base, 0);
  set_edge(*node, 1, of_view, offset_in(*node, layout_of(*node).view()));
  return node;
}

}  // namespace tenon::autograd
