// SPDX-License-Identifier: Apache-2.0
#include "host/arguments.hpp"

#include <algorithm>
#include <tenon/tensor.hpp>

namespace tenon::isolated {
namespace {

tenon_status fail_message(tenon_err* err) {
  return fail(err, TENON_INTERNAL, "a message of the program ended too early");
}

// Bytes from the first element to one past the last; no stride is negative.
uint64_t span(const TensorHead& head, const int64_t* shape, const int64_t* strides) {
  uint64_t last = 0;
  for (uint32_t axis = 0; axis < head.ndim; ++axis) {
    if (shape[axis] == 0) return 0;
    last += static_cast<uint64_t>((shape[axis] - 1) * strides[axis]);
  }
  return (last + 1) * host->dtype_size(head.dtype);
}

}  // namespace

Arguments::~Arguments() {
  for (tenon_tensor* tensor : tensors_) host->tensor_release(tensor);
}

tenon_status Arguments::read(Reader& message, tenon_err* err) {
  count_ = message.get<uint32_t>();
  if (count_ > kMax) return fail_message(err);
  for (uint32_t i = 0; i < count_; ++i)
    if (const tenon_status status = read_value(message, &values_[i], err); status != TENON_OK)
      return status;
  return message.ok() ? TENON_OK : fail_message(err);
}

tenon_status Arguments::read_value(Reader& message, tenon_value* out, tenon_err* err) {
  *out = {message.get<int32_t>(), 0, {.i = 0}};
  switch (out->tag) {
    case TENON_VALUE_NONE:
      return TENON_OK;
    case TENON_VALUE_INT:
    case TENON_VALUE_BOOL:
    case TENON_VALUE_DTYPE:
      out->v.i = message.get<int64_t>();
      return TENON_OK;
    case TENON_VALUE_FLOAT:
      out->v.f = message.get<double>();
      return TENON_OK;
    case TENON_VALUE_COMPLEX:
      out->v.p = const_cast<double*>(message.get_array<double>(2));
      return TENON_OK;
    case TENON_VALUE_DEVICE: {
      const auto index = message.get<int64_t>();
      out->v.i = index < 0 || !device_ ? TENON_DEVICE_NONE
                                       : TENON_DEVICE_ID(TENON_DEVICE_KIND(device_->id), index);
      return TENON_OK;
    }
    case TENON_VALUE_TENSOR: {
      tenon_tensor* tensor = nullptr;
      const tenon_status status = read_tensor(message, &tensor, err);
      out->v.p = tensor;
      return status;
    }
    default:
      return read_list(message, out, err);
  }
}

// In place where they are numbers: the message stays as it is during the call.
tenon_status Arguments::read_list(Reader& message, tenon_value* out, tenon_err* err) {
  out->aux = message.get<uint32_t>();
  const void* place = nullptr;
  if (out->tag == TENON_VALUE_INTS) place = message.get_array<int64_t>(out->aux);
  if (out->tag == TENON_VALUE_FLOATS) place = message.get_array<double>(out->aux);
  if (out->tag == TENON_VALUE_STRING) place = message.get_array<char>(out->aux);
  if (out->tag == TENON_VALUE_TENSORS) {
    auto& list = lists_.emplace_back();
    for (uint32_t i = 0; i < out->aux && message.ok(); ++i) {
      tenon_tensor* tensor = nullptr;
      if (message.get<uint8_t>())
        if (const tenon_status status = read_tensor(message, &tensor, err); status != TENON_OK)
          return status;
      list.push_back(tensor);
    }
    place = list.data();
  }
  out->v.p = const_cast<void*>(place);
  return message.ok() ? TENON_OK : fail_message(err);
}

tenon_status Arguments::read_tensor(Reader& message, tenon_tensor** out, tenon_err* err) {
  const auto head = message.get<TensorHead>();
  if (head.ndim > TENON_MAX_NDIM) return fail_message(err);
  const int64_t* shape = message.get_array<int64_t>(head.ndim);
  const int64_t* strides = nullptr;
  if (!(head.flags & TENON_TENSOR_CONTIGUOUS)) strides = message.get_array<int64_t>(head.ndim);
  const ScalarBytes* scalar = nullptr;
  if (head.flags & TENON_TENSOR_HOST_SCALAR) scalar = message.get_array<ScalarBytes>(1);
  if (!message.ok()) return fail_message(err);
  if (scalar) return *out = make_scalar(head, *scalar), TENON_OK;
  if (!device_) return fail(err, TENON_INTERNAL, "a tensor on a device that is not open");
  const tenon_status status = wrap(head, shape, strides, out, err);
  if (status == TENON_OK) tensors_.push_back(*out);
  return status;
}

tenon_tensor* Arguments::make_scalar(const TensorHead& head, const ScalarBytes& value) {
  tenon_tensor& scalar = scalars_.emplace_back();
  scalar.data = const_cast<ScalarBytes*>(&value);
  scalar.flags = head.flags;
  scalar.dtype = head.dtype;
  scalar.device = device_ ? device_->id : TENON_DEVICE_NONE;
  scalar.numel = 1;
  return &scalar;
}

tenon_status Arguments::wrap(const TensorHead& head, const int64_t* shape, const int64_t* strides,
                             tenon_tensor** out, tenon_err* err) {
  auto* data = reinterpret_cast<void*>(head.data);
  const uint32_t flags = head.flags & TENON_TENSOR_READONLY;
  if (head.byte_offset == 0)
    return host->tensor_wrap(device_->id, head.dtype, head.ndim, shape, strides, data, flags,
                             nullptr, nullptr, out, err);
  // A handle that cannot be counted up: all of the memory before it, and a view of what is meant.
  int64_t own_strides[TENON_MAX_NDIM];
  if (!strides) {
    int64_t stride = 1;
    for (int32_t axis = head.ndim - 1; axis >= 0; --axis) {
      own_strides[axis] = stride;
      stride *= shape[axis];
    }
    strides = own_strides;
  }
  // Negative strides reach back from the first element into what lies before it.
  int64_t forward[TENON_MAX_NDIM];
  std::transform(strides, strides + head.ndim, forward,
                 [](int64_t stride) { return std::max<int64_t>(stride, 0); });
  const auto bytes = static_cast<int64_t>(head.byte_offset + span(head, shape, forward));
  const int64_t item = host->dtype_size(head.dtype);
  tenon_tensor* base = nullptr;
  tenon_status status = host->tensor_wrap(device_->id, TENON_DTYPE_U8, 1, &bytes, nullptr, data,
                                          flags, nullptr, nullptr, &base, err);
  if (status != TENON_OK) return status;
  tensors_.push_back(base);
  if (head.byte_offset % static_cast<uint64_t>(item) != 0)
    return fail(err, TENON_UNSUPPORTED, "a tensor that begins between two elements of its memory");
  return host->tensor_view(base, head.dtype, head.ndim, shape, strides,
                           static_cast<int64_t>(head.byte_offset) / item, out, err);
}

}  // namespace tenon::isolated
