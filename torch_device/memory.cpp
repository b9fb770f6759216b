// SPDX-License-Identifier: Apache-2.0
// Memory: allocation, new tensors, copies, and what PyTorch asks of storages. Views are PyTorch's own, on real storages.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/util/strides.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "runtime.hpp"

namespace tenon_torch {
namespace {

using enum at::ScalarType;
// By Tenon's ids, which are dense.
constexpr at::ScalarType kTypes[] = {Bool,     Byte,   Char,   UInt16,        Short,        UInt32,
                                     Int,      UInt64, Long,   Float8_e4m3fn, Float8_e5m2,  Half,
                                     BFloat16, Float,  Double, ComplexFloat,  ComplexDouble};

int known_dtype(at::ScalarType type) {
  int dtype = dtype_of(type);
  TORCH_CHECK_TYPE(dtype >= 0, "expected a dtype that Tenon has, got ", c10::toString(type));
  return dtype;
}

void release_handle(void* handle) { host().tensor_release(static_cast<tenon_tensor*>(handle)); }

tenon_tensor* create(c10::DeviceIndex index, int dtype, at::IntArrayRef sizes) {
  tenon_tensor* made = nullptr;
  check(host().tensor_create(device_id(index), dtype, static_cast<int32_t>(sizes.size()),
                             sizes.data(), &made, errors()),
        "an allocation");
  return made;
}

Handle wrap(tenon_device_id device, int dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
            void* data) {
  tenon_tensor* made = nullptr;
  check(host().tensor_wrap(
            device, dtype, static_cast<int32_t>(sizes.size()), sizes.data(), strides.data(), data,
            0, [](void*) {}, nullptr, &made, errors()),
        "a view of foreign memory");
  return Handle(made);
}

Handle view_of(tenon_tensor* base, int dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
               int64_t offset) {
  tenon_tensor* view = nullptr;
  check(host().tensor_view(base, dtype, static_cast<int32_t>(sizes.size()), sizes.data(),
                           strides.data(), offset, &view, errors()),
        "a view");
  return Handle(view);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::Device device(c10::DeviceType::PrivateUse1, current_device());
    if (bytes == 0) return {nullptr, nullptr, &release_handle, device};
    int64_t size = static_cast<int64_t>(bytes);
    tenon_tensor* made = create(device.index(), TENON_DTYPE_U8, size);
    return {made->data, made, &release_handle, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes == 0) return;
    int64_t size = static_cast<int64_t>(bytes), step = 1;
    tenon_device_id device = device_id(current_device());
    Handle target = wrap(device, TENON_DTYPE_U8, size, step, to);
    Handle source = wrap(device, TENON_DTYPE_U8, size, step, const_cast<void*>(from));
    check(host().tensor_copy(target.get(), source.get(), errors()), "a copy of memory");
  }
};
Allocator the_allocator;
c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> registered(&the_allocator);

// Pinned memory of the CPU, by where it begins: how much, until it is released.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> extents;
};
Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}

void release_pinned(void* handle) {
  {
    std::lock_guard lock(pinned().mutex);
    pinned().extents.erase(static_cast<const char*>(static_cast<tenon_tensor*>(handle)->data));
  }
  release_handle(handle);
}

// Where the plugin pins no memory, all of the CPU's is copied alike, and ordinary memory serves.
struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    int64_t size = static_cast<int64_t>(bytes);
    tenon_tensor* made = nullptr;
    tenon_status status =
        bytes == 0 ? TENON_UNSUPPORTED
                   : host().tensor_create_pinned(device_id(current_device()), TENON_DTYPE_U8, 1,
                                                 &size, &made, errors());
    if (status == TENON_UNSUPPORTED) {
      host().err_clear(errors());
      return c10::GetAllocator(c10::DeviceType::CPU)->allocate(bytes);
    }
    check(status, "pinned memory");
    std::lock_guard lock(pinned().mutex);
    pinned().extents[static_cast<const char*>(made->data)] = bytes;
    return {made->data, made, &release_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// The tensor that owns a storage's memory; null: it is not one of ours, or has none.
tenon_tensor* owner_of(const c10::StorageImpl& storage) {
  const c10::DataPtr& memory = storage.data_ptr();
  if (memory.get_deleter() != &release_handle && memory.get_deleter() != &release_pinned)
    return nullptr;
  return static_cast<tenon_tensor*>(memory.get_context());
}

Handle bytes_of(const c10::StorageImpl& storage, size_t bytes) {
  int64_t size = static_cast<int64_t>(bytes), step = 1;
  tenon_tensor* owner = owner_of(storage);
  if (!owner)
    return wrap(device_id(storage.device().index()), TENON_DTYPE_U8, size, step,
                storage.data_ptr().get());
  return view_of(owner, TENON_DTYPE_U8, size, step, 0);
}

// -- new tensors ------------------------------------------------------------------------------------------

void check_layout(std::optional<at::Layout> layout, std::optional<bool> is_pinned) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == at::kStrided,
                              "expected the layout strided, got ", *layout, "; the device \"",
                              kind(), "\" has no other");
  TORCH_CHECK_VALUE(!is_pinned || !*is_pinned, "expected pin_memory=False on the device \"", kind(),
                    "\"; only memory of the CPU is pinned");
}

// The owner of the memory has the tensor's dtype and shape, so that calls need no view of it.
at::Tensor empty_dense(at::IntArrayRef size, at::ScalarType type) {
  for (int64_t each : size)
    TORCH_CHECK(each >= 0, "Trying to create tensor with negative dimension ", each, ": ", size);
  return tensor_of(Handle(create(current_device(), known_dtype(type), size)));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> is_pinned, std::optional<at::MemoryFormat> format) {
  check_layout(layout, is_pinned);
  DeviceScope scope(device ? device->index() : -1);
  at::ScalarType type = c10::dtype_or_default(dtype);
  if (!format || *format == at::MemoryFormat::Contiguous) return empty_dense(size, type);
  known_dtype(type);
  return at::Tensor(at::detail::empty_generic(
      size, &the_allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type, format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> is_pinned) {
  check_layout(layout, is_pinned);
  DeviceScope scope(device ? device->index() : -1);
  at::ScalarType type = c10::dtype_or_default(dtype);
  if (size.size() == stride.size() && stride == c10::contiguous_strides(size))
    return empty_dense(size, type);
  known_dtype(type);
  return at::Tensor(at::detail::empty_strided_generic(
      size, stride, &the_allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type));
}

// -- copies -----------------------------------------------------------------------------------------------

Handle called(const char* name, const at::Tensor& tensor) {
  Handle handle = handle_of(tensor);
  tenon_value value = boxed(handle.get());
  return std::move(call(find_operator(name), &value, 1, nullptr)[0]);
}

// Conjugating and negating that PyTorch has put off, done.
at::Tensor without_lazy_bits(const at::Tensor& tensor) {
  at::Tensor done = tensor;
  if (done.is_conj()) done = tensor_of(called("conj", done.conj()));
  if (done.is_neg()) done = tensor_of(called("negative", done._neg_view()));
  return done;
}

void copy_on_device(const at::Tensor& source, const at::Tensor& target) {
  Handle from = handle_of(source), to = handle_of(target);
  tenon_value values[2] = {boxed(from.get()), boxed_dtype(to.get()->dtype)};
  bool is_alike = from.get()->dtype == to.get()->dtype;
  call(find_operator(is_alike ? "clone" : "cast"), values, is_alike ? 1 : 2, to.get());
}

// Of the CPU's memory only what is pinned is still being read or written when a copy returns.
void copy_elements(const at::Tensor& source, const at::Tensor& target, bool is_queued) {
  Handle from = handle_of(source), to = handle_of(target);
  check(host().tensor_copy(to.get(), from.get(), errors()), "copy_");
  const at::Tensor& other = source.is_cpu() ? target : source;
  if (is_queued || (!source.is_cpu() && !target.is_cpu())) return;
  tenon_device_id device = device_id(other.get_device());
  if (tenon_stream stream = host().stream_current(device))
    check(host().stream_sync(device, stream, errors()), "copy_");
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  if (target.is_conj()) return copy_from(self.conj(), target.conj(), non_blocking), target;
  if (target.is_neg()) return copy_from(self.neg(), target._neg_view(), non_blocking), target;
  at::Tensor source = self.sizes() == target.sizes() ? self : self.expand(target.sizes());
  if (source.device() == target.device()) {
    copy_on_device(without_lazy_bits(source), target);
  } else if (!source.is_privateuseone()) {
    copy_elements(source.to(at::kCPU, target.scalar_type()).resolve_conj().resolve_neg(), target,
                  non_blocking);
  } else if (target.is_privateuseone()) {  // another device of the kind
    source = without_lazy_bits(source);
    if (source.scalar_type() != target.scalar_type()) source = source.to(target.scalar_type());
    copy_elements(source, target, true);
  } else {
    source = without_lazy_bits(source);
    bool is_direct = source.scalar_type() == target.scalar_type() && target.is_cpu();
    if (is_direct) return copy_elements(source, target, non_blocking), target;
    at::Tensor landed = at::empty(source.sizes(), source.options().device(at::kCPU));
    copy_elements(source, landed, false);
    target.copy_(landed);
  }
  return target;
}

at::Scalar local_scalar(const at::Tensor& self) {
  at::Tensor landed = at::empty(self.sizes(), self.options().device(at::kCPU));
  copy_from(self, landed, false);
  return at::_local_scalar_dense(landed);
}

// -- storages ---------------------------------------------------------------------------------------------

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  size_t needed = at::detail::computeStorageNbytesContiguous(sizes, self.dtype().itemsize(),
                                                             self.storage_offset());
  c10::StorageImpl& storage = *self.storage().unsafeGetStorageImpl();
  if (self.sizes() != sizes) impl->set_sizes_contiguous(sizes);
  if (self.numel() > 0 && needed > storage.nbytes()) resize_storage(storage, needed);
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  TORCH_CHECK_VALUE(source.device() == self.device(), "set_: expected a storage on ", self.device(),
                    ", got one on ", source.device());
  TORCH_CHECK_VALUE(offset >= 0, "set_: expected an offset of 0 or more, got ", offset);
  c10::DimVector dense = c10::contiguous_strides(size);
  if (stride.size() != size.size()) stride = dense;  // not given
  size_t needed = at::detail::computeStorageNbytes(size, stride, self.dtype().itemsize(), offset);
  if (needed > source.nbytes()) {
    TORCH_CHECK_VALUE(source.resizable(), "set_: expected a storage of ", needed,
                      " bytes, got one of ", source.nbytes(), ", which cannot be resized");
    resize_storage(*source.unsafeGetStorageImpl(), needed);
  }
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_and_strides(size, stride, offset);
  return self;
}

void record_stream(at::Tensor& self, at::Stream stream) {
  Handle handle = handle_of(self);
  host().tensor_record_use(handle.get(), reinterpret_cast<tenon_stream>(stream.id()));
}

}  // namespace

c10::Allocator* pinned_allocator() {
  static PinnedAllocator allocator;
  return &allocator;
}

bool is_pinned(const void* data) {
  auto* at = static_cast<const char*>(data);
  std::lock_guard lock(pinned().mutex);
  auto after = pinned().extents.upper_bound(at);
  if (after == pinned().extents.begin()) return false;
  auto [first, extent] = *std::prev(after);
  return at < first + extent;
}

int dtype_of(at::ScalarType type) {
  static constexpr auto kDtypes = [] {
    std::array<int8_t, static_cast<size_t>(at::ScalarType::NumOptions)> table{};
    table.fill(-1);
    for (size_t id = 0; id < std::size(kTypes); ++id)
      table[static_cast<size_t>(kTypes[id])] = static_cast<int8_t>(id);
    return table;
  }();
  return kDtypes[static_cast<size_t>(type)];
}

Handle handle_of(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided,
                              "expected a strided tensor, got one in the layout ", tensor.layout());
  int dtype = known_dtype(tensor.scalar_type());
  if (tensor.is_cpu()) {
    tenon_tensor* owner = owner_of(*tensor.storage().unsafeGetStorageImpl());
    if (owner)
      return view_of(owner, dtype, tensor.sizes(), tensor.strides(), tensor.storage_offset());
    return wrap(host().device_host(), dtype, tensor.sizes(), tensor.strides(), tensor.data_ptr());
  }
  TORCH_CHECK_VALUE(tensor.is_privateuseone(), "expected a tensor on the device \"", kind(),
                    "\" or the CPU, got one on ", tensor.device());
  if (tensor.numel() == 0) return Handle(create(tensor.get_device(), dtype, tensor.sizes()));
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  tenon_tensor* owner = owner_of(storage);
  int64_t offset = tensor.storage_offset();
  if (!owner)
    return wrap(device_id(tensor.get_device()), dtype, tensor.sizes(), tensor.strides(),
                tensor.data_ptr());
  size_t ndim = static_cast<size_t>(owner->ndim);
  if (offset == 0 && owner->dtype == dtype &&
      tensor.sizes() == at::IntArrayRef(owner->shape, ndim) &&
      tensor.strides() == at::IntArrayRef(owner->strides, ndim)) {
    host().tensor_retain(owner);
    return Handle(owner);
  }
  return view_of(owner, dtype, tensor.sizes(), tensor.strides(), offset);
}

at::Tensor tensor_of(Handle handle) {
  tenon_tensor* tensor = handle.get();
  TORCH_CHECK(TENON_DEVICE_KIND(tensor->device) == TENON_DEVICE_KIND(device_id(0)),
              "expected a result on the device \"", kind(), "\", got one on another");
  bool is_odd = false;  // reversed, or expanded
  int64_t extent = tensor->numel > 0;
  for (int32_t axis = 0; tensor->numel > 0 && axis < tensor->ndim; ++axis) {
    is_odd |= tensor->strides[axis] < 0 || (tensor->strides[axis] == 0 && tensor->shape[axis] > 1);
    extent += (tensor->shape[axis] - 1) * tensor->strides[axis];
  }
  if (is_odd || host().tensor_storage_use_count(tensor) > 1) {
    tenon_value value = boxed(tensor);
    return tensor_of(std::move(call(find_operator("clone"), &value, 1, nullptr)[0]));
  }
  TORCH_CHECK_TYPE(tensor->dtype < std::size(kTypes), "PyTorch has no dtype like Tenon's ",
                   host().dtype_name(tensor->dtype));
  at::ScalarType type = kTypes[tensor->dtype];
  at::IntArrayRef sizes(tensor->shape, tensor->ndim), strides(tensor->strides, tensor->ndim);
  c10::Device device(c10::DeviceType::PrivateUse1,
                     static_cast<c10::DeviceIndex>(TENON_DEVICE_INDEX(tensor->device)));
  c10::DataPtr memory(tensor->data, tensor, &release_handle, device);
  handle.release();
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(extent) * c10::elementSize(type),
      std::move(memory), &the_allocator, /*resizable=*/true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK_VALUE(storage.resizable(), "expected a storage that can be resized");
  DeviceScope scope(storage.device().index());
  c10::DataPtr memory = the_allocator.allocate(bytes);
  size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    Handle from = bytes_of(storage, kept);
    int64_t size = static_cast<int64_t>(kept), step = 1;
    auto* owner = static_cast<tenon_tensor*>(memory.get_context());
    Handle to = view_of(owner, TENON_DTYPE_U8, size, step, 0);
    check(host().tensor_copy(to.get(), from.get(), errors()), "resize_");
  }
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

using SetStorage = at::Tensor&(at::Tensor&, at::Storage);
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("_copy_from", &copy_from);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", static_cast<SetStorage*>(&at::native::set_));
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("record_stream", &record_stream);
}

// A copy does what was put off, and is what PyTorch would do it by.
#define TENON_COPIES(key) \
  TORCH_LIBRARY_IMPL(aten, key, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TENON_COPIES(Conjugate)
TENON_COPIES(Negative)

}  // namespace tenon_torch
