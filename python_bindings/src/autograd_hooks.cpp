// SPDX-License-Identifier: Apache-2.0
#include "autograd_hooks.hpp"

#include <algorithm>

#include <nanobind/nanobind.h>
#include <tenon/services/graph.h>

#include "autograd_module.hpp"
#include "errors.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"

namespace nb = nanobind;

namespace tenon::python {

// Alive while the core owns it, or while a TensorObject lists it. Guarded by the GIL.
struct Hook {
  Hook* next;
  PyObject* callable;  // NULL once the core has dropped it
  uint64_t id;
  bool is_listed;
  PyObject* leaf;  // of a hook after accumulation: the object that lists it, while it does
};

namespace {

// What register_hook returns.
struct HookHandle {
  Tensor tensor;
  uint64_t id;

  void remove() {
    if (!tensor) return;
    Tensor held = std::move(tensor);
    ErrorSink err;
    if (autograd->hook_remove(held.get(), id, err) != TENON_OK)
      host->err_clear(err);  // gone already
  }
};

tenon_status run_hook(void* user, tenon_tensor* grad, tenon_tensor** replacement, tenon_err* err) {
  PythonThread python;
  if (!python.is_alive()) return TENON_OK;
  PyObject* argument = wrap_borrowed(grad);
  PyObject* result =
      argument ? PyObject_CallOneArg(static_cast<Hook*>(user)->callable, argument) : nullptr;
  Py_XDECREF(argument);
  if (!result) return fail_from_python(err);
  tenon_status status = TENON_OK;
  if (is_tensor(result)) {
    *replacement = handle_of(result);
    host->tensor_retain(*replacement);
  } else if (result != Py_None) {
    raise_error(PyExc_TypeError, "a gradient hook returns a Tensor or None, got %s",
                type_name(result));
    status = fail_from_python(err);
  }
  Py_DECREF(result);
  return status;
}

// The hook sees the leaf, so that it can use and clear .grad. Without the object through which it
// was registered, Python code cannot reach .grad.
tenon_status run_hook_after_accumulate(void* user, tenon_tensor*, tenon_tensor**, tenon_err* err) {
  PythonThread python;
  auto* hook = static_cast<Hook*>(user);
  if (!python.is_alive() || !hook->leaf) return TENON_OK;
  PyObject* leaf = Py_NewRef(hook->leaf);
  PyObject* result = PyObject_CallOneArg(hook->callable, leaf);
  Py_DECREF(leaf);
  if (!result) return fail_from_python(err);
  Py_DECREF(result);
  return TENON_OK;
}

void drop_hook(void* user) {
  PythonThread python;
  if (!python.is_alive()) return;
  auto* hook = static_cast<Hook*>(user);
  PyObject* callable = std::exchange(hook->callable, nullptr);
  if (!hook->is_listed) delete hook;
  Py_XDECREF(callable);
}

}  // namespace

PyObject* add_hook(PyObject* tensor, PyObject* callable, HookTime time) {
  const bool is_after = time == HookTime::kAfterAccumulate;
  if (!PyCallable_Check(callable))
    return raise_error(PyExc_TypeError, "%s(): expected a function, got %s",
                       is_after ? "register_post_accumulate_grad_hook" : "register_hook",
                       type_name(callable));
  const tenon_autograd_api* api = require_autograd();
  if (!api) return nullptr;
  note_in_recording(TENON_GRAPH_NOTE_HOOK);
  auto* object = reinterpret_cast<TensorObject*>(tensor);
  auto* hook = new Hook{object->hooks, Py_NewRef(callable), 0, false, is_after ? tensor : nullptr};
  ErrorSink err;
  tenon_status status =
      is_after ? api->hook_add_after_accumulate(object->tensor, run_hook_after_accumulate, hook,
                                                drop_hook, &hook->id, err)
               : api->hook_add(object->tensor, run_hook, hook, drop_hook, &hook->id, err);
  if (status != TENON_OK) {
    Py_DECREF(callable);
    delete hook;
    return raise(status, err);
  }
  hook->is_listed = true;
  bool first = !object->hooks;
  object->hooks = hook;
  if (first && is_exact_tensor(tensor))
    PyObject_GC_Track(tensor);  // subclasses are tracked from birth
  return nb::cast(HookHandle{Tensor::borrow(object->tensor), hook->id}).release().ptr();
}

void forget_hooks(TensorObject& tensor) {
  for (Hook* hook = std::exchange(tensor.hooks, nullptr); hook;) {
    Hook* next = hook->next;
    hook->is_listed = false;
    hook->leaf = nullptr;
    if (!hook->callable) delete hook;
    hook = next;
  }
}

int visit_hooks(const TensorObject& tensor, visitproc visit, void* arg) {
  for (const Hook* hook = tensor.hooks; hook; hook = hook->next) Py_VISIT(hook->callable);
  return 0;
}

void remove_hooks(TensorObject& tensor) {
  for (Hook* hook = tensor.hooks; hook; hook = hook->next) {
    if (!hook->callable) continue;
    ErrorSink err;
    if (autograd->hook_remove(tensor.tensor, hook->id, err) != TENON_OK) host->err_clear(err);
  }
}

uint64_t hook_state(const TensorObject& tensor) {
  // One that comes has the highest number of all, and one that goes leaves fewer.
  uint64_t newest = 0, count = 0;
  for (const Hook* hook = tensor.hooks; hook; hook = hook->next)
    if (hook->callable) newest = std::max(newest, hook->id), ++count;
  return count ? newest << 20 | count : 0;
}

PyObject* list_hooks(const TensorObject& tensor) {
  PyObject* list = PyList_New(0);
  for (const Hook* hook = tensor.hooks; list && hook; hook = hook->next)
    if (hook->callable && PyList_Append(list, hook->callable) < 0) Py_CLEAR(list);
  return list;
}

void add_hook_handle(nb::module_& module) {
  nb::class_<HookHandle>(module, "HookHandle",
                         "Returned by the methods of Tensor that register hooks.")
      .def("remove", &HookHandle::remove, "Take the hook off again. Removing twice does nothing.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](HookHandle& self, nb::args) { self.remove(); });
}

}  // namespace tenon::python
