// SPDX-License-Identifier: Apache-2.0
// The autograd service for tenon/autograd.py: engine, recording switch, custom functions.
#include "autograd_module.hpp"

#include <string>
#include <vector>

#include "after_backward.hpp"
#include "errors.hpp"
#include "host_call.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_autograd_api& autograd_service() {
  const tenon_autograd_api* api = require_autograd();
  if (!api) throw nb::python_error();
  return *api;
}

// Handles of a Python sequence of tensors, whose elements may be None. Borrowed: the caller's list
// keeps them.
std::vector<tenon_tensor*> handles(nb::handle sequence, const char* what) {
  std::vector<tenon_tensor*> result;
  for (nb::handle item : nb::iter(sequence)) {
    tenon_tensor* tensor = item.is_none() ? nullptr : require_tensor(item.ptr(), what);
    if (!tensor && !item.is_none()) throw nb::python_error();
    result.push_back(tensor);
  }
  return result;
}

nb::object adopt(tenon_tensor* owned) {
  if (!owned) return nb::none();
  PyObject* object = wrap(owned);
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

nb::list adopt_all(const std::vector<tenon_tensor*>& owned) {
  nb::list result;
  for (tenon_tensor* tensor : owned) result.append(adopt(tensor));
  return result;
}

uint32_t engine_flags(bool retain_graph, bool create_graph, bool allow_unused) {
  return (retain_graph ? TENON_BACKWARD_RETAIN_GRAPH : 0) |
         (create_graph ? TENON_BACKWARD_CREATE_GRAPH : 0) |
         (allow_unused ? TENON_BACKWARD_ALLOW_UNUSED : 0);
}

void backward(nb::tuple outputs, nb::tuple grads, bool retain_graph, bool create_graph) {
  if (!run_backward(handles(outputs, "backward()"), handles(grads, "backward()"),
                    engine_flags(retain_graph, create_graph, false)))
    throw nb::python_error();
}

nb::list gradients(nb::tuple outputs, nb::tuple grads, nb::tuple inputs, bool retain_graph,
                   bool create_graph, bool allow_unused) {
  const tenon_autograd_api& api = autograd_service();
  auto outs = handles(outputs, "grad()"), seeds = handles(grads, "grad()"),
       ins = handles(inputs, "grad()");
  std::vector<tenon_tensor*> results(ins.size());
  const uint32_t flags = engine_flags(retain_graph, create_graph, allow_unused);
  note_backward(flags, false);
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status =
        api.gradients(outs.data(), seeds.data(), static_cast<uint32_t>(outs.size()), ins.data(),
                      static_cast<uint32_t>(ins.size()), results.data(), flags, err);
  }
  note_backward_end();
  check(status, err);
  return adopt_all(results);
}

// -- custom functions -----------------------------------------------------------------------------

// A tensor kept for a custom function's backward.
class SavedTensor {
 public:
  SavedTensor(nb::handle tensor, bool is_output) {
    tenon_tensor* handle = require_tensor(tensor.ptr(), "save_for_backward()");
    if (!handle) throw nb::python_error();
    const tenon_autograd_api& api = autograd_service();
    ErrorSink err;
    check(api.saved_create(handle, is_output, &saved_, err), err);
  }
  SavedTensor(const SavedTensor&) = delete;
  ~SavedTensor() { autograd->saved_destroy(saved_); }

  nb::object unpack() const {
    tenon_tensor* tensor;
    ErrorSink err;
    check(autograd->saved_unpack(saved_, &tensor, err), err);
    return adopt(tensor);
  }

 private:
  tenon_saved* saved_;
};

// `user` is a Python function from a list of output gradients to a sequence of input gradients.
tenon_status run_custom_backward(void* user, tenon_tensor* const* grad_outputs, uint32_t noutputs,
                                 tenon_tensor** grad_inputs, uint32_t ninputs, tenon_err* err) {
  PythonThread python;
  if (!python.is_alive()) return tenon::fail(err, TENON_CANCELLED, "Python is shutting down");
  try {
    nb::list grads;
    for (uint32_t i = 0; i < noutputs; ++i) {
      if (grad_outputs[i]) host->tensor_retain(grad_outputs[i]);
      grads.append(adopt(grad_outputs[i]));
    }
    nb::object result = nb::handle(static_cast<PyObject*>(user))(grads);
    std::vector<tenon_tensor*> tensors = handles(result, "backward of a custom function");
    if (tensors.size() != ninputs) {
      raise_error(PyExc_ValueError, "backward of a custom function: expected %u gradients, got %zu",
                  ninputs, tensors.size());
      throw nb::python_error();
    }
    for (uint32_t i = 0; i < ninputs; ++i) {
      if (tensors[i]) host->tensor_retain(tensors[i]);
      grad_inputs[i] = tensors[i];
    }
    return TENON_OK;
  } catch (nb::python_error& error) {
    error.restore();
    return fail_from_python(err);
  } catch (...) {
    return tenon::fail(err, TENON_INTERNAL, "backward of a custom function threw a C++ exception");
  }
}

void drop_object(void* user) {
  PythonThread python;
  if (python.is_alive()) Py_DECREF(static_cast<PyObject*>(user));
}

void record_function(const char* name, nb::tuple inputs, nb::tuple outputs,
                     nb::callable backward_function) {
  const tenon_autograd_api& api = autograd_service();
  auto ins = handles(inputs, name), outs = handles(outputs, name);
  ErrorSink err;
  PyObject* user = nb::object(backward_function).release().ptr();
  tenon_status status =
      api.record(name, ins.data(), static_cast<uint32_t>(ins.size()), outs.data(),
                 static_cast<uint32_t>(outs.size()), run_custom_backward, user, drop_object, err);
  if (status != TENON_OK) Py_DECREF(user);
  check(status, err);
}

}  // namespace

bool run_backward(std::span<tenon_tensor* const> outputs, std::span<tenon_tensor* const> grads,
                  uint32_t flags) {
  const tenon_autograd_api* api = require_autograd();
  if (!api) return false;
  note_backward(flags, true);
  BackwardPass pass;
  ErrorSink err;
  PyThreadState* thread = PyEval_SaveThread();
  tenon_status status = api->backward(outputs.data(), grads.data(),
                                      static_cast<uint32_t>(outputs.size()), flags, err);
  PyEval_RestoreThread(thread);
  note_backward_end();
  if (status != TENON_OK) return raise(status, err);
  return pass.finish();
}

void add_autograd_functions(nb::module_& module) {
  module.def("_backward", &backward);
  module.def("_gradients", &gradients);
  module.def(
      "is_grad_enabled", [] { return ensure_loaded() && autograd && autograd->enabled(); },
      "Whether this thread records operators for gradients.");
  module.def("_set_grad_enabled", [](bool on) { return autograd_service().set_enabled(on) != 0; });
  module.def("_call_after_backward", [](nb::callable callable) {
    if (!call_after_backward(callable.ptr())) throw nb::python_error();
  });
  module.def("_backward_pass_number", &backward_pass_number,
             "The number of the backward pass of this thread, of no other pass; 0: there is none.");
  module.def("_record", &record_function);
  nb::class_<SavedTensor>(module, "SavedTensor",
                          "A tensor kept for backward, with the version it had.")
      .def(nb::init<nb::handle, bool>())
      .def("unpack", &SavedTensor::unpack);
  add_hook_handle(module);
  add_saved_tensor_hooks(module);
}

}  // namespace tenon::python
