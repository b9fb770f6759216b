// SPDX-License-Identifier: Apache-2.0
// What a composed tensor consists of, and where that is kept: in an extension slot of the whole.
#pragma once

#include <tenon/services/parts.h>
#include <tenon/plugin.hpp>

#include <string>
#include <vector>

#include <tenon/ops/call.hpp>

namespace tenon::parts {

using Kind = tenon_parts_kind;

struct Composed {
  const Kind* kind;
  std::vector<Tensor> parts;
  std::vector<int64_t> words;
  const Tensor& values() const { return parts[kind->values]; }
};

inline int32_t layer = -1;  // the service's own
inline int32_t slot = -1;

// NULL: it is not composed, or another plugin's without a kind.
inline Composed* composed_of(const tenon_tensor* tensor) {
  if (!(tensor->flags & TENON_TENSOR_COMPOSED)) return nullptr;
  return static_cast<Composed*>(host->ext_get(tensor, slot));
}

inline tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}
inline Composed* composed_of(const tenon_value& value) {
  const tenon_tensor* tensor = as_tensor(value);
  return tensor ? composed_of(tensor) : nullptr;
}

tenon_status kind_register(const Kind* kind, tenon_err* err);
const Kind* kind_find(const char* name);

tenon_status create(const Kind* kind, int32_t ndim, const int64_t* shape,
                    tenon_tensor* const* parts, const int64_t* words, tenon_tensor** out,
                    tenon_err* err);
tenon_status replace(tenon_tensor* tensor, tenon_tensor* const* parts, const int64_t* words,
                     tenon_err* err);

// The same in a scope. Empty if it failed.
Tensor compose(Scope& scope, const Kind* kind, const std::vector<int64_t>& shape,
               const std::vector<Tensor>& parts);
// A tensor of the same structure with other elements.
Tensor with_values(Scope& scope, const tenon_tensor* like, const Tensor& values);

inline std::vector<int64_t> shape_of(const tenon_tensor* tensor) {
  return {tensor->shape, tensor->shape + tensor->ndim};
}

}  // namespace tenon::parts
