// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/memory/allocator.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/thread_cache.hpp"
#include "kernel_core/runtime/stream.hpp"
#include "kernel_core/runtime/tensor_extension.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

// Free blocks of tensors, kept per thread. Plain data, so that access is one thread-local read; the
// guard below returns the blocks when the thread ends.
constinit thread_local struct {
  void* head = nullptr;
  uint32_t room = 0;  // for so many blocks more; none before the guard exists and after it has gone
} free_blocks;

// A program may keep many views for some time and drop them together, step after step; so many
// blocks are 16 MiB.
struct ThreadGuard {
  ThreadGuard() { free_blocks.room = 1 << 16; }
  ~ThreadGuard() {
    free_blocks.room = 0;
    while (void* block = free_blocks.head) {
      std::memcpy(&free_blocks.head, block, sizeof(void*));
      std::free(block);
    }
  }
};

void* take_block() {
  if (void* block = free_blocks.head) [[likely]] {
    std::memcpy(&free_blocks.head, block, sizeof(void*));
    ++free_blocks.room;
    return block;
  }
  return std::aligned_alloc(64, sizeof(TensorImpl));
}

void give_block(void* block) {
  if (free_blocks.room == 0) [[unlikely]] {
    static thread_local ThreadGuard guard;
    if (free_blocks.room == 0) return std::free(block);
  }
  std::memcpy(block, &free_blocks.head, sizeof(void*));
  free_blocks.head = block;
  --free_blocks.room;
}

// Data of up to so many bytes lie in one block of the device with their tensor, where threads have
// caches of its blocks. More would waste what a size class is larger than a power of two.
constexpr uint64_t kMaxOwnData = 1024;

// Inline, as is create_tensor's use of it: making a tensor is most of what a call on a small one
// costs.
[[gnu::always_inline]] inline void begin_tensor(TensorImpl* tensor, int32_t ndim, int64_t* dims,
                                                uint16_t flags) {
  tensor->shape = dims;
  tensor->strides = dims + ndim;  // of few dimensions in the same line
  tensor->ndim = ndim;
  tensor->byte_offset = 0;
  tensor->flags = flags;
  tensor->layers = 0;
  tensor->reserved = 0;
  new (&tensor->references) std::atomic<uint32_t>(1);
  tensor->has_extensions = 0;
  tensor->has_own = false;
  tensor->counted = nullptr;
}

[[gnu::always_inline]] inline TensorImpl* new_tensor_block(int32_t ndim) {
  auto* tensor = static_cast<TensorImpl*>(take_block());
  if (!tensor) return nullptr;
  int64_t* dims = tensor->inline_dims;
  if (ndim > kInlineDims) [[unlikely]] {
    dims = static_cast<int64_t*>(std::malloc(2 * sizeof(int64_t) * static_cast<size_t>(ndim)));
    if (!dims) return give_block(tensor), nullptr;
  }
  begin_tensor(tensor, ndim, dims, 0);
  return tensor;
}

void set_dtype_and_device(TensorImpl* tensor, int32_t dtype, const Device& device) {
  tensor->dtype = static_cast<uint8_t>(dtype);
  tensor->dl_dtype = kDtypes[dtype].dl;
  tensor->device = device.id;
  tensor->dl_device_type = device.info.dl_device_type;
  tensor->dl_device_id = static_cast<int32_t>(TENON_DEVICE_INDEX(device.id));
}

// Tensors of the meta device have no memory; what they would have is counted, so that programs that run there say what they
// need. A storage that no tensor shows stands for it, for as long as a tensor or a view of it lives.
[[gnu::noinline, gnu::cold]] void count_on_meta(Device& device, TensorImpl* tensor,
                                                uint64_t bytes) {
  auto* counted = new (std::nothrow) Storage;
  if (!counted) return;  // nothing but a statistic is lost
  counted->bytes = bytes;
  counted->device = &device;
  tensor->counted = counted;
  DeviceMemory::of(device).usage().allocated(bytes);
}

[[gnu::noinline, gnu::cold]] void count_with(const TensorImpl& base, TensorImpl* view) {
  view->counted = base.counted;
  increment(base.counted->references);
}

[[gnu::noinline, gnu::cold]] void uncount_on_meta(TensorImpl* tensor) noexcept {
  Storage* counted = tensor->counted;
  if (!drop_reference(counted->references)) return;
  DeviceMemory::of(*counted->device).usage().freed(counted->bytes);
  delete counted;
}

void free_block(Storage& own) {
  TensorImpl* tensor = reinterpret_cast<TensorImpl*>(&own + 1) - 1;  // `own` is its last member
  if (own.has_data) return deallocate(*own.device, tensor, own.bytes, nullptr, sizeof(TensorImpl));
  give_block(tensor);
}

// Ends a storage whose last reference is gone.
[[gnu::noinline]] void end_storage(Storage& storage) noexcept {
  if (storage.device && !storage.has_data)
    deallocate(*storage.device, storage.data, storage.bytes, storage.stream);
  else if (!storage.device && storage.drop)
    storage.drop(storage.drop_user);
  if (drop_reference(storage.block_holders)) free_block(storage);
}

[[gnu::noinline, gnu::cold]] void drop_what_is_rare(TensorImpl* tensor) noexcept {
  drop_extensions(tensor);
  if (tensor->shape != tensor->inline_dims) std::free(tensor->shape);
}

[[gnu::always_inline]] inline tenon_status make_tensor(Device& device, int32_t dtype, int32_t ndim,
                                                       const int64_t* shape, int64_t numel,
                                                       TensorImpl** out, tenon_err* err) {
  uint64_t bytes = static_cast<uint64_t>(numel) * dtype_size(dtype);
  bool has_data = bytes - 1 < kMaxOwnData && ndim <= kInlineDims &&
                  device.cache_slot.load(std::memory_order_relaxed) != 0;
  TensorImpl* tensor;
  if (has_data) [[likely]] {
    ThreadCache* cache = find_thread_cache(device);
    void* block = cache ? cache->take(bytes, sizeof(TensorImpl)) : nullptr;
    if (!block) [[unlikely]]
      TENON_TRY(allocate(device, bytes, nullptr, &block, err, sizeof(TensorImpl)));
    tensor = static_cast<TensorImpl*>(block);
    begin_tensor(tensor, ndim, tensor->inline_dims, TENON_TENSOR_CONTIGUOUS);
  } else if (!(tensor = new_tensor_block(ndim))) {
    return fail_host_memory(err);
  }
  int64_t stride = 1;
  for (int32_t axis = ndim - 1; axis >= 0; --axis) {
    tensor->shape[axis] = shape[axis];
    tensor->strides[axis] = stride;
    stride *= shape[axis];
  }
  if (numel == 0) contiguous_strides(ndim, shape, tensor->strides);
  set_dtype_and_device(tensor, dtype, device);
  tensor->numel = numel;
  tensor->flags = TENON_TENSOR_CONTIGUOUS;
  tensor->data = nullptr;
  tensor->storage = nullptr;
  if (device.id != TENON_DEVICE_META) {
    Storage* storage = make_own_storage(tensor);
    storage->device = &device;
    storage->bytes = bytes;
    if (has_data) [[likely]] {
      storage->has_data = true;
      storage->data = tensor + 1;
    } else if (bytes != 0) {
      storage->stream = current_stream(device);
      tenon_status status = allocate(device, bytes, storage->stream, &storage->data, err);
      if (status != TENON_OK) return destroy_tensor(tensor), status;
    }
    tensor->data = storage->data;
  } else if (bytes != 0) {
    count_on_meta(device, tensor, bytes);
  }
  *out = tensor;
  return TENON_OK;
}

}  // namespace

tenon_status create_tensor(Device& device, int32_t dtype, int32_t ndim, const int64_t* shape,
                           TensorImpl** out, tenon_err* err) {
  int64_t numel = 1;
  for (int32_t axis = ndim - 1; axis >= 0; --axis) numel *= shape[axis];
  return make_tensor(device, dtype, ndim, shape, numel, out, err);
}

tenon_status slots::tensor_create(tenon_device_id id, int32_t dtype, int32_t ndim,
                                  const int64_t* shape, tenon_tensor** out, tenon_err* err) {
  Device* device;
  int64_t numel;
  TENON_TRY(open_device(id, &device, err));
  TENON_TRY(check_dtype(dtype, err));
  TENON_TRY(count_elements(ndim, shape, &numel, err));
  TensorImpl* tensor = nullptr;
  TENON_TRY(make_tensor(*device, dtype, ndim, shape, numel, &tensor, err));
  *out = tensor;
  return TENON_OK;
}

tenon_status slots::tensor_create_composed(tenon_device_id id, int32_t dtype, int32_t ndim,
                                           const int64_t* shape, int32_t layer, tenon_tensor** out,
                                           tenon_err* err) {
  Device* device;
  int64_t numel;
  TENON_TRY(open_device(id, &device, err));
  TENON_TRY(check_dtype(dtype, err));
  TENON_TRY(count_elements(ndim, shape, &numel, err));
  if (layer < 0 || layer >= kTensorLayers || !(layer_table.registered.load() >> layer & 1))
    return core::fail(err, TENON_INVALID_ARGUMENT,
                      "a composed tensor: expected a registered layer in [0, %d), got %d",
                      kTensorLayers, layer);
  refuse_composed_below_layers();
  TensorImpl* tensor = new_tensor_block(ndim);
  if (!tensor) return fail_host_memory(err);
  std::copy_n(shape, ndim, tensor->shape);
  contiguous_strides(ndim, shape, tensor->strides);
  set_dtype_and_device(tensor, dtype, *device);
  tensor->numel = numel;
  tensor->flags = TENON_TENSOR_COMPOSED;
  tensor->layers = static_cast<uint8_t>(1u << layer);
  tensor->data = nullptr;
  Storage* storage =
      make_own_storage(tensor);  // of no bytes: a version, and a view is never inside
  storage->drop = nullptr;
  storage->drop_user = nullptr;
  *out = tensor;
  return TENON_OK;
}

[[gnu::cold]] static tenon_status fail_view(const TensorImpl& base, TensorImpl* view,
                                            int64_t offset, tenon_err* err) {
  view->storage = nullptr;
  TensorRef owner(view);
  if (base.flags & TENON_TENSOR_COMPOSED)
    return fail(err, TENON_UNSUPPORTED,
                "a view: expected a tensor with memory, got one of shape %s that is composed of "
                "others; use to_dense() first",
                shape_text(base).c_str());
  long long at = offset, bytes = base.storage ? static_cast<int64_t>(base.storage->bytes) : 0;
  int64_t numel;
  TENON_TRY(count_elements(view->ndim, view->shape, &numel, err));
  return fail(err, TENON_OUT_OF_RANGE,
              "a view of shape %s at offset %lld reaches outside its storage of %lld bytes",
              shape_text(*view).c_str(), at, bytes);
}

// May a view be measured in plain arithmetic? Where numbers are so large that this could overflow.
[[gnu::cold]] static bool is_sound(const TensorImpl& view, int64_t offset) {
  __int128 numel = 1, reach = offset;
  bool is_empty = false;
  if (reach < 0) reach = -reach;
  for (int32_t axis = 0; axis < view.ndim && numel <= INT64_MAX / 16; ++axis) {
    __int128 size = view.shape[axis], span = (size - 1) * view.strides[axis];
    if (size < 0) return false;
    is_empty |= size == 0;
    numel *= size ? size : 1;
    reach += span < 0 ? -span : span;
  }
  return numel <= INT64_MAX / 16 && (is_empty || reach < INT64_MAX / 32);
}

// One pass over the axes for all that there is to compute and to check; a second one if rows do not
// follow each other. `root`: the tensor that it counts as a view of, or NULL.
[[gnu::always_inline]] static inline tenon_status make_view(const TensorImpl& base,
                                                            TensorImpl* root, int32_t dtype,
                                                            int32_t ndim, const int64_t* shape,
                                                            const int64_t* strides, int64_t offset,
                                                            TensorImpl** out, tenon_err* err) {
  if (ndim < 0 || ndim > TENON_MAX_NDIM) return count_many_elements(ndim, shape, nullptr, err);
  TensorImpl* tensor = new_tensor_block(ndim);
  if (!tensor) return fail_host_memory(err);
  // Unsigned, as what is too large wraps. Axes of size 1 may have any stride.
  constexpr uint64_t kSmall = uint64_t{1} << 26;
  uint64_t numel = 1, gaps = 0, bits = (static_cast<uint64_t>(offset) + (kSmall << 23)) >> 24;
  int64_t *own_shape = tensor->shape, *own_strides = tensor->strides;
  for (int32_t axis = ndim - 1; axis >= 0; --axis) {
    auto size = static_cast<uint64_t>(shape[axis]), stride = static_cast<uint64_t>(strides[axis]);
    own_shape[axis] = static_cast<int64_t>(size);
    own_strides[axis] = static_cast<int64_t>(stride);
    gaps |= (size - 1) * (stride - numel);
    numel *= size;
    bits |= size | numel | (stride + kSmall / 2);
  }
  if (bits >= kSmall && !is_sound(*tensor, offset)) return fail_view(base, tensor, offset, err);
  // no element could be outside
  if (numel == 0) {
    gaps = 0;
    offset = 0;
  }
  // From the lowest element to the highest.
  int64_t first = offset, count = static_cast<int64_t>(numel);
  if (gaps != 0) {
    count = 1;
    for (int32_t axis = 0; axis < ndim; ++axis) {
      int64_t span = (own_shape[axis] - 1) * own_strides[axis];
      first += span < 0 ? span : 0;
      count += span < 0 ? -span : span;
    }
  }
  tensor->numel = static_cast<int64_t>(numel);
  tensor->dtype = static_cast<uint8_t>(dtype);
  tensor->dl_dtype = kDtypes[dtype].dl;
  tensor->device = base.device;
  tensor->dl_device_type = base.dl_device_type;
  tensor->dl_device_id = base.dl_device_id;
  tensor->flags = static_cast<uint16_t>((base.flags & TENON_TENSOR_READONLY) |
                                        (root ? TENON_TENSOR_FOLLOWS_BASE : 0) |
                                        (gaps == 0 ? TENON_TENSOR_CONTIGUOUS : 0));
  Storage* storage = tensor->storage = base.storage;
  tensor->data = base.data;
  if (storage) {
    int64_t size = dtype_size(dtype), shift = offset * size;
    int64_t into = static_cast<char*>(base.data) - static_cast<char*>(storage->data);
    uint64_t from = base.byte_offset + static_cast<uint64_t>(into + first * size);
    if (from > storage->bytes || count * size > static_cast<int64_t>(storage->bytes - from))
      return fail_view(base, tensor, offset, err);
    increment(storage->references);
    const Device* device = find_device(base.device);
    if (device && device->opaque_memory) [[unlikely]]
      tensor->byte_offset = base.byte_offset + static_cast<uint64_t>(shift);
    else
      tensor->data = static_cast<char*>(base.data) + shift;
  } else if (base.counted) {
    count_with(base, tensor);
  }
  if (root) {
    retain(root);
    tensor->extensions[kBaseSlot] = root;
    tensor->has_extensions = 1u << kBaseSlot;
  }
  *out = tensor;
  return TENON_OK;
}

tenon_status create_view(const TensorImpl& base, int32_t dtype, int32_t ndim, const int64_t* shape,
                         const int64_t* strides, int64_t offset, TensorImpl** out, tenon_err* err) {
  return make_view(base, nullptr, dtype, ndim, shape, strides, offset, out, err);
}

tenon_status slots::tensor_view_of(tenon_tensor* base, int32_t dtype, int32_t ndim,
                                   const int64_t* shape, const int64_t* strides, int64_t offset,
                                   tenon_tensor** out, tenon_err* err) {
  TensorImpl *root = base_of(*impl(base)), *view = nullptr;
  if (!root) root = impl(base);
  TENON_TRY(check_dtype(dtype, err));
  TENON_TRY(make_view(*impl(base), root, dtype, ndim, shape, strides, offset, &view, err));
  for (uint8_t rest = root->layers; rest;
       rest &= rest - 1)  // a layer that is off is not to see it later
    if (!layer_enabled(std::countr_zero(rest))) view->flags &= ~uint16_t{TENON_TENSOR_FOLLOWS_BASE};
  *out = view;
  return TENON_OK;
}

void destroy_tensor(TensorImpl* tensor) noexcept {
  // Extensions may release further tensors; this one is unreachable by now.
  uint32_t kept = tensor->has_extensions;
  if (kept & ~(1u << kBaseSlot) || tensor->shape != tensor->inline_dims) [[unlikely]]
    drop_what_is_rare(tensor);
  if (kept & (1u << kBaseSlot)) release(static_cast<TensorImpl*>(tensor->extensions[kBaseSlot]));
  Storage *storage = tensor->storage, &own = tensor->own;
  if (storage == &own) {
    // No other thread counts holders while it is in use. The storage owns the block from here on.
    own.block_holders.store(1, std::memory_order_relaxed);
    if (!drop_reference(own.references)) return;
    return own.has_data ? free_block(own) : end_storage(own);
  }
  if (storage) {
    if (drop_reference(storage->references)) end_storage(*storage);
  } else if (tensor->counted) {
    uncount_on_meta(tensor);
  }
  if (!tensor->has_own) return give_block(tensor);
  if (drop_reference(own.block_holders)) free_block(own);  // it was assigned another storage
}

}  // namespace tenon::core
