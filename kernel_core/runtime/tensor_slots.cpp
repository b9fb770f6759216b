// SPDX-License-Identifier: Apache-2.0
// Tensors as plugins see them.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/tensor.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {

namespace slots {

tenon_status tensor_wrap(tenon_device_id device_id, int32_t dtype, int32_t ndim,
                         const int64_t* shape, const int64_t* strides, void* data, uint32_t flags,
                         tenon_drop_fn drop, void* user, tenon_tensor** out, tenon_err* err) {
  Device* device;
  int64_t numel;
  TENON_TRY(open_device(device_id, &device, err));
  TENON_TRY(check_dtype(dtype, err));
  TENON_TRY(count_elements(ndim, shape, &numel, err));
  if (!data && numel > 0)
    return core::fail(err, TENON_INVALID_ARGUMENT, "expected memory for %lld elements, got NULL",
                      static_cast<long long>(numel));
  int64_t own_strides[TENON_MAX_NDIM];
  if (!strides) contiguous_strides(ndim, shape, own_strides), strides = own_strides;
  Extent extent =
      extent_of(ndim, shape, strides);  // create_view refuses strides that reach too far

  // A view of a base that starts at the lowest byte, whose storage it gets as its own.
  TensorImpl base{};
  base.storage = &base.own;
  base.data = data;
  base.device = device->id;
  base.dl_device_type = device->info.dl_device_type;
  base.dl_device_id = static_cast<int32_t>(TENON_DEVICE_INDEX(device->id));
  base.flags = static_cast<uint16_t>(flags & TENON_TENSOR_READONLY);
  uint64_t size = dtype_size(dtype);
  base.own.data =
      data ? static_cast<char*>(data) + static_cast<uint64_t>(extent.low) * size : nullptr;
  base.own.bytes =
      (static_cast<uint64_t>(extent.high) - static_cast<uint64_t>(extent.low) + 1) * size;
  TensorImpl* tensor;
  TENON_TRY(create_view(base, dtype, ndim, shape, strides, 0, &tensor, err));
  Storage* storage = make_own_storage(tensor);
  storage->data = base.own.data;
  storage->bytes = base.own.bytes;
  storage->drop = drop;
  storage->drop_user = user;
  *out = tensor;
  return TENON_OK;
}

tenon_status tensor_view(tenon_tensor* base, int32_t dtype, int32_t ndim, const int64_t* shape,
                         const int64_t* strides, int64_t offset, tenon_tensor** out,
                         tenon_err* err) {
  TENON_TRY(check_dtype(dtype, err));
  TensorImpl* tensor;
  TENON_TRY(create_view(*impl(base), dtype, ndim, shape, strides, offset, &tensor, err));
  *out = tensor;
  return TENON_OK;
}

void tensor_retain(tenon_tensor* tensor) { retain(impl(tensor)); }
void tensor_release(tenon_tensor* tensor) {
  if (tensor) release(impl(tensor));
}

uint32_t tensor_use_count(const tenon_tensor* tensor) {
  return impl(tensor)->references.load(std::memory_order_acquire);
}

tenon_tensor* tensor_base(const tenon_tensor* tensor) { return base_of(*impl(tensor)); }

const void* tensor_storage(const tenon_tensor* tensor) { return impl(tensor)->storage; }
uint32_t tensor_storage_use_count(const tenon_tensor* tensor) {
  const Storage* storage = impl(tensor)->storage;
  return storage ? storage->references.load(std::memory_order_acquire) : 0;
}
uint64_t tensor_storage_bytes(const tenon_tensor* tensor) {
  return impl(tensor)->storage ? impl(tensor)->storage->bytes : 0;
}

uint32_t tensor_version(const tenon_tensor* tensor) {
  const Storage* storage = impl(tensor)->storage;
  return storage ? storage->version.load(std::memory_order_relaxed) : 0;
}

void tensor_bump_version(tenon_tensor* tensor) { bump_version(impl(tensor)); }

tenon_status tensor_assign(tenon_tensor* tensor, tenon_tensor* source, tenon_err* err) {
  // Make a private view of the source, then exchange what the two describe.
  TensorImpl* fresh;
  const TensorImpl& from = *impl(source);
  TENON_TRY(create_view(from, from.dtype, from.ndim, from.shape, from.strides, 0, &fresh, err));
  TensorImpl* to = impl(tensor);
  bool to_inline = to->shape == to->inline_dims, fresh_inline = fresh->shape == fresh->inline_dims;
  std::swap_ranges(to->inline_dims, to->inline_dims + 2 * kInlineDims, fresh->inline_dims);
  std::swap(static_cast<tenon_tensor&>(*to), static_cast<tenon_tensor&>(*fresh));
  std::swap(to->layers, fresh->layers);  // history stays with the handle
  std::swap(to->storage, fresh->storage);
  std::swap(to->counted, fresh->counted);
  constexpr uint32_t kBase = 1u << kBaseSlot;  // of what it was a view of it is none any more
  std::swap(to->extensions[kBaseSlot], fresh->extensions[kBaseSlot]);
  fresh->has_extensions = to->has_extensions & kBase;
  to->has_extensions &= ~kBase;
  if (fresh_inline) {
    to->shape = to->inline_dims;
    to->strides = to->inline_dims + to->ndim;
  }
  if (to_inline) {
    fresh->shape = fresh->inline_dims;
    fresh->strides = fresh->inline_dims + fresh->ndim;
  }
  release(fresh);
  return TENON_OK;
}

void tensor_set_layer(tenon_tensor* tensor, int32_t layer, int32_t on) {
  uint32_t bit = 1u << layer;
  tensor->layers = static_cast<uint8_t>(on ? tensor->layers | bit : tensor->layers & ~bit);
}

tenon_tensor** list_create(uint32_t count) {
  return static_cast<tenon_tensor**>(std::calloc(count ? count : 1, sizeof(tenon_tensor*)));
}

void list_release(tenon_tensor** list, uint32_t count) {
  if (!list) return;
  for (uint32_t i = 0; i < count; ++i) tensor_release(list[i]);
  std::free(list);
}

}  // namespace slots
}  // namespace tenon::core
