// SPDX-License-Identifier: Apache-2.0
// What the bindings look up once: plugins, the operators behind Python's syntax, the autograd
// service.
#pragma once

#include <Python.h>

#include <tenon/services/autograd.h>
#include <tenon/services/calls.h>
#include <tenon/tensor.hpp>

#include <string>

namespace tenon::python {

// Operators that Python's syntax and indexing stand for.
// clang-format off
#define TENON_SYNTAX_OPERATORS(X)                                                               \
  X(add) X(subtract) X(multiply) X(divide) X(floor_divide) X(remainder) X(pow) X(matmul)        \
  X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(bitwise_left_shift) X(bitwise_right_shift)      \
  X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)                       \
  X(negative) X(positive) X(abs) X(bitwise_invert)                                              \
  X(any) X(select) X(slice) X(unsqueeze) X(permute) X(expand) X(reshape)                        \
  X(index) X(index_put) X(masked_select) X(nonzero) X(to_device)                                 \
  X(complex_parts) X(zeros_like)
// clang-format on

struct SyntaxOperators {
#define TENON_SYNTAX_MEMBER(name) const tenon_op* name = nullptr;
  TENON_SYNTAX_OPERATORS(TENON_SYNTAX_MEMBER)
#undef TENON_SYNTAX_MEMBER
  const tenon_op* convert = nullptr;      // the one with TENON_OP_CONVERT
  const tenon_op* materialize = nullptr;  // the one with TENON_OP_MATERIALIZE
};
inline SyntaxOperators operators;

// The host's service for calls whose arguments were checked here. False: the host has none.
inline const tenon_calls_api* calls = nullptr;
inline bool find_calls() {
  calls = static_cast<const tenon_calls_api*>(
      host->service_find(TENON_CALLS_SERVICE, TENON_CALLS_VERSION));
  return calls;
}

// NULL if no autograd plugin is loaded.
inline const tenon_autograd_api* autograd = nullptr;

// Plugins are loaded when the first tensor is made or the first operator is looked up, so that
// `import tenon` costs nothing and cannot fail. A plugin that fails to load is recorded by the host
// and reported where its device or operator is named. False: Python error set.
inline bool is_loaded = false;
bool load_plugins();
inline bool ensure_loaded() { return is_loaded || load_plugins(); }

// The autograd service, or NULL with the Python error set.
const tenon_autograd_api* require_autograd();

// The device whose memory Python reads, or TENON_DEVICE_NONE with the Python error set.
tenon_device_id require_host_device();

// True if the host may follow pointers of this device.
inline int8_t host_memory_kinds[256];  // by device kind: 0 not asked yet, 1 yes, -1 no
bool ask_host_memory(tenon_device_id device);
inline bool is_host_memory(tenon_device_id device) {
  int8_t known = host_memory_kinds[TENON_DEVICE_KIND(device)];
  return known > 0 || (known == 0 && ask_host_memory(device));
}

// Collect what a host function writes to its sink.
inline void append_to_string(void* user, const char* text, uint64_t bytes) {
  static_cast<std::string*>(user)->append(text, bytes);
}

}  // namespace tenon::python
