// SPDX-License-Identifier: Apache-2.0
// What groups of elementwise steps share, however they run (groups/tiled_group.hpp, groups/fused_kernel.hpp).
#pragma once

#include <tenon/services/calls.h>

#include <cstddef>
#include <memory>

#include "ir/graph.hpp"
#include "support/host.hpp"

namespace tenon::graph {

// Whether element i of the results depends on element i of the operands alone, and the results are new.
bool is_elementwise(const Step& step);

// The same of a step that writes its only result into one of its operands, which has the result's dtype.
bool is_elementwise_in_place(const Graph& graph, const Step& step);

bool is_host_memory(tenon_device_id device);
// Whether kernels of source are compiled for it, so that one can be made of several.
bool compiles_source(tenon_device_id device);

// The host's service, if it prepares calls that run on pieces.
inline const tenon_calls_api* calls_with_pieces() {
  const tenon_calls_api* api = calls();
  return api && api->struct_size > offsetof(tenon_calls_api, piecewise_holds) ? api : nullptr;
}

struct ReleasePiecewise {
  void operator()(tenon_piecewise* call) const { calls()->piecewise_release(call); }
};
using Piecewise = std::unique_ptr<tenon_piecewise, ReleasePiecewise>;

struct ReleaseTensor {
  void operator()(tenon_tensor* tensor) const { host->tensor_release(tensor); }
};
using OwnedTensor = std::unique_ptr<tenon_tensor, ReleaseTensor>;

}  // namespace tenon::graph
