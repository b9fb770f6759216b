// SPDX-License-Identifier: Apache-2.0
// What several files here need of the host.
#pragma once

#include <tenon/services/amp.h>
#include <tenon/services/autograd.h>
#include <tenon/services/calls.h>
#include <tenon/services/packed_constants.h>
#include <tenon/error.hpp>

namespace tenon::graph {

inline constexpr uint32_t kMaxArguments = 64;
inline constexpr uint32_t kMaxResults = 8;

// Looked up at the first use: this plugin may start before the one that offers it. NULL: not there.
const tenon_autograd_api* autograd();
const tenon_calls_api* calls();
const tenon_amp_api* amp();
const tenon_packed_constants_api* packed_constants();

bool requires_grad(const tenon_tensor* tensor);

// A dense copy with the same elements, without an operator call. Throws Error.
Tensor copy_of(const Tensor& tensor);
// The same on the host device; the tensor itself if it is there and dense.
Tensor on_host(const Tensor& tensor);

inline tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}

}  // namespace tenon::graph
