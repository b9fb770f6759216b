// SPDX-License-Identifier: Apache-2.0
// From what a caller passed to what the schema says: defaults filled in, kinds checked.
#pragma once

#include <tenon/value.hpp>

#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core {

// A complete argument list. `integers` backs an int[] parameter that was given a lone integer.
struct Arguments {
  tenon_value values[kMaxParams];
  int64_t integers[kMaxParams];
};

// The first `nargs` parameters' values and the defaults of the rest: `args` itself if nothing is
// missing and nothing to be converted, else in `room`.
tenon_status complete_arguments(const Operator& op, tenon_value* args, uint32_t nargs,
                                Arguments& room, tenon_value** complete, tenon_err* err);

// Do all defaults fit as they are, so that a complete argument list may hold them?
bool has_plain_defaults(const tenon_op_def& def);

// Does a value fit its parameter? Converted where the schema allows it; `integer` backs a list of
// one.
bool accept_value(const tenon_param_def& param, tenon_value& value, int64_t& integer);

const char* value_kind_name(int32_t tag);
const char* param_kind_name(int32_t kind);

inline tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}
// All tensors among the values, also those in lists.
template <class Visit>
[[gnu::always_inline]] inline void visit_tensors(const tenon_value* values, uint32_t count,
                                                 Visit visit) {
  for (uint32_t i = 0; i < count; ++i) {
    if (const tenon_tensor* tensor = as_tensor(values[i])) {
      visit(*tensor);
    } else if (values[i].tag == TENON_VALUE_TENSORS) [[unlikely]] {
      auto* list = static_cast<tenon_tensor* const*>(values[i].v.p);
      for (uint32_t k = 0; k < values[i].aux; ++k)
        if (list[k]) visit(*list[k]);
    }
  }
}

// "add" for "tenon::add"; other namespaces stay: how messages name an operator.
inline const char* short_name(const Operator& op) {
  constexpr std::string_view kOwn = "tenon::";
  return op.name.starts_with(kOwn) ? op.name.c_str() + kOwn.size() : op.name.c_str();
}

}  // namespace tenon::core
