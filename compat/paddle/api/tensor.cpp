// SPDX-License-Identifier: Apache-2.0
#include "api/tensor.hpp"

#include <tenon/ops.hpp>

#include <cstdlib>

namespace tenon::paddle {

namespace {

// By pd::DataType; -1: no tensor holds it.
constexpr int8_t kDtypeIds[] = {-1,
                                TENON_DTYPE_BOOL,
                                TENON_DTYPE_U8,
                                TENON_DTYPE_I8,
                                TENON_DTYPE_U16,
                                TENON_DTYPE_I16,
                                TENON_DTYPE_U32,
                                TENON_DTYPE_I32,
                                TENON_DTYPE_U64,
                                TENON_DTYPE_I64,
                                TENON_DTYPE_F32,
                                TENON_DTYPE_F64,
                                TENON_DTYPE_C64,
                                TENON_DTYPE_C128,
                                -1,
                                TENON_DTYPE_F16,
                                TENON_DTYPE_BF16,
                                TENON_DTYPE_F8E4M3,
                                TENON_DTYPE_F8E5M2};
constexpr int kDtypeCount = static_cast<int>(pd::DataType::NUM_DATA_TYPES);
static_assert(sizeof kDtypeIds == kDtypeCount);

Tensor create(tenon_device_id device, pd::DataType dtype, const std::vector<int64_t>& shape) {
  ErrorSink err;
  tenon_tensor* created = nullptr;
  err.check(host->tensor_create(device, dtype_id(dtype), static_cast<int32_t>(shape.size()),
                                shape.data(), &created, err));
  return Tensor::adopt(created);
}

}  // namespace

int32_t dtype_id(pd::DataType dtype) {
  int number = static_cast<int>(dtype);
  if (number < 0 || number >= kDtypeCount || kDtypeIds[number] < 0)
    throw Error(TENON_TYPE_MISMATCH,
                "expected the dtype of a tensor, got " + std::string(phi::DataTypeToString(dtype)));
  return kDtypeIds[number];
}

pd::DataType data_type(int32_t dtype_id) {
  for (int number = 0; number < kDtypeCount; ++number)
    if (kDtypeIds[number] == dtype_id) return static_cast<pd::DataType>(number);
  throw Error(TENON_TYPE_MISMATCH,
              std::string("there is no paddle::DataType for ") + host->dtype_name(dtype_id));
}

tenon_device_id device_id(const pd::Place& place) {
  if (place.GetType() == phi::AllocationType::CPU ||
      place.GetType() == phi::AllocationType::UNDEFINED)
    return host->device_host();
  std::string kind;
  if (place.GetType() == phi::AllocationType::CUSTOM) kind = place.GetDeviceType();
  if (place.GetType() == phi::AllocationType::GPU) kind = "cuda";
  if (place.GetType() == phi::AllocationType::XPU) kind = "xpu";
  if (kind.empty())
    throw Error(TENON_UNSUPPORTED, "no device of Tenon stands for " + place.DebugString());
  ErrorSink err;
  tenon_device_id id;
  err.check(
      host->device_find((kind + ":" + std::to_string(place.GetDeviceId())).c_str(), &id, err));
  return id;
}

pd::Place place_of(tenon_device_id device) {
  if (device == host->device_host()) return pd::CPUPlace();
  std::string kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  int index = static_cast<int>(TENON_DEVICE_INDEX(device));
  if (kind == "cuda") return pd::GPUPlace(index);
  if (kind == "xpu") return pd::XPUPlace(index);
  return pd::CustomPlace(kind, index);
}

std::vector<int64_t> shape_of(const tenon_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

pd::Tensor wrap(Tensor tensor) {
  if (tensor && !(tensor->flags & TENON_TENSOR_CONTIGUOUS)) {
    ErrorSink err;
    Scope scope(err);
    tensor = ops::contiguous(scope, tensor);
    err.check(scope.status());
  }
  auto impl = std::make_shared<pd::TensorImpl>();
  impl->handle = std::move(tensor);
  return pd::Tensor(std::move(impl));
}

Tensor handle_of(const pd::Tensor& tensor, const char* what) {
  if (!tensor.defined())
    throw Error(TENON_INVALID_ARGUMENT,
                std::string(what) + ": expected a tensor, got one that was never assigned");
  pd::TensorImpl& impl = *tensor.impl();
  if (!impl.handle) {
    if (impl.dtype == pd::DataType::UNDEFINED)
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string(what) + ": it has neither memory nor dtype; call mutable_data first");
    impl.handle = create(device_id(impl.place), impl.dtype, impl.shape);
  }
  return impl.handle;
}

}  // namespace tenon::paddle

namespace phi {

const char* DataTypeToString(DataType dtype) {
  int number = static_cast<int>(dtype);
  if (number == static_cast<int>(DataType::PSTRING)) return "pstring";
  if (number <= 0 || number >= tenon::paddle::kDtypeCount) return "undefined";
  return tenon::host->dtype_name(tenon::paddle::kDtypeIds[number]);
}

size_t SizeOf(DataType dtype) { return tenon::host->dtype_size(tenon::paddle::dtype_id(dtype)); }

std::string Place::DebugString() const {
  std::string id = ":" + std::to_string(device_);
  switch (type_) {
    case AllocationType::CPU:
      return "Place(cpu)";
    case AllocationType::GPU:
      return "Place(gpu" + id + ")";
    case AllocationType::GPUPINNED:
      return "Place(gpu_pinned)";
    case AllocationType::XPU:
      return "Place(xpu" + id + ")";
    case AllocationType::IPU:
      return "Place(ipu" + id + ")";
    case AllocationType::CUSTOM:
      return "Place(" + device_type_ + id + ")";
    default:
      return "Place(undefined)";
  }
}

}  // namespace phi

namespace paddle {

using tenon::paddle::Error;
using tenon::paddle::ErrorSink;
using tenon::paddle::handle_of;
using tenon::paddle::wrap;

Place ConvertToPlace(PlaceType type) {
  if (type == PlaceType::kCPU) return CPUPlace();
  if (type == PlaceType::kGPU) return GPUPlace();
  return Place();
}

Tensor::Tensor(const Place& place) : Tensor(place, {}) {}

Tensor::Tensor(const Place& place, const std::vector<int64_t>& shape)
    : impl_(std::make_shared<TensorImpl>()) {
  impl_->place = place;
  impl_->shape = shape;
}

std::vector<int64_t> Tensor::shape() const {
  if (!impl_) return {};
  return impl_->handle ? tenon::paddle::shape_of(*impl_->handle.get()) : impl_->shape;
}

std::vector<int64_t> Tensor::strides() const {
  std::vector<int64_t> sizes = shape(), strides(sizes.size(), 1);
  for (size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  return strides;
}

int64_t Tensor::numel() const {
  if (!impl_) return 0;
  if (impl_->handle) return impl_->handle->numel;
  int64_t count = 1;
  for (int64_t size : impl_->shape) count *= size;
  return count;
}

DataType Tensor::dtype() const {
  if (!impl_) return DataType::UNDEFINED;
  return impl_->handle ? tenon::paddle::data_type(impl_->handle->dtype) : impl_->dtype;
}

Place Tensor::place() const {
  if (!impl_) return Place();
  return impl_->handle ? tenon::paddle::place_of(impl_->handle->device) : impl_->place;
}

bool Tensor::is_cpu() const {
  if (impl_ && impl_->handle) return impl_->handle->device == tenon::host->device_host();
  return phi::is_cpu_place(place());
}
bool Tensor::is_gpu() const { return phi::is_gpu_place(place()); }
bool Tensor::is_custom_device() const { return phi::is_custom_place(place()); }
bool Tensor::initialized() const { return impl_ && impl_->handle; }

void* Tensor::read(DataType expected) const {
  if (!initialized())
    throw Error(TENON_FAILED_PRECONDITION,
                "data(): the tensor has no memory; call mutable_data<T>() or make it by "
                "paddle::empty");
  if (expected != DataType::UNDEFINED && expected != dtype())
    throw Error(TENON_TYPE_MISMATCH, std::string("data<T>(): expected T for ") +
                                         phi::DataTypeToString(dtype()) + ", got one for " +
                                         phi::DataTypeToString(expected) +
                                         "; choose T by PD_DISPATCH_..._TYPES, or cast the tensor");
  // A tensor of no elements has an address as well: kernels take NULL for a failure.
  alignas(64) static char none[64];
  return impl_->handle->data ? impl_->handle->data : none;
}

void* Tensor::write(DataType dtype, const Place* place) {
  if (!impl_)
    throw Error(
        TENON_FAILED_PRECONDITION,
        "mutable_data(): expected a tensor with a place and a shape, got one that was never "
        "assigned; make it by paddle::empty");
  TensorImpl& impl = *impl_;
  if (!impl.handle) {
    if (place && place->GetType() != phi::AllocationType::UNDEFINED) impl.place = *place;
    impl.dtype = dtype;
    handle_of(*this);
  } else if (place && place->GetType() != phi::AllocationType::UNDEFINED &&
             tenon::paddle::device_id(*place) != impl.handle->device) {
    throw Error(TENON_INVALID_ARGUMENT, "mutable_data(place): the tensor is on " +
                                            this->place().DebugString() + ", not on " +
                                            place->DebugString() + "; use copy_to");
  } else if (this->dtype() != dtype) {
    // Memory of another dtype is replaced: what is written next are elements of T.
    impl.handle = tenon::paddle::create(impl.handle->device, dtype, shape());
  }
  return read(dtype);
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  tenon::Tensor self = handle_of(*this);
  if (self->ndim == 0 || begin < 0 || begin > end || end > self->shape[0])
    throw Error(TENON_OUT_OF_RANGE, "slice(begin, end): expected 0 <= begin <= end <= " +
                                        std::to_string(self->ndim ? self->shape[0] : 0) + ", got " +
                                        std::to_string(begin) + " and " + std::to_string(end));
  std::vector<int64_t> sizes = shape();
  sizes[0] = end - begin;
  ErrorSink err;
  tenon_tensor* view = nullptr;
  err.check(tenon::host->tensor_view(self.get(), self->dtype, self->ndim, sizes.data(),
                                     self->strides, begin * self->strides[0], &view, err));
  return wrap(tenon::Tensor::adopt(view));
}

Tensor Tensor::reshape(const IntArray& shape) const {
  if (impl_ && !impl_->handle) {
    impl_->shape = shape.GetData();
    return *this;
  }
  tenon::Tensor self = handle_of(*this);
  std::vector<int64_t> sizes = shape.GetData();
  int64_t known = 1, *open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && !open)
      open = &size;
    else
      known *= size;
  }
  if (open && known > 0) *open = self->numel / known, known *= *open;
  if (known != self->numel)
    throw Error(TENON_INVALID_ARGUMENT, "reshape: expected a shape of " +
                                            std::to_string(self->numel) + " elements, got " +
                                            tenon::list_text(shape.GetData()));
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  ErrorSink err;
  tenon_tensor* view = nullptr;
  err.check(tenon::host->tensor_view(self.get(), self->dtype, static_cast<int32_t>(sizes.size()),
                                     sizes.data(), strides.data(), 0, &view, err));
  return wrap(tenon::Tensor::adopt(view));
}

Tensor Tensor::copy_to(const Place& place, bool) const {
  tenon::Tensor self = handle_of(*this);
  tenon::Tensor copy = tenon::paddle::create(tenon::paddle::device_id(place), dtype(), shape());
  ErrorSink err;
  err.check(tenon::host->tensor_copy(copy.get(), self.get(), err));
  return wrap(std::move(copy));
}

void Tensor::copy_(const Tensor& source, const Place& place, bool blocking) {
  if (!impl_ || !impl_->handle) {
    *this = source.copy_to(place, blocking);
    return;
  }
  if (shape() != source.shape() || dtype() != source.dtype())
    throw Error(TENON_INVALID_ARGUMENT,
                "copy_: expected a source of shape " + tenon::list_text(shape()) + " and " +
                    phi::DataTypeToString(dtype()) + ", got " + tenon::list_text(source.shape()) +
                    " and " + phi::DataTypeToString(source.dtype()));
  ErrorSink err;
  err.check(tenon::host->tensor_copy(impl_->handle.get(), handle_of(source).get(), err));
  tenon::host->tensor_bump_version(impl_->handle.get());
}

namespace experimental {

namespace {

// Elements of a tensor on any device, converted to T on the processor.
template <typename T>
std::vector<T> elements(const Tensor& tensor, DataType dtype) {
  Tensor here = tensor.dtype() == dtype ? tensor : tensor.cast(dtype);
  if (!here.is_cpu()) here = here.copy_to(CPUPlace());
  const T* data = here.data<T>();
  return {data, data + here.numel()};
}

}  // namespace

Scalar::Scalar(const Tensor& tensor) : dtype_(tensor.dtype()), from_tensor_(true) {
  if (tensor.numel() != 1)
    throw Error(TENON_INVALID_ARGUMENT,
                "Scalar: expected a tensor of one element, got " + std::to_string(tensor.numel()));
  if (is_complex()) {
    complex128 value = elements<complex128>(tensor, DataType::COMPLEX128)[0];
    real_ = value.real;
    imaginary_ = value.imag;
  } else if (is_integer()) {
    integer_ = elements<int64_t>(tensor, DataType::INT64)[0];
  } else {
    real_ = elements<double>(tensor, DataType::FLOAT64)[0];
  }
}

IntArray::IntArray(const Tensor& tensor) {
  if (tensor.dtype() != DataType::INT32 && tensor.dtype() != DataType::INT64)
    throw Error(TENON_TYPE_MISMATCH, std::string("IntArray: expected int32 or int64, got ") +
                                         phi::DataTypeToString(tensor.dtype()));
  values_ = elements<int64_t>(tensor, DataType::INT64);
}

IntArray::IntArray(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) values_.push_back(Scalar(tensor).to<int64_t>());
}

}  // namespace experimental

Tensor from_blob(void* data, const std::vector<int64_t>& shape, DataType dtype, DataLayout,
                 const Place& place, const Deleter& deleter) {
  struct Owner {
    Deleter deleter;
    void* data;
  };
  auto drop = [](void* user) {
    std::unique_ptr<Owner> owner(static_cast<Owner*>(user));
    if (!owner->deleter) return;
    try {
      owner->deleter(owner->data);
    } catch (...) {  // the last view may end on any thread, where no code would catch it
      std::abort();
    }
  };
  auto owner = std::make_unique<Owner>(Owner{deleter, data});
  ErrorSink err;
  tenon_tensor* wrapped = nullptr;
  err.check(tenon::host->tensor_wrap(tenon::paddle::device_id(place),
                                     tenon::paddle::dtype_id(dtype),
                                     static_cast<int32_t>(shape.size()), shape.data(), nullptr,
                                     data, 0, drop, owner.get(), &wrapped, err));
  owner.release();
  return wrap(tenon::Tensor::adopt(wrapped));
}

}  // namespace paddle
