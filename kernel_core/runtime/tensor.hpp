// SPDX-License-Identifier: Apache-2.0
// The core's own tensor: the 64-byte view that kernels see, and the bookkeeping behind it.
//
// A tensor and its storage are separate objects, because views share a storage and its version
// counter, but of a tensor that is no view both lie in one block, which lives as long as either of
// them; small data of the host lie behind them (tensor.cpp). So a small tensor is one piece of
// memory.
#pragma once

#include <sys/single_threaded.h>
#include <tenon/abi.h>

#include <atomic>
#include <new>

#include "kernel_core/runtime/device.hpp"
#include "kernel_core/types/dtype.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

struct Storage {
  std::atomic<uint32_t> references{1};
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> block_holders{2};  // of the block it lies in: that tensor, and this storage
  bool has_data = false;                   // `data` lie in that block, too
  void* data = nullptr;
  uint64_t bytes = 0;
  Device* device = nullptr;  // whose allocator takes the memory back; NULL: `drop` does
  tenon_drop_fn drop;        // if there is no device; may be NULL
  union {
    tenon_stream stream = nullptr;  // on which it was allocated, if there is a device
    void* drop_user;                // else
  };
};

inline constexpr int32_t kInlineDims = 5;
inline constexpr int32_t kExtensionSlots = 16;
inline constexpr int32_t kInlineExtensions = 3;  // of them; the others lie on the heap
inline constexpr int32_t kBaseSlot = 0;  // the host's own: the tensor that a view was taken from

struct TensorImpl : tenon_tensor {
  std::atomic<uint32_t> references;
  uint16_t has_extensions;  // bit per slot that is set
  bool has_own;      // it was made with a storage; views and tensors of the meta device are not
  Storage* storage;  // NULL on the meta device
  Storage* counted;  // on the meta device: what stands for its bytes in the statistics, or NULL
  void* extensions[kInlineExtensions];
  void** more_extensions;                // the others, while `has_extensions` has a bit of theirs
  int64_t inline_dims[2 * kInlineDims];  // shape, then strides; more dimensions live on the heap
  Storage own;                           // if has_own
};
static_assert(sizeof(TensorImpl) == 256, "whole cache lines, for data to lie behind");

// A new storage for a tensor that has none, in its block.
inline Storage* make_own_storage(TensorImpl* tensor) {
  tensor->has_own = true;
  return tensor->storage = new (&tensor->own) Storage;
}

inline TensorImpl* impl(tenon_tensor* tensor) { return static_cast<TensorImpl*>(tensor); }
inline const TensorImpl* impl(const tenon_tensor* tensor) {
  return static_cast<const TensorImpl*>(tensor);
}

// New contiguous tensor with uninitialised memory, one reference. `shape` has been validated.
tenon_status create_tensor(Device& device, int32_t dtype, int32_t ndim, const int64_t* shape,
                           TensorImpl** out, tenon_err* err);

// View of `base`, which has to lie inside its storage.
tenon_status create_view(const TensorImpl& base, int32_t dtype, int32_t ndim, const int64_t* shape,
                         const int64_t* strides, int64_t offset, TensorImpl** out, tenon_err* err);

// The tensor that a view was taken from. NULL: it is none, or that one was assigned other memory
// since.
inline TensorImpl* base_of(const TensorImpl& view) {
  if (!(view.has_extensions & (1u << kBaseSlot))) return nullptr;
  auto* base = static_cast<TensorImpl*>(view.extensions[kBaseSlot]);
  return base->storage == view.storage ? base : nullptr;
}

inline tenon_status check_dtype(int32_t dtype, tenon_err* err) {
  if (is_dtype(dtype)) return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT, "expected a dtype id below %d, got %d",
              TENON_DTYPE_COUNT, dtype);
}

void destroy_tensor(TensorImpl* tensor) noexcept;

// A locked instruction takes as long as twenty others. In a process of one thread, which glibc
// tells from its making the second, plain ones count as well.
inline void increment(std::atomic<uint32_t>& count) {
  if (__libc_single_threaded)
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else
    count.fetch_add(1, std::memory_order_relaxed);
}
// True: it was the last one. Its holder needs no read-modify-write, as no other thread can count.
inline bool drop_reference(std::atomic<uint32_t>& count) {
  uint32_t before = count.load(std::memory_order_acquire);
  if (before == 1) return true;
  if (!__libc_single_threaded) return count.fetch_sub(1, std::memory_order_acq_rel) == 1;
  count.store(before - 1, std::memory_order_relaxed);
  return false;
}

inline void retain(TensorImpl* tensor) { increment(tensor->references); }
inline void release(TensorImpl* tensor) {
  if (drop_reference(tensor->references)) destroy_tensor(tensor);
}

inline void bump_version(TensorImpl* tensor) {
  if (tensor->storage) increment(tensor->storage->version);
}

// One owned reference; move-only.
class TensorRef {
 public:
  TensorRef() = default;
  explicit TensorRef(TensorImpl* owned) : tensor_(owned) {}
  TensorRef(TensorRef&& other) noexcept : tensor_(other.take()) {}
  TensorRef& operator=(TensorRef&& other) noexcept {
    reset(other.take());
    return *this;
  }
  ~TensorRef() { reset(nullptr); }
  TensorImpl* get() const { return tensor_; }
  TensorImpl* operator->() const { return tensor_; }
  explicit operator bool() const { return tensor_ != nullptr; }
  TensorImpl* take() {
    TensorImpl* result = tensor_;
    tensor_ = nullptr;
    return result;
  }
  TensorImpl** receive() {
    reset(nullptr);
    return &tensor_;
  }

 private:
  void reset(TensorImpl* tensor) {
    if (tensor_) release(tensor_);
    tensor_ = tensor;
  }
  TensorImpl* tensor_ = nullptr;
};

}  // namespace tenon::core
