// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "../failures.hpp"
#include "../stored_float.hpp"
#include "device_memory.hpp"
#include "executor.hpp"

namespace simulated::aclnn {
namespace {

std::mutex mutex;
std::set<const void*> alive;  // of all kinds

template <class T>
T* remember(T* object) {
  const std::lock_guard lock(mutex);
  alive.insert(object);
  return object;
}

bool is_remembered(const void* object) {
  const std::lock_guard lock(mutex);
  return alive.count(object) != 0;
}

template <class T>
int forget(const T* object) {
  {
    const std::lock_guard lock(mutex);
    if (alive.erase(object) == 0) return kInvalid;
  }
  delete object;
  return 0;
}

template <class T>
T read(const char* bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void write(char* bytes, int64_t offset, T value) {
  std::memcpy(bytes + offset * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class Result>
Result load(const View& view, int64_t at) {
  switch (view.of.dtype) {
    case kF32:
      return static_cast<Result>(read<float>(view.bytes, at));
    case kF64:
      return static_cast<Result>(read<double>(view.bytes, at));
    case kF16:
      return static_cast<Result>(static_cast<float>(read<Float16>(view.bytes, at)));
    case kBf16:
      return static_cast<Result>(static_cast<float>(read<Bfloat16>(view.bytes, at)));
    case kI8:
      return static_cast<Result>(read<int8_t>(view.bytes, at));
    case kU8:
    case kBool:
      return static_cast<Result>(read<uint8_t>(view.bytes, at));
    case kI16:
      return static_cast<Result>(read<int16_t>(view.bytes, at));
    case kI32:
      return static_cast<Result>(read<int32_t>(view.bytes, at));
    default:
      return static_cast<Result>(read<int64_t>(view.bytes, at));
  }
}

template <class Value>
void keep(View& view, int64_t at, Value value) {
  switch (view.of.dtype) {
    case kF32:
      return write(view.bytes, at, static_cast<float>(value));
    case kF64:
      return write(view.bytes, at, static_cast<double>(value));
    case kF16:
      return write(view.bytes, at, Float16::from(static_cast<float>(value)));
    case kBf16:
      return write(view.bytes, at, Bfloat16::from(static_cast<float>(value)));
    case kBool:
      return write(view.bytes, at, static_cast<uint8_t>(value != 0));
    case kI8:
      return write(view.bytes, at, static_cast<int8_t>(static_cast<int64_t>(value)));
    case kU8:
      return write(view.bytes, at, static_cast<uint8_t>(static_cast<int64_t>(value)));
    case kI16:
      return write(view.bytes, at, static_cast<int16_t>(static_cast<int64_t>(value)));
    case kI32:
      return write(view.bytes, at, static_cast<int32_t>(static_cast<int64_t>(value)));
    default:
      return write(view.bytes, at, static_cast<int64_t>(value));
  }
}

}  // namespace

size_t size_of(int dtype) {
  switch (dtype) {
    case kF64:
    case kI64:
      return 8;
    case kF32:
    case kI32:
      return 4;
    case kF16:
    case kBf16:
    case kI16:
      return 2;
    default:
      return 1;
  }
}

bool is_alive(const aclTensor* tensor) { return is_remembered(tensor); }
bool is_alive(const aclScalar* scalar) { return is_remembered(scalar); }
bool is_alive(const aclIntArray* array) { return is_remembered(array); }
bool is_alive(const aclBoolArray* array) { return is_remembered(array); }
bool is_alive(const aclTensorList* list) { return is_remembered(list); }

bool View::open() {
  int64_t last = of.offset;
  for (size_t i = 0; i < of.shape.size(); ++i) {
    if (of.shape[i] == 0) return true;
    last += (of.shape[i] - 1) * of.strides[i];
  }
  bytes = static_cast<char*>(
      simulated_ascend_translate(of.address, static_cast<size_t>(last + 1) * size_of(of.dtype)));
  return bytes != nullptr;
}

int64_t View::count() const {
  int64_t n = 1;
  for (int64_t extent : of.shape) n *= extent;
  return n;
}

int64_t View::offset(int64_t i, const std::vector<int64_t>& shape) const {
  int64_t at = of.offset;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t index = i % shape[axis];
    i /= shape[axis];
    const size_t missing = shape.size() - of.shape.size();
    if (axis >= missing && of.shape[axis - missing] != 1) at += index * of.strides[axis - missing];
  }
  return at;
}

double View::number(int64_t at) const { return load<double>(*this, at); }
int64_t View::integer(int64_t at) const { return load<int64_t>(*this, at); }
void View::store(int64_t at, double value) { keep(*this, at, value); }
void View::store(int64_t at, int64_t value) { keep(*this, at, value); }

bool broadcasts(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t extent = from[from.size() - 1 - i];
    if (extent != 1 && extent != to[to.size() - 1 - i]) return false;
  }
  return true;
}

int refuse(const char* function, int error, const std::string& text) {
  count_call("refused");
  std::fprintf(stderr, "simulated aclnn: %s: %s\n", function, text.c_str());
  return error;
}

int plan(const char* function, std::vector<const aclTensor*> tensors,
         std::function<void(std::vector<View>&)> work, uint64_t* workspace_bytes,
         aclOpExecutor** executor) {
  if (const int error = count_call(function)) return error;
  if (!workspace_bytes || !executor) return refuse(function, kNullPointer, "a result is nullptr");
  std::vector<View> views;
  for (const aclTensor* tensor : tensors) {
    if (!tensor) return refuse(function, kNullPointer, "a tensor is nullptr");
    if (!is_alive(tensor)) return refuse(function, kInvalid, "a tensor was destroyed");
    if (!is_known(tensor->dtype)) return refuse(function, kInvalid, "a dtype is not served");
    if (tensor->shape.size() > 8)
      return refuse(function, kInvalid, "a tensor has more than 8 axes");
    views.emplace_back(*tensor);
  }
  *workspace_bytes = kWorkspace;
  *executor = make_executor(function, std::move(tensors), std::move(views), std::move(work));
  return 0;
}

}  // namespace simulated::aclnn

using namespace simulated::aclnn;

ACLNN_EXPORT aclTensor* aclCreateTensor(const int64_t* shape, uint64_t ndim, int dtype,
                                        const int64_t* strides, int64_t offset, int format,
                                        const int64_t* storage, uint64_t storage_ndim, void* data) {
  if ((ndim && (!shape || !strides)) || (storage_ndim && !storage) || offset < 0) return nullptr;
  // A format that names axes has as many of them.
  const bool has_its_axes = format == kNd || (format == kNc && ndim == 2) ||
                            (format == kNcl && ndim == 3) || (format == kNchw && ndim == 4) ||
                            (format == kNcdhw && ndim == 5);
  if (!has_its_axes) return nullptr;
  for (uint64_t i = 0; i < ndim; ++i)
    if (shape[i] < 0 || strides[i] < 0) return nullptr;
  return remember(
      new aclTensor{{shape, shape + ndim}, {strides, strides + ndim}, dtype, data, offset, format});
}
ACLNN_EXPORT aclScalar* aclCreateScalar(void* value, int dtype) {
  if (!value) return nullptr;
  if (dtype == kF64) {
    const double number = *static_cast<double*>(value);
    return remember(new aclScalar{dtype, number, static_cast<int64_t>(number)});
  }
  if (dtype == kF32) {
    const double number = *static_cast<float*>(value);
    return remember(new aclScalar{dtype, number, static_cast<int64_t>(number)});
  }
  if (dtype != kI64 && dtype != kI32) return nullptr;  // others are not simulated
  const int64_t integer =
      dtype == kI64 ? *static_cast<int64_t*>(value) : *static_cast<int32_t*>(value);
  return remember(new aclScalar{dtype, static_cast<double>(integer), integer});
}
ACLNN_EXPORT aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
  if (count && !values) return nullptr;
  return remember(new aclIntArray{{values, values + count}});
}
ACLNN_EXPORT aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t count) {
  if (count && !values) return nullptr;
  return remember(new aclBoolArray{std::vector<bool>(values, values + count)});
}
ACLNN_EXPORT aclTensorList* aclCreateTensorList(const aclTensor* const* tensors, uint64_t count) {
  if (count && !tensors) return nullptr;
  return remember(new aclTensorList{{tensors, tensors + count}});
}
ACLNN_EXPORT int aclDestroyTensorList(const aclTensorList* list) {
  if (!is_alive(list)) return kInvalid;
  for (const aclTensor* tensor : list->tensors) forget(tensor);
  return forget(list);
}
ACLNN_EXPORT int aclDestroyBoolArray(const aclBoolArray* array) { return forget(array); }
ACLNN_EXPORT int aclDestroyTensor(const aclTensor* tensor) { return forget(tensor); }
ACLNN_EXPORT int aclDestroyScalar(const aclScalar* scalar) { return forget(scalar); }
ACLNN_EXPORT int aclDestroyIntArray(const aclIntArray* array) { return forget(array); }
