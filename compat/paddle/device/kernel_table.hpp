// SPDX-License-Identifier: Apache-2.0
// Which Tenon operator a Paddle kernel serves, and how the kernel's arguments are made from the
// operator's.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "capi/objects.hpp"
#include "device/operators.hpp"

namespace tenon::paddle {

// How one argument of a kernel is made.
enum class How : uint8_t {
  kTensor,       // tensor argument `index`
  kColumn,       // tensor argument `index` with an axis of length 1 added at the end
  kTensors,      // list argument `index`
  kAbsent,       // no tensor
  kNumber,       // number argument `index`, as a tensor of one element in the kernel's dtype
  kArgument,     // bool, int, float or scalar argument `index` as it is
  kConstant,     // `index` itself
  kAxis,         // int argument `index`, counted from the front of the first input
  kAxes,         // int-list argument `index`, likewise; all axes if it is none
  kAllAxes,      // whether that list names all axes
  kOutputDtype,  // dtype of output `index`
  kOutputShape,  // shape of output `index`
  kSeed,         // from Tenon's generator; never 0, which would mean "any"
  kOutput,       // output `index`
  kScratch,      // an output that Tenon's operator has not, in the shape of the first input
};

struct Argument {
  PD_KernelArgumentType type;
  How how;
  int8_t index = 0;
  std::string_view parameter = {};  // of the operator, at `index`; empty if it is made of none
};

// A list that a constant of the program holds.
template <typename T, size_t kCapacity>
class ShortList {
 public:
  constexpr ShortList() = default;
  constexpr ShortList(std::initializer_list<T> items) : size_(items.size()) {
    std::copy(items.begin(), items.end(), items_.begin());
  }
  constexpr size_t size() const { return size_; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }
  constexpr T* begin() { return items_.data(); }
  constexpr T* end() { return items_.data() + size_; }
  constexpr const T& operator[](size_t index) const { return items_[index]; }

 private:
  std::array<T, kCapacity> items_{};
  size_t size_ = 0;
};
using Arguments = ShortList<Argument, 8>;

// One way for a kernel to serve an operator. Rows of one operator stand in order of preference.
struct Row {
  const char* kernel;
  const Operator* op;
  Arguments inputs, attributes, outputs;
  // Parameters of the operator that no argument is made of: the form of the results follows from
  // them, or `can_run` accepts only the value that the kernel assumes. All others are arguments;
  // the build checks it.
  ShortList<std::string_view, 4> settled = {};
  uint32_t traits = 0;
  uint64_t dtypes = ~uint64_t{0};  // in which kernel and operator agree on every value
  // As in tenon_kernel_def: 0 declines what this kernel is known not to do, for any plugin.
  int32_t (*can_run)(const tenon_value* args, uint32_t nargs) = nullptr;
  // The kernel may be given one of its inputs as output.
  bool in_place = false;
};
std::span<const Row> kernel_rows();

// Kernel names for which there is no row on purpose, and what serves instead. NULL: not among them.
const char* served_otherwise(const std::string& kernel);

// A kernel that a plugin registered, found to be what its row says.
struct BoundKernel {
  const Row* row = nullptr;
  const Registration* registration = nullptr;
};

struct OperatorBinding {
  std::array<BoundKernel, TENON_DTYPE_COUNT> by_dtype;
};

// What became of one kernel name of a plugin.
struct KernelOutcome {
  std::string name;
  std::string state;  // "mapped", "partly", "refused", "unused"
  std::string op;
  std::vector<int32_t> dtypes;
  std::string text;
};

struct KernelBindings {
  std::vector<std::pair<std::string, OperatorBinding>> operators;
  std::vector<tenon_kernel_def> defs;  // one for each row in use
  std::vector<KernelOutcome> outcomes;
  // Reasons for refused registrations, one line each.
  std::vector<std::string> refusals;
};

// Match registrations for backend `kind` with the rows. Pointers into `registrations` are kept.
KernelBindings bind_kernels(const std::vector<Registration>& registrations,
                            const std::string& kind);

}  // namespace tenon::paddle
