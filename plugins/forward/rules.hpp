// SPDX-License-Identifier: Apache-2.0
// Tangents of the results of one call, from those of its arguments.
#pragma once

#include <tenon/tensor.hpp>

#include <cstdint>
#include <vector>

namespace tenon::forward {

// A call that has run. `outs` are its results.
struct Call {
  const tenon_op* op;
  const tenon_value* args;
  uint32_t nargs;
  const tenon_value* outs;
  uint32_t nouts;
};

// [i][k]: of argument i, or of element k of a list. Empty: it is a constant, or no tensor.
using ArgumentTangents = std::vector<std::vector<Tensor>>;

struct ResultTangents {
  std::vector<Tensor> tangents;  // of each result; empty: it does not depend on those arguments
  uint64_t unknown = 0;          // bit k: result k does, and no gradient tells how
};

// Throws Errors.
ResultTangents result_tangents(const Call& call, const ArgumentTangents& tangents);

}  // namespace tenon::forward
