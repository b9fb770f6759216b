// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <mutex>

#include "errors.hpp"
#include "operator_type.hpp"
#include "python_method.hpp"

namespace tenon::python {
namespace {

std::string load_problem;  // what plugin_load_default said

// Plugin folders announced by installed distributions. A failure there is no reason to fail here.
void add_entry_point_folders() {
  PyObject* module = PyImport_ImportModule("tenon.host.entry_points");
  PyObject* folders = module ? PyObject_CallMethod(module, "plugin_folders", nullptr) : nullptr;
  if (folders && PyList_Check(folders)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(folders); ++i) {
      const char* path = PyUnicode_AsUTF8(PyList_GET_ITEM(folders, i));
      ErrorSink err;
      if (path && host->plugin_add_folder(path, err) != TENON_OK) host->err_clear(err);
    }
  }
  if (PyErr_Occurred()) PyErr_WriteUnraisable(folders);
  Py_XDECREF(folders);
  Py_XDECREF(module);
}

void find_syntax_operators() {
#define TENON_SYNTAX_FIND(name) operators.name = host->op_find("tenon::" #name);
  TENON_SYNTAX_OPERATORS(TENON_SYNTAX_FIND)
#undef TENON_SYNTAX_FIND
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op* op = host->op_at(id);
    const tenon_op_def* def = op ? host->op_def(op) : nullptr;
    if (!def) continue;
    if (def->flags & TENON_OP_CONVERT) operators.convert = op;
    if (def->flags & TENON_OP_MATERIALIZE) operators.materialize = op;
  }
}

// False: Python error set.
bool load_plugins_once() {
  add_entry_point_folders();
  {
    ErrorSink err;
    if (host->plugin_load_default(err) != TENON_OK) {
      load_problem = host->err_text(err);
      host->err_clear(err);
    }
  }
  find_syntax_operators();
  autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  return add_tensor_methods() && add_python_methods();
}

}  // namespace

bool load_plugins() {
  // Other threads wait, without the GIL, which this one gives away while it imports. The same
  // thread may come here again through Python code that is run on the way.
  static std::recursive_mutex mutex;
  static bool is_loading = false;
  PyThreadState* thread = PyEval_SaveThread();
  std::lock_guard lock(mutex);
  PyEval_RestoreThread(thread);
  if (is_loaded || is_loading) return true;
  is_loading = true;
  bool loaded = load_plugins_once();
  is_loading = false;
  return is_loaded = loaded;
}

const tenon_autograd_api* require_autograd() {
  if (!ensure_loaded()) return nullptr;
  if (autograd) return autograd;
  return raise_error(PyExc_RuntimeError,
                     "gradients need the autograd plugin, which is not loaded; "
                     "tenon.plugins.doctor() says why");
}

tenon_device_id require_host_device() {
  if (!ensure_loaded()) return TENON_DEVICE_NONE;
  tenon_device_id device = host->device_host();
  if (device == TENON_DEVICE_NONE) {
    raise_error(PyExc_RuntimeError,
                "no device with host memory is loaded (the cpu plugin brings one); %s%s"
                "tenon.plugins.doctor() says why",
                load_problem.c_str(), load_problem.empty() ? "" : "; ");
  }
  return device;
}

bool ask_host_memory(tenon_device_id device) {
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  ErrorSink err;
  if (host->device_info(device, &info, err) != TENON_OK) {
    host->err_clear(err);
    return false;
  }
  bool answer = info.flags & TENON_DEVICE_HOST_MEMORY;
  host_memory_kinds[TENON_DEVICE_KIND(device)] = answer ? 1 : -1;
  return answer;
}

}  // namespace tenon::python
