// SPDX-License-Identifier: Apache-2.0
// Devices, plugins, memory, threads, random state, fallback: the host's services for Python.
// Reports come as the JSON text that the host writes; the package's modules parse it.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/services/graph.h>

#include <tenon/services/candidates.h>
#include <tenon/services/isolated.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "device_groups.hpp"
#include "errors.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "operator_type.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// The lowest 64 bits, so that every whole number is a seed, as of tenon.Generator.
uint64_t seed_bits(nb::handle seed) {
  PyObject* number = PyNumber_Index(seed.ptr());
  if (!number) {
    PyErr_Clear();
    raise_error(PyExc_TypeError, "manual_seed(): expected a whole number, got %s",
                Py_TYPE(seed.ptr())->tp_name);
    throw nb::python_error();
  }
  const uint64_t bits = PyLong_AsUnsignedLongLongMask(number);
  Py_DECREF(number);
  return bits;
}

nb::object operator_by_name(const char* name) {
  PyObject* found = find_operator(name);
  if (!found && !PyErr_Occurred())
    raise_error(PyExc_AttributeError, "there is no operator named '%s'", name);
  if (!found) throw nb::python_error();
  return nb::steal(found);
}

nb::object internal_operator(const char* name) {
  PyObject* found = find_internal_operator(name);
  if (!found && !PyErr_Occurred())
    raise_error(PyExc_AttributeError, "there is no operator named '%s'", name);
  if (!found) throw nb::python_error();
  return nb::steal(found);
}

std::vector<std::string> operator_names() {
  need_plugins();
  std::vector<std::string> names;
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op* op = host->op_at(id);
    const tenon_op_def* def = op ? host->op_def(op) : nullptr;
    if (def && !(def->flags & TENON_OP_INTERNAL)) names.emplace_back(def->name);
  }
  return names;
}

std::string explain(const char* op_name, nb::handle device, nb::handle dtype) {
  tenon_device_id id = device_id(device);
  int32_t dtype_id;
  if (!optional_dtype(dtype.ptr(), TENON_DTYPE_F32, dtype_id)) throw nb::python_error();
  const tenon_op* op = host->op_find(op_name);
  if (!op) {
    raise_error(PyExc_ValueError, "there is no operator named '%s'", op_name);
    throw nb::python_error();
  }
  std::string text;
  ErrorSink err;
  check(host->op_explain(op, id, dtype_id, append_to_string, &text, err), err);
  return text;
}

nb::list device_list() {
  need_plugins();
  nb::list result;
  for (uint32_t kind = 0; kind < host->device_kind_count(); ++kind)
    for (uint32_t index = 0; index < host->device_count(kind); ++index)
      result.append(
          nb::steal(device_object(static_cast<tenon_device_id>(TENON_DEVICE_ID(kind, index)))));
  return result;
}

nb::dict device_properties(nb::handle device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  ErrorSink err;
  check(host->device_info(device_id(device), &info, err), err);
  nb::dict result;
  result["name"] = static_cast<const char*>(info.name);
  result["arch"] = static_cast<const char*>(info.arch);
  result["bus_id"] = static_cast<const char*>(info.bus_id);
  result["memory_bytes"] = info.memory_bytes;
  result["host_memory"] = (info.flags & TENON_DEVICE_HOST_MEMORY) != 0;
  return result;
}

const tenon_candidates_api& kernel_choice() {
  need_plugins();
  return *static_cast<const tenon_candidates_api*>(  // the host's own
      host->service_find(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION));
}

void synchronize_device(nb::handle device) {
  tenon_device_id id = device_id(device);
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = host->device_sync(id, err);
  }
  check(status, err);
}

// -- reports --------------------------------------------------------------------------------------

std::string memory_stats(nb::handle device, bool with_blocks) {
  std::string text;
  ErrorSink err;
  check(host->memory_stats(device_id(device), with_blocks, append_to_string, &text, err), err);
  return text;
}

uint64_t memory_trim(nb::handle device) {
  uint64_t released = 0;
  ErrorSink err;
  check(host->memory_trim(device_id(device), &released, err), err);
  return released;
}

// Tools that diagnose plugins ask with load_default=False: nothing is loaded that they do not name.
std::string plugin_describe(bool load_default) {
  if (load_default) need_plugins();
  std::string text;
  host->plugin_describe(append_to_string, &text);
  return text;
}

// The host's functions take texts that end with NUL: they would take what follows one for nothing.
const char* without_nul(const std::string& text, const char* name) {
  if (text.find('\0') == text.npos) return text.c_str();
  throw nb::value_error((std::string(name) + ": expected a text without NUL, got one").c_str());
}

void load_plugin(const std::string& path, bool load_default) {
  const char* text = without_nul(path, "path");
  if (load_default) need_plugins();
  ErrorSink err;
  check(host->plugin_load(text, err), err);
}

// `deadline`: seconds; 0: the default.
void load_isolated_plugin(const std::string& path, const std::string& folders, double deadline) {
  need_plugins();
  auto* isolated = static_cast<const tenon_isolated_api*>(
      host->service_find(TENON_ISOLATED_SERVICE, TENON_ISOLATED_VERSION));
  if (!isolated)
    throw std::runtime_error(
        "isolation needs the isolated plugin, which is not loaded; tenon.plugins.doctor() says "
        "why");
  constexpr double kMaxSeconds = 1e9;
  if (!(deadline >= 0 && deadline <= kMaxSeconds))
    throw nb::value_error("deadline: expected a number of seconds, or None for the default");
  tenon_isolated_request request = {};
  request.struct_size = sizeof request;
  request.path = without_nul(path, "path");
  request.folders = without_nul(folders, "folders");
  request.deadline_ns = static_cast<uint64_t>(deadline * 1e9);
  tenon_status status;
  ErrorSink err;
  {
    nb::gil_scoped_release unlocked;
    status = isolated->load(&request, err);
  }
  check(status, err);
}

void unload_plugin(const std::string& name) {
  ErrorSink err;
  check(host->plugin_unload(without_nul(name, "name"), err), err);
}

void allow_overrides(const std::string& name, bool allowed) {
  ErrorSink err;
  check(host->plugin_allow_overrides(without_nul(name, "name"), allowed, err), err);
}

void add_plugin_folder(const std::string& path) {
  ErrorSink err;
  check(host->plugin_add_folder(without_nul(path, "path"), err), err);
}

std::string fallback_policy() {
  std::string text;
  host->fallback_get_policy(append_to_string, &text);
  return text;
}

void set_fallback_policy(const char* text) {
  ErrorSink err;
  check(host->fallback_set_policy(text, err), err);
}

std::string fallback_report(bool reset) {
  std::string text;
  host->fallback_report(reset, append_to_string, &text);
  return text;
}

// A program draws on from where the devices' streams are, and would leave out what sets them.
constexpr const char* kNoSeeds =
    " sets the seed of random numbers, or where they go on, and a program does not; call it "
    "outside of the exported function";

void manual_seed(nb::handle seed) {
  need_plugins();
  const uint64_t bits = seed_bits(seed);
  if (!may_act("manual_seed()", kNoSeeds)) throw nb::python_error();
  host->random_seed(bits);
}

void set_random_state(uint64_t seed, uint64_t offset, nb::handle device) {
  const tenon_device_id id = device_id(device);
  uint64_t old_seed = 0, old_offset = 0;
  host->random_get(id, &old_seed, &old_offset);
  if (seed == old_seed && offset == old_offset) return;
  if (!may_act("random.set_state(), a Generator or fork_rng", kNoSeeds)) throw nb::python_error();
  host->random_set(id, seed, offset);
}

// `is_result`: the caller's program reads the numbers, which a recorded program would keep for ever.
// What only puts a stream back where it was does not.
std::pair<uint64_t, uint64_t> random_state(nb::handle device, bool is_result) {
  if (is_result && recordings != 0) tell_random_state_read();
  uint64_t seed = 0, offset = 0;
  host->random_get(device_id(device), &seed, &offset);
  return {seed, offset};
}

}  // namespace

void add_system_functions(nb::module_& module) {
  nb::object none = nb::none();
  module.def("operator", &operator_by_name, nb::arg("name"),
             "The operator of a name, as a function.");
  module.def("internal_operator", &internal_operator, nb::arg("name"),
             "An operator that is a part of others, for the package's own modules.");
  module.def("operator_names", &operator_names, "Names of all operators, with their namespaces.");
  module.def("explain", &explain, nb::arg("op"), nb::arg("device").none() = none,
             nb::arg("dtype").none() = none);
  module.def("load", &need_plugins);
  module.def("devices", &device_list, "Those of loaded plugins.");
  module.def(
      "use_deterministic_algorithms", [](bool mode) { kernel_choice().set_deterministic(mode); },
      nb::arg("mode"),
      "Hold back kernels whose results may differ from run to run, on all threads. What they would "
      "serve is lowered or run on the host; where neither is possible, the call is an error.");
  module.def(
      "is_deterministic", [] { return kernel_choice().deterministic() != 0; },
      "Whether use_deterministic_algorithms(True) is in force.");
  module.def(
      "has_group",
      [](nb::handle device, int32_t group) { return has_group(device_id(device), group); },
      nb::arg("device").none(), nb::arg("group"), "Whether the device has that optional group.");
  module.def("device_properties", &device_properties, nb::arg("device").none() = none);
  module.def("synchronize", &synchronize_device, nb::arg("device").none() = none,
             "Wait until the device has nothing left to do.");
  module.def("memory_stats", &memory_stats, nb::arg("device").none() = none,
             nb::arg("with_blocks") = false);
  module.def("memory_trim", &memory_trim, nb::arg("device").none() = none);
  module.def(
      "memory_reset_peak", [](nb::handle device) { host->memory_reset_peak(device_id(device)); },
      nb::arg("device").none() = none);
  module.def("plugin_describe", &plugin_describe, nb::arg("load_default") = true);
  module.def("plugin_load", &load_plugin, nb::arg("path"), nb::arg("load_default") = true);
  module.def("plugin_load_isolated", &load_isolated_plugin, nb::arg("path"), nb::arg("folders"),
             nb::arg("deadline"));
  module.def("plugin_unload", &unload_plugin, nb::arg("name"));
  module.def("plugin_allow_overrides", &allow_overrides, nb::arg("name"), nb::arg("allowed"));
  module.def("plugin_add_folder", &add_plugin_folder, nb::arg("path"));
  module.def("fallback_policy", &fallback_policy);
  module.def("set_fallback_policy", &set_fallback_policy, nb::arg("policy"));
  module.def("fallback_report", &fallback_report, nb::arg("reset") = false);
  module.def(
      "manual_seed", &manual_seed, nb::arg("seed").none(),
      nb::sig("def manual_seed(seed: int) -> None"),
      "Start the random numbers of every device from `seed`, a whole number of which 64 bits "
      "count.");
  module.def("random_state", &random_state, nb::arg("device").none() = none,
             nb::arg("is_result") = false);
  module.def("set_random_state", &set_random_state, nb::arg("seed"), nb::arg("offset"),
             nb::arg("device").none() = none);
  module.def(
      "get_num_threads", [] { return host->thread_count(); }, "Threads that one operator may use.");
  module.def(
      "set_num_threads",
      [](int32_t count) {
        if (count < 1) throw nb::value_error("set_num_threads(): expected at least 1");
        host->set_thread_count(count);
      },
      nb::arg("count"), "Set how many threads one operator may use.");
}

}  // namespace tenon::python
