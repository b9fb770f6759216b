// SPDX-License-Identifier: Apache-2.0
#include "autograd_methods.hpp"

#include "autograd_hooks.hpp"
#include "autograd_module.hpp"
#include "composed.hpp"
#include "errors.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

PyObject* tensor_detach(PyObject* self, PyObject*) {
  tenon_tensor *tensor = part_with_history(handle_of(self)), *result;
  if (!tensor) return nullptr;
  ErrorSink err;
  tenon_status status = autograd
                            ? autograd->detach(tensor, &result, err)
                            : host->tensor_view(tensor, tensor->dtype, tensor->ndim, tensor->shape,
                                                tensor->strides, 0, &result, err);
  if (status != TENON_OK) return raise(status, err);
  return tensor == handle_of(self) ? wrap(result)
                                   : wrap_with_values(handle_of(self), Tensor::adopt(result));
}

PyObject* tensor_requires_grad_(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"requires_grad", nullptr};
  int on = 1;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|p:requires_grad_",
                                   const_cast<char**>(names), &on))
    return nullptr;
  const tenon_autograd_api* api = require_autograd();
  if (!api) return nullptr;
  tenon_tensor* tensor = part_with_history(handle_of(self));
  if (!tensor) return nullptr;
  ErrorSink err;
  tenon_status status = api->set_requires_grad(tensor, on, err);
  return status == TENON_OK ? Py_NewRef(self) : raise(status, err);
}

PyObject* tensor_retain_grad(PyObject* self, PyObject*) {
  const tenon_autograd_api* api = require_autograd();
  if (!api) return nullptr;
  tenon_tensor* tensor = part_with_history(handle_of(self));
  if (!tensor) return nullptr;
  ErrorSink err;
  tenon_status status = api->retain_grad(tensor, err);
  if (status != TENON_OK) return raise(status, err);
  Py_RETURN_NONE;
}

PyObject* tensor_backward(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"gradient", "retain_graph", "create_graph", nullptr};
  PyObject *gradient = Py_None, *retain_graph = Py_None;
  int create_graph = 0;
  bool has_arguments = keywords || PyTuple_GET_SIZE(arguments) > 0;
  if (has_arguments &&
      !PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOp:backward", const_cast<char**>(names),
                                   &gradient, &retain_graph, &create_graph))
    return nullptr;
  tenon_tensor *output = handle_of(self), *grad = nullptr;
  if (gradient != Py_None && !(grad = require_tensor(gradient, "backward(): argument 'gradient'")))
    return nullptr;
  int retain = retain_graph == Py_None ? create_graph : PyObject_IsTrue(retain_graph);
  if (retain < 0) return nullptr;
  uint32_t flags =
      (retain ? TENON_BACKWARD_RETAIN_GRAPH : 0) | (create_graph ? TENON_BACKWARD_CREATE_GRAPH : 0);
  if (!run_backward({&output, 1}, {&grad, 1}, flags)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* tensor_register_hook(PyObject* self, PyObject* hook) {
  return add_hook(self, hook, HookTime::kGradient);
}

PyObject* tensor_register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  return add_hook(self, hook, HookTime::kAfterAccumulate);
}

}  // namespace tenon::python
