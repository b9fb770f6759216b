// SPDX-License-Identifier: Apache-2.0
// paddle::Tensor: a shared handle on a tensor of Tenon. Copies of a handle are one tensor;
// `reshape`, `slice` and operators make new ones. Every function throws std::exception with a text
// on failure.
//
// Memory of a tensor that is not on the processor may be reached through `data()` by code for that
// device only. A handle may be used by one thread at a time.
#pragma once

#include <paddle/common/exception.h>
#include <paddle/common/export.h>
#include <paddle/phi/common/data_type.h>
#include <paddle/phi/common/int_array.h>
#include <paddle/phi/common/layout.h>
#include <paddle/phi/common/place.h>
#include <paddle/phi/common/scalar.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace phi {

// Dimensions as a value of their own.
class DDim {
 public:
  DDim() = default;
  DDim(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}  // NOLINT
  DDim(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
  int size() const { return static_cast<int>(sizes_.size()); }
  int64_t& operator[](int axis) { return sizes_[static_cast<size_t>(axis)]; }
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int64_t at(int axis) const { return sizes_.at(static_cast<size_t>(axis)); }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  bool operator==(const DDim& other) const { return sizes_ == other.sizes_; }
  bool operator!=(const DDim& other) const { return sizes_ != other.sizes_; }

 private:
  std::vector<int64_t> sizes_;
};
inline DDim make_ddim(const std::vector<int64_t>& sizes) { return DDim(sizes); }
inline int64_t product(const DDim& dims) {
  int64_t count = 1;
  for (int64_t size : dims.sizes()) count *= size;
  return count;
}
template <typename T = int64_t>
std::vector<T> vectorize(const DDim& dims) {
  return std::vector<T>(dims.sizes().begin(), dims.sizes().end());
}

}  // namespace phi

namespace paddle {

class TensorImpl;  // in the library

// Becomes the stream of any vendor's type: the default one.
struct NoStream {
  template <typename Stream>
  operator Stream*() const {  // NOLINT
    return nullptr;
  }
};

class PADDLE_API Tensor final {
 public:
  Tensor() = default;  // nothing: defined() is false
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor& operator=(Tensor&&) = default;
  ~Tensor() = default;
  // On a device, without memory until mutable_data.
  explicit Tensor(const Place& place);
  Tensor(const Place& place, const std::vector<int64_t>& shape);
  explicit Tensor(PlaceType place) : Tensor(ConvertToPlace(place)) {}
  Tensor(PlaceType place, const std::vector<int64_t>& shape)
      : Tensor(ConvertToPlace(place), shape) {}
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  // -- what it is ------------------------------------------------------------------------------
  std::vector<int64_t> shape() const;
  phi::DDim dims() const { return phi::DDim(shape()); }
  std::vector<int64_t> strides() const;
  int64_t numel() const;
  int64_t size() const { return numel(); }
  DataType dtype() const;
  DataType type() const { return dtype(); }
  DataLayout layout() const { return DataLayout::NCHW; }
  Place place() const;
  bool is_cpu() const;
  bool is_gpu() const;
  bool is_gpu_pinned() const { return false; }
  bool is_xpu() const { return false; }
  bool is_ipu() const { return false; }
  bool is_custom_device() const;
  bool is_dense_tensor() const { return defined(); }
  bool is_selected_rows() const { return false; }
  bool is_sparse_coo_tensor() const { return false; }
  bool is_sparse_csr_tensor() const { return false; }
  bool is_string_tensor() const { return false; }
  bool defined() const { return impl_ != nullptr; }
  // Has memory.
  bool initialized() const;
  bool is_initialized() const { return initialized(); }
  // The stream of its device. Kernels run on the processor, whose work is done when they return.
  NoStream stream() const { return {}; }
  void reset() { impl_.reset(); }

  // -- its memory --------------------------------------------------------------------------------
  // The first element. Throws if T is not the tensor's dtype. Never strided: kernels get and make
  // contiguous tensors.
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(read(phi::CppTypeToDataType<T>::Type()));
  }
  template <typename T>
  T* data() {
    return static_cast<T*>(read(phi::CppTypeToDataType<T>::Type()));
  }
  const void* data() const { return read(DataType::UNDEFINED); }
  void* data() { return read(DataType::UNDEFINED); }
  // As data(), after memory for elements of T was allocated, where there is none yet or the tensor
  // has another dtype, which T then replaces.
  template <typename T>
  T* mutable_data() {
    return static_cast<T*>(write(phi::CppTypeToDataType<T>::Type(), nullptr));
  }
  template <typename T>
  T* mutable_data(const Place& place) {
    return static_cast<T*>(write(phi::CppTypeToDataType<T>::Type(), &place));
  }
  template <typename T>
  T* mutable_data(PlaceType place) {
    return mutable_data<T>(ConvertToPlace(place));
  }

  // -- other tensors from it ---------------------------------------------------------------------
  // [begin, end) of the first axis; shares memory.
  Tensor slice(int64_t begin, int64_t end) const;
  // A tensor without memory takes the shape itself, as preparation for mutable_data. One with
  // memory stays as it is: the result shares its memory. One extent may be -1.
  Tensor reshape(const IntArray& shape) const;
  Tensor copy_to(const Place& place, bool blocking = true) const;
  template <typename T>
  Tensor copy_to(const Place& place) const {
    return copy_to(place);
  }
  template <typename T>
  Tensor copy_to(PlaceType place) const {
    return copy_to(ConvertToPlace(place));
  }
  void copy_(const Tensor& source, const Place& place, bool blocking = true);
  Tensor cast(DataType dtype) const;
  Tensor contiguous() const { return *this; }
  bool is_contiguous() const { return true; }

  // -- arithmetic: tensor with tensor, tensor with number, number with tensor --------------------
#define PD_TENSOR_OPERATOR(OP)                   \
  Tensor operator OP(const Tensor& other) const; \
  Tensor operator OP(const Scalar& other) const; \
  friend PADDLE_API Tensor operator OP(const Scalar& x, const Tensor& y);
  PD_TENSOR_OPERATOR(+)
  PD_TENSOR_OPERATOR(-)
  PD_TENSOR_OPERATOR(*)
  PD_TENSOR_OPERATOR(/)
  PD_TENSOR_OPERATOR(<)
  PD_TENSOR_OPERATOR(<=)
  PD_TENSOR_OPERATOR(==)
  PD_TENSOR_OPERATOR(!=)
  PD_TENSOR_OPERATOR(>)
  PD_TENSOR_OPERATOR(>=)
#undef PD_TENSOR_OPERATOR
  Tensor operator-() const;
  Tensor operator~() const;
  Tensor operator&(const Tensor& other) const;
  Tensor operator|(const Tensor& other) const;
  Tensor operator^(const Tensor& other) const;

  // -- names, which nothing here looks at
  const std::string& name() const { return name_; }
  void set_name(const std::string& name) { name_ = name; }

  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }
  void set_impl(const std::shared_ptr<TensorImpl>& impl) { impl_ = impl; }

 private:
  void* read(DataType expected) const;
  void* write(DataType dtype, const Place* place);

  std::shared_ptr<TensorImpl> impl_;
  std::string name_;
};

namespace experimental {
using Tensor = paddle::Tensor;
}

// A tensor over memory of the caller, who keeps it until `deleter(data)` is called, or, without
// one, until the tensor and all that share its memory are gone.
using Deleter = std::function<void(void*)>;
PADDLE_API Tensor from_blob(void* data, const std::vector<int64_t>& shape, DataType dtype,
                            DataLayout layout = DataLayout::NCHW, const Place& place = Place(),
                            const Deleter& deleter = nullptr);

}  // namespace paddle
