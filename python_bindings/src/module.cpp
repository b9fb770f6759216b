// SPDX-License-Identifier: Apache-2.0
// tenon._core: the compiled half of the Python package. What runs per operator call is written
// against CPython directly (tensor_*.cpp, operator_type.cpp); everything else is nanobind.
#include <nanobind/nanobind.h>

#include "autograd_module.hpp"
#include "errors.hpp"
#include "modules.hpp"
#include "operator_type.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"
#include "types.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace tenon::python;
  module.attr("__version__") = TENON_VERSION;
  nb::set_leak_warnings(false);  // dtypes, devices and operators live as long as the process
  if (!tenon::attach(tenon_host_get(TENON_ABI_EPOCH)))
    throw nb::import_error(
        "libtenon does not speak the ABI epoch that tenon._core was built for; reinstall tenon");
  if (!tenon::python::find_calls())
    throw nb::import_error(
        "libtenon does not offer the service `calls` version 1, which tenon._core was built for; "
        "reinstall tenon");
  if (!add_exceptions(module.ptr()) || !ready_tensor_type() || !ready_operator_type())
    throw nb::python_error();
  module.attr("Tensor") = nb::handle(reinterpret_cast<PyObject*>(&tensor_type));
  module.attr("Operator") = nb::handle(reinterpret_cast<PyObject*>(&operator_type));
  add_types(module);
  add_conversion_functions(module);
  add_autograd_functions(module);
  add_system_functions(module);
  add_interpreter_functions(module);
  add_stream_types(module);
  add_graph_type(module);
  add_profile_type(module);
  add_ipc_functions(module);
  add_shared_memory(module);
  add_composed_functions(module);
  add_collective_type(module);
  add_distributed_types(module);
  add_table_type(module);
  add_sharding_functions(module);
  add_each_functions(module);
  add_definition_types(module);
  add_batched_functions(module);
  add_dialect_functions(module);
  add_port_functions(module);
  add_default_device(module);
  add_forward_functions(module);
  add_default_dtype_functions(module);
  add_validation_functions(module);
  add_call_observer(module);
  add_autotune_functions(module);
  add_amp_functions(module);
  add_profiler_functions(module);
  add_program_type(module);
  add_builder_type(module);
  add_program_editor(module);
  add_onnx_functions(module);
  add_rewrite_functions(module);
  add_recording_functions(module);
  add_predictor_type(module);
  add_guards(module);
}
