// SPDX-License-Identifier: Apache-2.0
// The objects that aclnn functions take, and how a simulated function is planned and run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct aclTensor {
  std::vector<int64_t> shape, strides;
  int dtype;
  void* address;  // of the chip
  int64_t offset;
  int format = 2;  // aclFormat: ND
};
struct aclTensorList {
  std::vector<const aclTensor*> tensors;
};
struct aclScalar {
  int dtype;
  double number;
  int64_t integer;
};
struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclBoolArray {
  std::vector<bool> values;
};
struct aclOpExecutor;

namespace simulated::aclnn {

// aclFormat
enum Format { kNchw = 0, kNd = 2, kNcdhw = 30, kNc = 35, kNcl = 47 };

// aclDataType
enum Dtype {
  kF32 = 0,
  kF16 = 1,
  kI8 = 2,
  kI32 = 3,
  kU8 = 4,
  kI16 = 6,
  kI64 = 9,
  kF64 = 11,
  kBool = 12,
  kBf16 = 27
};
constexpr bool is_float(int dtype) {
  return dtype == kF32 || dtype == kF16 || dtype == kF64 || dtype == kBf16;
}
constexpr bool is_known(int dtype) {
  return is_float(dtype) || dtype == kI8 || dtype == kI32 || dtype == kU8 || dtype == kI16 ||
         dtype == kI64 || dtype == kBool;
}
size_t size_of(int dtype);

// aclnnStatus, from CANN's documentation of return codes.
constexpr int kNullPointer = 161001, kInvalid = 161002, kRuntime = 361001;

// Handles that were destroyed, or never made, are found out.
bool is_alive(const aclTensor* tensor);
bool is_alive(const aclScalar* scalar);
bool is_alive(const aclIntArray* array);
bool is_alive(const aclBoolArray* array);
bool is_alive(const aclTensorList* list);

// A tensor as the work sees it: a copy of its description, and the bytes behind its address.
struct View {
  aclTensor of;
  char* bytes = nullptr;

  explicit View(const aclTensor& tensor) : of(tensor) {}
  bool open();  // false: the address is not of the chip, or too few bytes are behind it
  int64_t count() const;
  // Offset in elements of the i-th element in row-major order of `shape`, to which this one broadcasts.
  int64_t offset(int64_t i, const std::vector<int64_t>& shape) const;
  double number(int64_t offset) const;
  int64_t integer(int64_t offset) const;
  void store(int64_t offset, double value);
  void store(int64_t offset, int64_t value);
};

// Checks the tensors, which are those of the parameters in their order, and makes the executor of `work`, whose views
// are open when it runs.
int plan(const char* function, std::vector<const aclTensor*> tensors,
         std::function<void(std::vector<View>&)> work, uint64_t* workspace_bytes,
         aclOpExecutor** executor);
int execute(const char* function, void* workspace, uint64_t bytes, aclOpExecutor* executor,
            void* stream);
// Records the text that aclGetRecentErrMsg of the real library would give, and returns the error.
int refuse(const char* function, int error, const std::string& text);

bool broadcasts(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

}  // namespace simulated::aclnn

#define ACLNN_EXPORT extern "C" __attribute__((visibility("default")))
// The second phase, which is the same for every function.
#define ACLNN_EXECUTE(NAME)                                                                       \
  ACLNN_EXPORT int NAME(void* workspace, uint64_t bytes, aclOpExecutor* executor, void* stream) { \
    return simulated::aclnn::execute(#NAME, workspace, bytes, executor, stream);                  \
  }
