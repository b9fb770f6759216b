// SPDX-License-Identifier: Apache-2.0
// Guards of tenon.compile: whether a call may run a program that is known. They run in front of each call of a program, and so
// are compiled.
#pragma once

#include <Python.h>
#include <tenon/services/amp.h>
#include <tenon/services/candidates.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "added_keywords.hpp"
#include "default_device.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

// The arguments' types, layouts and roles in gradients, and the modes of this thread: what has to agree, in a few words of
// memory.
class Description {
 public:
  // False: an argument is no tensor, or has hooks.
  bool add_call(PyObject* args) {
    add_modes();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* arg = PyTuple_GET_ITEM(args, i);
      if (!is_exact_tensor(arg) || reinterpret_cast<TensorObject*>(arg)->hooks) return false;
      add_tensor(handle_of(arg));
    }
    return true;
  }
  // The type, the layout and the role in gradients of one.
  void add_tensor(tenon_tensor* tensor) {
    // A tensor without a bit of a layer is no variable, unless it asks its base.
    const bool may_be_variable =
        autograd && (tensor->layers != 0 || tensor->flags & TENON_TENSOR_FOLLOWS_BASE);
    const bool needs_grad = may_be_variable && autograd->requires_grad(tensor);
    const bool is_leaf = !may_be_variable || autograd->is_leaf(tensor);
    add(int64_t{tensor->ndim} << 32 | int64_t{tensor->dtype} << 24 | int64_t{needs_grad} << 1 |
        int64_t{is_leaf});
    add(tensor->device);
    for (int32_t i = 0; i < tensor->ndim; ++i) add(tensor->shape[i]), add(tensor->strides[i]);
  }
  // Of few words, as those of one tensor are.
  bool has_bytes(const char* bytes, Py_ssize_t size) const {
    return many_.empty() && static_cast<size_t>(size) == count_ * sizeof(int64_t) &&
           std::memcmp(bytes, few_.data(), static_cast<size_t>(size)) == 0;
  }
  std::vector<int64_t> words() const {
    std::vector<int64_t> all(few_.begin(), few_.begin() + few());
    all.insert(all.end(), many_.begin(), many_.end());
    return all;
  }
  bool is(const std::vector<int64_t>& other) const {
    return other.size() == count_ &&
           std::memcmp(other.data(), few_.data(), few() * sizeof(int64_t)) == 0 &&
           std::equal(many_.begin(), many_.end(), other.data() + few());
  }

 private:
  void add(int64_t word) {
    if (count_ < few_.size()) [[likely]]
      few_[count_] = word;
    else
      many_.push_back(word);
    ++count_;
  }
  void add_modes() {
    static const auto* amp =
        static_cast<const tenon_amp_api*>(host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION));
    static const auto* kernels = static_cast<const tenon_candidates_api*>(
        host->service_find(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION));
    add(amp ? amp->dtype() : -1);
    add((autograd && autograd->enabled() ? 1 : 0) | (kernels->deterministic() ? 2 : 0) |
        int64_t{default_float} << 2);
    add(int64_t{chosen_device()});
  }
  size_t few() const { return std::min(count_, few_.size()); }

  std::array<int64_t, 96> few_;
  std::vector<int64_t> many_;
  size_t count_ = 0;
};

// Of the first element.
inline uint64_t address_of(const tenon_tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
}

// Counts the definitions of operators and kernels that come and go.
inline uint64_t kernel_generation() {
  static const auto* kernels = static_cast<const tenon_candidates_api*>(
      host->service_find(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION));
  return kernels->generation();
}

// Whether what a function reads from outside is what it was. `watched`: the tuple of tenon.jit.captured_state.Outside. -1: Python error
// set.
int is_unchanged(PyObject* watched);

}  // namespace tenon::python
