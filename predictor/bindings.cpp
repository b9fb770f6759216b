// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <tenon/error.hpp>

#include <algorithm>

namespace tenon::predictor {
namespace {

// A tensor over the caller's memory.
Tensor wrapped(const std::string& what, int32_t dtype, const std::vector<int64_t>& shape,
               const void* data, uint64_t bytes, uint32_t flags) {
  const uint64_t needed = checked_bytes(what, dtype, shape);
  const std::string type = type_text(dtype, shape);
  if (bytes < needed)
    throw Error(TENON_INVALID_ARGUMENT, what + ": expected " + std::to_string(needed) +
                                            " bytes for " + type + ", got " +
                                            std::to_string(bytes));
  const tenon_device_id device = host->device_host();
  const auto ndim = static_cast<int32_t>(shape.size());
  const ErrorSink err;
  tenon_tensor* tensor;
  if (needed == 0) {
    err.check(host->tensor_create(device, dtype, ndim, shape.data(), &tensor, err));
    return Tensor::adopt(tensor);
  }
  if (!data)
    throw Error(TENON_INVALID_ARGUMENT, what + ": expected memory for " + type + ", got NULL");
  const uint32_t align = std::min<uint32_t>(host->dtype_size(dtype), 8);
  if (reinterpret_cast<uintptr_t>(data) % align != 0)
    throw Error(TENON_INVALID_ARGUMENT, what + ": expected memory that is aligned to " +
                                            std::to_string(align) + " bytes for " + type);
  err.check(host->tensor_wrap(device, dtype, ndim, shape.data(), nullptr, const_cast<void*>(data),
                              flags, nullptr, nullptr, &tensor, err));
  return Tensor::adopt(tensor);
}

std::vector<int64_t> shape_of(const Tensor& tensor) {
  return {tensor->shape, tensor->shape + tensor->ndim};
}

}  // namespace

Bindings::Bindings(const Model& model)
    : model_(model),
      inputs_(model.signature().inputs.size()),
      outputs_(model.signature().outputs.size()),
      copied_outputs_(outputs_.size()),
      staged_(inputs_.size()),
      given_(inputs_.size()),
      targets_(outputs_.size()) {}

Bindings::Range Bindings::range_of(const Tensor& tensor) {
  if (!tensor || tensor->numel == 0 || tensor->device != host->device_host()) return {};
  const auto size = static_cast<int64_t>(host->dtype_size(tensor->dtype));
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    const int64_t reach = (tensor->shape[i] - 1) * tensor->strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const char* first = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  return {first + low * size, first + (high + 1) * size};
}

void Bindings::check_apart(const Tensor& tensor, const std::vector<Tensor>& others, uint32_t index,
                           const std::vector<Value>& values, const std::string& what) const {
  const Range range = range_of(tensor);
  for (uint32_t i = 0; i < others.size(); ++i)
    if (i != index && range.overlaps(range_of(others[i])))
      throw Error(TENON_INVALID_ARGUMENT,
                  what + ": its memory overlaps that of '" + values[i].name +
                      "', and outputs are written while inputs are still read; give it memory of "
                      "its own");
}

void Bindings::bind_input(uint32_t index, int32_t dtype, const std::vector<int64_t>& shape,
                          const void* data, uint64_t bytes) {
  const Signature& signature = model_.signature();
  const Value& value = signature.inputs[index];
  signature.check(value, dtype, shape);
  bind_input(index, wrapped("input '" + value.name + "'", dtype, shape, data, bytes,
                            TENON_TENSOR_READONLY));
}

void Bindings::bind_input(uint32_t index, const Tensor& tensor) {
  const Signature& signature = model_.signature();
  const Value& value = signature.inputs[index];
  signature.check(value, tensor->dtype, shape_of(tensor));
  check_apart(tensor, outputs_, ~uint32_t{0}, signature.outputs, "input '" + value.name + "'");
  inputs_[index] = tensor;
  staged_[index] = {};
}

void Bindings::bind_output(uint32_t index, int32_t dtype, const std::vector<int64_t>& shape,
                           void* data, uint64_t bytes) {
  const Signature& signature = model_.signature();
  const Value& value = signature.outputs[index];
  const std::string what = "output '" + value.name + "'";
  signature.check(value, dtype, shape);
  const Tensor tensor = wrapped(what, dtype, shape, data, bytes, 0);
  check_apart(tensor, inputs_, ~uint32_t{0}, signature.inputs, what);
  check_apart(tensor, outputs_, index, signature.outputs, what);
  outputs_[index] = tensor;
  const bool is_direct = value.device == tensor->device;
  targets_[index] = is_direct ? tensor.get() : nullptr;
  copied_outputs_[index] = is_direct ? Tensor() : tensor;
}

void Bindings::unbind_inputs() {
  std::fill(inputs_.begin(), inputs_.end(), Tensor());
  std::fill(staged_.begin(), staged_.end(), Tensor());
}

void Bindings::unbind_outputs() {
  std::fill(outputs_.begin(), outputs_.end(), Tensor());
  std::fill(copied_outputs_.begin(), copied_outputs_.end(), Tensor());
  std::fill(targets_.begin(), targets_.end(), nullptr);
}

const std::vector<tenon_tensor*>& Bindings::inputs() {
  const std::vector<Value>& values = model_.signature().inputs;
  std::string missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i])
      missing += (missing.empty() ? "'" : ", '") + values[i].name + "' (" +
                 model_.signature().type_text(values[i]) + ")";
  if (!missing.empty())
    throw Error(TENON_FAILED_PRECONDITION,
                "run: expected all inputs to be bound, missing " + missing);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    tenon_tensor* bound = inputs_[i].get();
    given_[i] = bound;
    if (bound->device == values[i].device && bound->flags & TENON_TENSOR_CONTIGUOUS) continue;
    const ErrorSink err;
    if (!staged_[i]) {
      tenon_tensor* made;
      err.check(host->tensor_create(values[i].device, bound->dtype, bound->ndim, bound->shape,
                                    &made, err));
      staged_[i] = Tensor::adopt(made);
    }
    err.check(host->tensor_copy(staged_[i].get(), bound, err));
    given_[i] = staged_[i].get();
  }
  return given_;
}

}  // namespace tenon::predictor
