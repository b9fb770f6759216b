// SPDX-License-Identifier: Apache-2.0
// What is known about one operator of a library, while it is defined and at run time.
#pragma once

#include <tenon/extension/definition.hpp>
#include <tenon/schema.hpp>

#include <deque>

namespace tenon::extension {

struct Described {
  Described(const std::string& signature, std::string origin);
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  // Says what is wrong with the definition, and where it stands.
  [[noreturn]] void refuse(const std::string& text) const;

  const char* name() const { return schema.name().c_str(); }
  bool is_list() const { return def.flags & TENON_OP_LIST_OUTPUT; }
  bool is_composite() const { return def.flags & TENON_OP_COMPOSITE; }
  bool holds_tensors(uint32_t argument) const;
  // The only tensor parameter is a Tensor[].
  bool takes_list() const;

  // Decides what the operator is. Called once, when its definition is complete.
  void finish();

  Schema schema;
  std::string origin, doc;
  tenon_op_def def = {};
  std::vector<uint32_t> tensors;  // arguments that are tensors or lists of them
  uint32_t like = 0;              // the argument whose shape the results have
  std::vector<tenon_kernel_def> kernels;
  std::deque<std::string> devices;  // of the kernels
  tenon_grad_rule rule = {};
  bool has_function = false;    // m.def<F>
  bool writes_results = false;  // some kernel does
};

}  // namespace tenon::extension
