// SPDX-License-Identifier: Apache-2.0
// The parts that tenon._core is put together from.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void add_conversion_functions(nanobind::module_& module);     // conversion_module.cpp
void add_system_functions(nanobind::module_& module);         // system_module.cpp
void add_interpreter_functions(nanobind::module_& module);    // interpreter_module.cpp
void add_stream_types(nanobind::module_& module);             // stream_module.cpp
void add_forward_functions(nanobind::module_& module);        // forward_module.cpp
void add_graph_type(nanobind::module_& module);               // graph_module.cpp
void add_profile_type(nanobind::module_& module);             // profile_module.cpp
void add_ipc_functions(nanobind::module_& module);            // ipc_module.cpp
void add_shared_memory(nanobind::module_& module);            // shared_memory_module.cpp
void add_composed_functions(nanobind::module_& module);       // composed.cpp
void add_collective_type(nanobind::module_& module);          // collective_module.cpp
void add_distributed_types(nanobind::module_& module);        // distributed_module.cpp
void add_table_type(nanobind::module_& module);               // table_module.cpp
void add_sharding_functions(nanobind::module_& module);       // sharding_module.cpp
void add_each_functions(nanobind::module_& module);           // each_module.cpp
void add_definition_types(nanobind::module_& module);         // definition_module.cpp
void add_batched_functions(nanobind::module_& module);        // batched.cpp
void add_dialect_functions(nanobind::module_& module);        // dialect_module.cpp
void add_port_functions(nanobind::module_& module);           // ports.cpp
void add_default_device(nanobind::module_& module);           // default_device.cpp
void add_default_dtype_functions(nanobind::module_& module);  // added_keywords.cpp
void add_validation_functions(nanobind::module_& module);     // validation_module.cpp
void add_call_observer(nanobind::module_& module);            // call_observer.cpp
void add_autotune_functions(nanobind::module_& module);       // autotune_module.cpp
void add_amp_functions(nanobind::module_& module);            // amp_module.cpp
void add_profiler_functions(nanobind::module_& module);       // profiler_module.cpp
void add_recording_functions(nanobind::module_& module);      // recording_module.cpp
void add_program_type(nanobind::module_& module);             // program_module.cpp
void add_builder_type(nanobind::module_& module);             // builder_module.cpp
void add_program_editor(nanobind::module_& module);           // program_editor.cpp
void add_onnx_functions(nanobind::module_& module);           // onnx_module.cpp
void add_predictor_type(nanobind::module_& module);           // predictor_module.cpp
void add_guards(nanobind::module_& module);                   // guards_module.cpp
void add_compiled_type(nanobind::module_& module);            // compiled_type.cpp
void add_rewrite_functions(nanobind::module_& module);        // rewrite_module.cpp

}  // namespace tenon::python
