// SPDX-License-Identifier: Apache-2.0
// PD_Tensor: dims, dtype and offset over storage that tensors share.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "capi/objects.hpp"

namespace tenon::paddle {

Storage::Storage(MemorySource* from, size_t size, void* on_stream)
    // Kernels take a NULL pointer for a failure, so that no elements have an address as well.
    : data(nullptr),
      bytes(std::max<size_t>(size, 1)),
      source(from),
      stream(on_stream),
      is_owned(true) {
  data = source ? source->allocate(bytes) : std::malloc(bytes);
  if (!data)
    throw Error(TENON_OUT_OF_MEMORY, "out of host memory: " + std::to_string(bytes) + " bytes");
}

Storage::~Storage() {
  if (!is_owned || !data) return;
  if (source)
    source->deallocate(data, bytes, stream);
  else
    std::free(data);
}

namespace {

size_t bytes_of(const PD_Tensor& tensor, PD_DataType dtype) {
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(tensor.numel()), dtype_bytes(dtype), &bytes))
    throw Error(TENON_INVALID_ARGUMENT, "a tensor of more bytes than there are addresses");
  return bytes;
}

const PD_Tensor& checked(const PD_Tensor* tensor) {
  if (!tensor)
    throw Error(TENON_INVALID_ARGUMENT, "expected a tensor, got NULL: the argument is absent");
  return *tensor;
}
PD_Tensor& checked(PD_Tensor* tensor) {
  return const_cast<PD_Tensor&>(checked(static_cast<const PD_Tensor*>(tensor)));
}

// The address of elements that do not exist.
void* no_elements() {
  alignas(64) static char none[64];
  return none;
}

int64_t element(const std::vector<int64_t>& list, size_t index, const char* what) {
  if (index >= list.size())
    throw Error(TENON_OUT_OF_RANGE, std::string(what) + " " + std::to_string(index) + " of " +
                                        std::to_string(list.size()));
  return list[index];
}

}  // namespace
}  // namespace tenon::paddle

using namespace tenon::paddle;

int64_t PD_Tensor::numel() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
      throw Error(TENON_INVALID_ARGUMENT, "a tensor with a dimension of " + std::to_string(dim));
  return count;
}

void PD_Tensor::set_dims(const int64_t* first, int64_t count) {
  has_dims = true;
  dims.assign(first, first + count);
  strides.assign(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<int64_t>(dims[axis], 1);
}

void* PD_Tensor::data() const {
  was_used = true;
  const size_t needed = bytes_of(*this, dtype);
  if (needed == 0)
    return storage && storage->data ? static_cast<char*>(storage->data) + offset : no_elements();
  if (!storage)
    throw Error(TENON_FAILED_PRECONDITION, "the tensor has no memory; call Alloc before data()");
  if (offset > storage->bytes || storage->bytes - offset < needed)
    throw Error(TENON_INVALID_ARGUMENT, "the tensor's memory is too small: expected " +
                                            std::to_string(needed) + " bytes from byte " +
                                            std::to_string(offset) + ", got " +
                                            std::to_string(storage->bytes) + " in all");
  return static_cast<char*>(storage->data) + offset;
}

PD_Tensor* PD_NewTensor() { return new PD_Tensor; }
void PD_DeleteTensor(PD_Tensor* tensor) { delete tensor; }

void* PD_DeviceContextAllocateTensor(const PD_DeviceContext* context, PD_Tensor* tensor,
                                     size_t requested, PD_DataType dtype, PD_Status* status) {
  return capi<void*>(status, nullptr, [&]() -> void* {
    PD_Tensor& t = checked(tensor);
    const size_t needed = bytes_of(t, dtype);
    if (requested != 0 && requested < needed)
      throw Error(TENON_INVALID_ARGUMENT, "Alloc: expected at least " + std::to_string(needed) +
                                              " bytes to be requested, got " +
                                              std::to_string(requested));
    const size_t bytes = std::max(needed, requested);
    MemorySource* source = context ? context->memory : nullptr;
    t.dtype = dtype;
    t.was_used = true;
    const bool fits = t.storage && t.storage->source == source && t.offset <= t.storage->bytes &&
                      t.storage->bytes - t.offset >= bytes;
    if (!fits) {
      t.storage = std::make_shared<Storage>(source, bytes, context ? context->stream : nullptr);
      t.offset = 0;
      if (source && context->marks_new_memory && bytes > 0)
        source->mark_unwritten(t.storage->data, bytes, t.destination,
                               std::min(bytes, t.destination_bytes), context->stream);
    }
    return t.data();
  });
}

PD_DataType PD_TensorGetPDDataType(const PD_Tensor* tensor, PD_Status* status) {
  return capi(status, UNDEFINED, [&] { return checked(tensor).dtype; });
}
PD_DataLayout PD_TensorGetDataLayout(const PD_Tensor* tensor, PD_Status* status) {
  return capi(status, ANY, [&] { return checked(tensor).layout; });
}
int64_t PD_TensorGetByteSize(const PD_Tensor* tensor, PD_Status* status) {
  return capi<int64_t>(status, 0, [&] {
    const PD_Tensor& t = checked(tensor);
    return static_cast<int64_t>(bytes_of(t, t.dtype));
  });
}
void* PD_TensorGetDataPointer(const PD_Tensor* tensor, PD_Status* status) {
  return capi<void*>(status, nullptr, [&] { return checked(tensor).data(); });
}
int64_t PD_TensorGetElementCount(const PD_Tensor* tensor, PD_Status* status) {
  return capi<int64_t>(status, 0, [&] { return checked(tensor).numel(); });
}
int64_t PD_TensorGetNumDims(const PD_Tensor* tensor, PD_Status* status) {
  return capi<int64_t>(status, -1, [&] {
    const PD_Tensor& t = checked(tensor);
    return t.has_dims ? static_cast<int64_t>(t.dims.size()) : -1;
  });
}
int64_t PD_TensorGetDim(const PD_Tensor* tensor, size_t index, PD_Status* status) {
  return capi<int64_t>(status, 0,
                       [&] { return element(checked(tensor).dims, index, "dimension"); });
}
int64_t PD_TensorGetNumStrides(const PD_Tensor* tensor, PD_Status* status) {
  return capi<int64_t>(status, -1,
                       [&] { return static_cast<int64_t>(checked(tensor).strides.size()); });
}
int64_t PD_TensorGetStride(const PD_Tensor* tensor, size_t index, PD_Status* status) {
  return capi<int64_t>(status, 0,
                       [&] { return element(checked(tensor).strides, index, "stride"); });
}
size_t PD_TensorGetOffset(const PD_Tensor* tensor, PD_Status* status) {
  return capi<size_t>(status, 0, [&] { return checked(tensor).offset; });
}
void* PD_TensorGetHolder(const PD_Tensor* tensor, PD_Status* status) {
  return capi<void*>(status, nullptr,
                     [&] { return static_cast<void*>(checked(tensor).storage.get()); });
}
bool PD_TensorIsInitialized(const PD_Tensor* tensor, PD_Status* status) {
  return capi(status, false, [&] { return checked(tensor).storage != nullptr; });
}
bool PD_TensorIsValid(const PD_Tensor* tensor, PD_Status* status) {
  return capi(status, false, [&] { return checked(tensor).has_dims; });
}

void PD_TensorSetDims(PD_Tensor* tensor, int64_t ndims, const int64_t* dims, PD_Status* status) {
  capi(status, [&] {
    PD_Tensor& t = checked(tensor);
    if (ndims < 0 || ndims > TENON_MAX_NDIM)
      throw Error(TENON_INVALID_ARGUMENT, "Resize: expected at most " +
                                              std::to_string(TENON_MAX_NDIM) + " dimensions, got " +
                                              std::to_string(ndims));
    t.set_dims(dims, ndims);
    t.numel();
  });
}
void PD_TensorSetStrides(PD_Tensor* tensor, int64_t nstrides, const int64_t* strides,
                         PD_Status* status) {
  capi(status, [&] {
    PD_Tensor& t = checked(tensor);
    if (nstrides != static_cast<int64_t>(t.dims.size()))
      throw Error(TENON_INVALID_ARGUMENT, "set_strides: expected " + std::to_string(t.dims.size()) +
                                              " strides, got " + std::to_string(nstrides));
    t.strides.assign(strides, strides + nstrides);
  });
}
void PD_TensorSetOffset(PD_Tensor* tensor, int64_t offset, PD_Status* status) {
  capi(status, [&] {
    if (offset < 0)
      throw Error(TENON_INVALID_ARGUMENT,
                  "set_offset: expected bytes, got " + std::to_string(offset));
    checked(tensor).offset = static_cast<size_t>(offset);
  });
}
void PD_TensorSetDataType(PD_Tensor* tensor, PD_DataType dtype, PD_Status* status) {
  capi(status, [&] {
    dtype_bytes(dtype);
    checked(tensor).dtype = dtype;
  });
}
void PD_TensorSetDataLayout(PD_Tensor* tensor, PD_DataLayout layout, PD_Status* status) {
  capi(status, [&] { checked(tensor).layout = layout; });
}

void PD_TensorShareDataWith(PD_Tensor* dst, const PD_Tensor* src, PD_Status* status) {
  capi(status, [&] {
    const PD_Tensor& from = checked(src);
    if (!from.storage)
      throw Error(TENON_FAILED_PRECONDITION,
                  "ShareDataWith: the source has no memory; call Alloc on it first");
    std::vector<std::vector<size_t>> lod = checked(dst).lod;
    *dst = from;
    dst->was_used = true;
    dst->lod = std::move(lod);
  });
}
void PD_TensorShareLoDWith(PD_Tensor* dst, const PD_Tensor* src, PD_Status* status) {
  capi(status, [&] { checked(dst).lod = checked(src).lod; });
}

void PD_TensorGetLoD(const PD_Tensor* tensor, PD_List* data, PD_List* offset, PD_Status* status) {
  capi(status, [&] {
    const auto& lod = checked(tensor).lod;
    std::vector<size_t> numbers, bounds = {0};
    for (const auto& level : lod) {
      numbers.insert(numbers.end(), level.begin(), level.end());
      bounds.push_back(numbers.size());
    }
    auto hand_over = [](const std::vector<size_t>& list) {
      auto* copy = new size_t[list.size()];
      std::copy(list.begin(), list.end(), copy);
      return PD_List{list.size(), copy};
    };
    *data = hand_over(numbers);
    *offset = hand_over(bounds);
  });
}
void PD_TensorResetLoD(PD_Tensor* tensor, PD_List data, PD_List offset, PD_Status* status) {
  capi(status, [&] {
    const auto* numbers = static_cast<const size_t*>(data.data);
    const auto* bounds = static_cast<const size_t*>(offset.data);
    std::vector<std::vector<size_t>> lod;
    for (size_t i = 0; i + 1 < offset.size; ++i) {
      if (bounds[i] > bounds[i + 1] || bounds[i + 1] > data.size)
        throw Error(TENON_INVALID_ARGUMENT, "ResetLoD: the bounds of level " + std::to_string(i) +
                                                " do not lie in " + std::to_string(data.size) +
                                                " numbers");
      lod.emplace_back(numbers + bounds[i], numbers + bounds[i + 1]);
    }
    checked(tensor).lod = std::move(lod);
  });
}
