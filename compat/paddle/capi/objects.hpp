// SPDX-License-Identifier: Apache-2.0
// What the opaque types of the C functions are, and how their failures are kept.
#pragma once

#include <paddle/phi/capi/include/c_functions.h>
#include <paddle/phi/common/bfloat16.h>
#include <paddle/phi/common/float16.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/host.hpp"

namespace tenon::paddle {

// -1 / UNDEFINED: the other side has no such dtype.
int32_t to_tenon_dtype(PD_DataType dtype);
PD_DataType to_paddle_dtype(int32_t dtype);
size_t dtype_bytes(PD_DataType dtype);  // throws for UNDEFINED
const char* dtype_text(PD_DataType dtype);

// Where memory comes from: a device of a plugin, as far as the C functions need to know it.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(size_t bytes) = 0;  // throws
  virtual void deallocate(void* memory, size_t bytes, void* stream) noexcept = 0;
  // Makes every element of new memory NaN, or a pattern that shows, and then the first bytes those
  // of `like`, if it is not NULL. Throws.
  virtual void mark_unwritten(void* memory, size_t bytes, const void* like, size_t like_bytes,
                              void* stream) = 0;
};

// Memory that tensors share. `source` NULL: host memory; a borrowed one is not freed.
struct Storage {
  Storage(void* borrowed, size_t size, MemorySource* source)
      : data(borrowed), bytes(size), source(source) {}
  Storage(MemorySource* source, size_t size, void* stream);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  size_t bytes;
  MemorySource* source;
  void* stream = nullptr;  // whose queued work may still use the memory
  bool is_owned = false;
};

}  // namespace tenon::paddle

struct PD_Tensor {
  bool has_dims = false;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  PD_DataType dtype = FLOAT32;
  PD_DataLayout layout = NCHW;
  size_t offset = 0;  // bytes
  std::shared_ptr<tenon::paddle::Storage> storage;
  std::vector<std::vector<size_t>> lod;
  mutable bool was_used = false;  // its address was read
  // Where the host wants the result and how much, if that is not the storage: while calls are
  // validated, other memory starts as a copy of it, so that what is not written shows there too.
  const void* destination = nullptr;
  size_t destination_bytes = 0;

  int64_t numel() const;  // throws if it does not fit; 1 without dims
  void set_dims(const int64_t* first, int64_t count);
  void* data() const;  // throws if there is no memory for all elements
};

struct PD_DeviceContext {
  tenon::paddle::MemorySource* memory = nullptr;
  void* stream = nullptr;
  uint64_t seed = 0;
  uint64_t draws = 0;
  bool marks_new_memory = false;  // a validated call
};

struct PD_Scalar {
  std::variant<bool, int64_t, double> value;
};
struct PD_IntArray {
  std::vector<int64_t> values;
};
struct PD_Place {
  bool is_host = false;
  int8_t device = 0;
};

// One argument: a tensor or a list of them, NULL where absent; or an attribute.
using PD_TensorSlot = std::vector<PD_Tensor*>;
using PD_Attribute =
    std::variant<bool, int32_t, int64_t, float, double, PD_DataType, PD_DataLayout, std::string,
                 PD_Scalar, PD_IntArray, PD_Place, std::vector<uint8_t>, std::vector<int32_t>,
                 std::vector<int64_t>, std::vector<float>, std::vector<double>,
                 std::vector<std::string>, std::vector<PD_Scalar>>;

struct PD_KernelContext {
  PD_DeviceContext device;
  std::vector<PD_TensorSlot> inputs;
  std::vector<PD_Attribute> attributes;
  std::vector<PD_TensorSlot> outputs;
};

struct PD_KernelKey {
  PD_DataType dtype;
  PD_DataLayout layout;
};
struct PD_TensorArgDef {
  PD_DataType dtype = UNDEFINED;
  PD_DataLayout layout = ANY;
};
struct PD_KernelArgsDef {
  std::vector<PD_TensorArgDef> inputs, outputs;
};
struct PD_Kernel {
  PD_KernelArgsDef args;
};

namespace tenon::paddle {

// The first failure of a C function since it was last taken, on this thread: kernels only see a
// status.
void keep_failure(const std::exception& error) noexcept;
std::string take_failure();

// The body of a C function: an exception becomes the status, and its text is kept. A function that
// has no status reports by the text alone, which the call then fails with.
template <typename Result, typename Body>
Result capi(PD_Status* status, Result otherwise, Body&& body) noexcept {
  if (status) *status = C_SUCCESS;
  try {
    return body();
  } catch (const std::exception& error) {
    keep_failure(error);
  }
  if (status) *status = C_ERROR;
  return otherwise;
}
template <typename Body>
void capi(PD_Status* status, Body&& body) noexcept {
  capi(status, 0, [&] {
    body();
    return 0;
  });
}

// What PD_RegisterPhiKernel was told.
struct Registration {
  std::string name;
  std::string backend;
  PD_DataType dtype;
  PD_DataLayout layout;
  std::vector<PD_KernelArgumentType> inputs, attributes, outputs;
  PD_KernelArgsDef args;
  PD_KernelFn function;
};

// Collects the registrations that are made on this thread while it lives.
class RegistrationScope {
 public:
  RegistrationScope();
  ~RegistrationScope();
  RegistrationScope(const RegistrationScope&) = delete;
  RegistrationScope& operator=(const RegistrationScope&) = delete;
  std::vector<Registration> take() { return std::move(collected_); }
  void add(Registration registration) { collected_.push_back(std::move(registration)); }

 private:
  std::vector<Registration> collected_;
  RegistrationScope* outer_;
};

}  // namespace tenon::paddle
