// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.hpp"

namespace tenon::graph {

// tenon_graph_service_api.program_run_with
tenon_status run_program(const Program& program, tenon_tensor* const* inputs, uint32_t ninputs,
                         tenon_tensor** results, uint32_t nresults, const RunOptions& options,
                         tenon_err* err);

}  // namespace tenon::graph
