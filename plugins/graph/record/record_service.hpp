// SPDX-License-Identifier: Apache-2.0
// The functions of the service that record (tenon/services/graph.h says what each does).
#pragma once

#include <tenon/services/graph.h>

namespace tenon::graph {

tenon_status record_begin(tenon_tensor* const* inputs, uint32_t ninputs,
                          const tenon_graph_recording_options* options, tenon_graph_recording** out,
                          tenon_err* err);
tenon_status record_end(tenon_graph_recording* recording, tenon_tensor* const* results,
                        uint32_t nresults, tenon_graph_program** out, tenon_err* err);
void record_abandon(tenon_graph_recording* recording);
int32_t is_recording();
tenon_status record_read(const char* what, tenon_err* err);
tenon_status record_effect(const char* what, const char* rest, tenon_err* err);
tenon_status record_look(tenon_tensor* tensor, const char* what, const char* rest, tenon_err* err);
tenon_status record_grad(tenon_tensor* tensor, tenon_err* err);
void record_note(uint32_t notes);
tenon_status region_begin(tenon_tensor* const* inputs, uint32_t ninputs, tenon_err* err);
tenon_status region_end(tenon_tensor* const* results, uint32_t nresults, tenon_graph_region** out,
                        tenon_err* err);
tenon_status region_hide(tenon_tensor* const* tensors, tenon_tensor* const* clones, uint32_t count,
                         tenon_err* err);
tenon_status record_join(tenon_err* err);
void region_abandon();
tenon_status record_suspend(tenon_err* err);
tenon_status record_cond(tenon_tensor* predicate, tenon_tensor* const* operands, uint32_t noperands,
                         tenon_graph_region* then_region, tenon_graph_region* else_region,
                         tenon_tensor* const* results, uint32_t nresults, tenon_err* err);
tenon_status record_while(tenon_tensor* const* carried, uint32_t ncarried,
                          tenon_graph_region* condition, tenon_graph_region* body,
                          tenon_tensor* const* results, tenon_err* err);
tenon_status record_scan(tenon_tensor* const* carried, uint32_t ncarried, tenon_tensor* const* xs,
                         uint32_t nxs, tenon_graph_region* body, tenon_tensor* const* results,
                         uint32_t nresults, tenon_err* err);

}  // namespace tenon::graph
