// SPDX-License-Identifier: Apache-2.0
// How structural steps run their regions.
#pragma once

#include <tenon/abi.h>

#include <functional>
#include <vector>

namespace tenon::graph {

// Runs a region: inputs are borrowed, results owned by the caller.
using RegionFn = std::function<tenon_status(tenon_tensor* const* inputs, tenon_tensor** results)>;

tenon_status run_cond(const std::vector<tenon_tensor*>& operands, const RegionFn& then_region,
                      const RegionFn& else_region, tenon_tensor** results, tenon_err* err);
tenon_status run_while(const std::vector<tenon_tensor*>& operands, uint32_t carried,
                       const RegionFn& condition, const RegionFn& body, tenon_tensor** results,
                       tenon_err* err);
tenon_status run_scan(const std::vector<tenon_tensor*>& operands, uint32_t carried,
                      uint32_t scanned, const RegionFn& body, std::vector<tenon_tensor*>& results,
                      tenon_err* err);

}  // namespace tenon::graph
