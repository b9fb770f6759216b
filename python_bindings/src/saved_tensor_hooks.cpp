// SPDX-License-Identifier: Apache-2.0
// Pairs of Python functions that keep what nodes save: tenon.autograd.saved_tensors_hooks.
#include <nanobind/nanobind.h>
#include <tenon/services/graph.h>

#include <thread>
#include <vector>

#include "autograd_module.hpp"
#include "errors.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// What a node owns: the object that pack returned, and the function that reads it.
struct Content {
  nb::object packed;
  nb::object unpack;
  Tensor tensor;  // `packed`, if it is a tensor: a write to it would go unnoticed
  uint32_t version;
};

class SavedTensorHooks {
 public:
  SavedTensorHooks(nb::callable pack, nb::callable unpack) : pack_(pack), unpack_(unpack) {}
  SavedTensorHooks(const SavedTensorHooks&) = delete;

  // The thread has a pointer to `hooks_` until exit, and so a reference to the object.
  void enter(nb::handle self) {
    const tenon_autograd_api* api = require_autograd();
    if (!api) throw nb::python_error();
    note_in_recording(TENON_GRAPH_NOTE_HOOK);
    outer_.push_back({api->set_saved_hooks(&hooks_), std::this_thread::get_id()});
    self.inc_ref();
  }
  void exit(nb::handle self) {
    if (outer_.empty() || outer_.back().thread != std::this_thread::get_id()) {
      raise_error(
          PyExc_RuntimeError,
          "saved_tensors_hooks: expected the end of the block on the thread that entered it");
      throw nb::python_error();
    }
    autograd->set_saved_hooks(outer_.back().hooks);
    outer_.pop_back();
    self.dec_ref();
  }

 private:
  static tenon_status pack(void* user, tenon_tensor* tensor, void** packed, tenon_err* err);
  static tenon_status unpack(void* packed, tenon_tensor** out, tenon_err* err);
  static void drop(void* packed);

  nb::object pack_, unpack_;
  tenon_saved_hooks hooks_ = {
      .struct_size = sizeof(tenon_saved_hooks),
      .pack = pack,
      .unpack = unpack,
      .drop = drop,
      .user = this,
  };
  struct Outer {
    const tenon_saved_hooks* hooks;
    std::thread::id thread;
  };
  std::vector<Outer> outer_;
};

tenon_status SavedTensorHooks::pack(void* user, tenon_tensor* tensor, void** packed,
                                    tenon_err* err) {
  PythonThread python;
  if (!python.is_alive()) return tenon::fail(err, TENON_CANCELLED, "Python is shutting down");
  auto& self = *static_cast<SavedTensorHooks*>(user);
  PyObject* argument = wrap_borrowed(tensor);
  PyObject* result = argument ? PyObject_CallOneArg(self.pack_.ptr(), argument) : nullptr;
  Py_XDECREF(argument);
  if (!result) return fail_from_python(err);
  auto* content = new Content{nb::steal(result), self.unpack_, {}, 0};
  if (is_tensor(result)) {
    content->tensor = Tensor::borrow(handle_of(result));
    content->version = host->tensor_version(handle_of(result));
  }
  *packed = content;
  return TENON_OK;
}

tenon_status SavedTensorHooks::unpack(void* packed, tenon_tensor** out, tenon_err* err) {
  PythonThread python;
  if (!python.is_alive()) return tenon::fail(err, TENON_CANCELLED, "Python is shutting down");
  const auto& content = *static_cast<const Content*>(packed);
  if (content.tensor) {
    uint32_t found = host->tensor_version(content.tensor.get());
    if (found != content.version)
      return fail_format(err, TENON_FAILED_PRECONDITION,
                         "the tensor that a pack hook returned was modified in place: expected "
                         "version %u, found version %u; return a clone() from the hook",
                         content.version, found);
  }
  PyObject* result = PyObject_CallOneArg(content.unpack.ptr(), content.packed.ptr());
  if (!result) return fail_from_python(err);
  if (!is_tensor(result)) {
    raise_error(PyExc_TypeError, "an unpack hook returns a Tensor, got %s", type_name(result));
    Py_DECREF(result);
    return fail_from_python(err);
  }
  *out = handle_of(result);
  host->tensor_retain(*out);
  Py_DECREF(result);
  return TENON_OK;
}

void SavedTensorHooks::drop(void* packed) {
  PythonThread python;
  if (python.is_alive()) delete static_cast<Content*>(packed);
}

}  // namespace

void add_saved_tensor_hooks(nb::module_& module) {
  nb::class_<SavedTensorHooks>(module, "_SavedTensorHooks")
      .def(nb::init<nb::callable, nb::callable>())
      .def("enter", [](nb::handle self) { nb::cast<SavedTensorHooks&>(self).enter(self); })
      .def("exit", [](nb::handle self) { nb::cast<SavedTensorHooks&>(self).exit(self); });
}

}  // namespace tenon::python
