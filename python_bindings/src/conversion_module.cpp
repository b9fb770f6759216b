// SPDX-License-Identifier: Apache-2.0
// Functions that make tensors from Python data.
#include "modules.hpp"

#include <cstring>
#include <vector>

#include "call.hpp"
#include "convert.hpp"
#include "dlpack.hpp"
#include "errors.hpp"
#include "host_call.hpp"
#include "runtime.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

nb::object give(Tensor tensor) {
  PyObject* object = to_python(std::move(tensor));
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

void set_requires_grad(const Tensor& tensor) {
  const tenon_autograd_api* api = require_autograd();
  if (!api) throw nb::python_error();
  ErrorSink err;
  tenon_status status = api->set_requires_grad(tensor.get(), 1, err);
  if (status == TENON_OK) return;
  raise(status, err);
  throw nb::python_error();
}

struct Target {
  Target(nb::handle dtype_argument, nb::handle device_argument) {
    if (!optional_dtype(dtype_argument.ptr(), kAnyDtype, dtype) ||
        !optional_device(device_argument.ptr(), TENON_DEVICE_NONE, device))
      throw nb::python_error();
  }
  int32_t dtype;
  tenon_device_id device;
};

// Where data become a tensor if nothing says so: a tensor stays where it is.
tenon_device_id device_for(PyObject* data) {
  if (!has_default_device) [[likely]]
    return TENON_DEVICE_NONE;
  return is_tensor(data) ? tenon_device_id{TENON_DEVICE_NONE} : chosen_device();
}

nb::object make_tensor(nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
  Target target(dtype, device);
  if (target.device == TENON_DEVICE_NONE) target.device = device_for(data.ptr());
  Tensor tensor = tensor_from_data(data.ptr(), target.dtype, target.device);
  if (tensor && requires_grad) set_requires_grad(tensor);
  return give(std::move(tensor));
}

// tensor() without names, as it is nearly always called; the general function reads the others.
PyObject* general_tensor;

PyObject* call_tensor(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keyword_names) {
  if (count == 1 && !keyword_names) [[likely]]
    return to_python(tensor_from_data(*arguments, kAnyDtype, device_for(*arguments)));
  return PyObject_Vectorcall(general_tensor, arguments, static_cast<size_t>(count), keyword_names);
}

PyMethodDef tensor_function = {
    "tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_tensor)),
    METH_FASTCALL | METH_KEYWORDS,
    "tensor(data, dtype=None, device=None, requires_grad=False)\n--\n\n"
    "A new tensor with the values of `data`: a number, nested lists, an array or a tensor. Python "
    "floats become float32, ints int64; arrays keep their dtype."};

// Whether `tensor`, made of `data`, lies in its memory: then anything else made of it does so, too.
bool shares_memory(nb::handle data, const tenon_tensor* tensor) {
  Tensor again = as_tensor(data.ptr(), kAnyDtype, TENON_DEVICE_NONE);
  if (!again) throw nb::python_error();
  return again->numel == 0 || again->data == tensor->data;
}

[[noreturn]] void refuse_copy(const char* function) {
  raise_error(PyExc_ValueError,
              "%s(): expected data that a tensor of this dtype and device can share, got some that "
              "must be copied, with copy=False; leave copy out to allow a copy",
              function);
  throw nb::python_error();
}

nb::object asarray(nb::handle data, nb::handle dtype, nb::handle device, nb::handle copy) {
  Target target(dtype, device);
  if (copy.is(nb::bool_(true)))
    return give(tensor_from_data(data.ptr(), target.dtype, target.device));
  Tensor tensor = as_tensor(data.ptr(), target.dtype, target.device);
  if (tensor && copy.is(nb::bool_(false)) && !shares_memory(data, tensor.get()))
    refuse_copy("asarray");
  if (tensor && PyObject_TypeCheck(data.ptr(), &tensor_type) &&
      handle_of(data.ptr()) == tensor.get())
    return nb::borrow(data);
  return give(std::move(tensor));
}

nb::object from_numpy(nb::handle array) {
  if (!PyObject_CheckBuffer(array.ptr())) {
    raise_error(PyExc_TypeError,
                "from_numpy(): expected an array, got %s; convert it with tenon.tensor(...)",
                type_name(array.ptr()));
    throw nb::python_error();
  }
  return give(tensor_from_buffer(array.ptr()));
}

nb::object from_buffer(nb::handle buffer, nb::handle dtype, nb::handle shape, int64_t offset) {
  Target target(dtype, nb::none());
  int32_t id = target.dtype == kAnyDtype ? TENON_DTYPE_U8 : target.dtype;
  return give(tensor_from_raw_buffer(buffer.ptr(), id, shape.ptr(), offset));
}

nb::object from_dlpack(nb::handle producer, nb::handle device, nb::handle copy) {
  Target target(nb::none(), device);
  Tensor shared = tensor_from_dlpack(producer.ptr());
  Tensor tensor;
  if (shared)
    tensor = convert_tensor(shared.get(), kAnyDtype, target.device, copy.is(nb::bool_(true)));
  if (tensor && copy.is(nb::bool_(false)) && tensor.get() != shared.get())
    refuse_copy("from_dlpack");
  return give(std::move(tensor));
}

// from_dlpack() without options, which each input of a compiled step passes.
PyObject* general_from_dlpack;

PyObject* call_from_dlpack(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* keyword_names) {
  if (count == 1 && !keyword_names) [[likely]]
    return to_python(tensor_from_dlpack(*arguments));
  return PyObject_Vectorcall(general_from_dlpack, arguments, static_cast<size_t>(count),
                             keyword_names);
}

PyMethodDef from_dlpack_function = {
    "from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_from_dlpack)),
    METH_FASTCALL | METH_KEYWORDS,
    "from_dlpack(x, *, device=None, copy=None)\n--\n\n"
    "A tensor that shares the memory of an object with __dlpack__."};

PyObject* call_dlpack_exchange(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 2) [[likely]]
    return object_by_exchange(arguments[0], arguments[1]);
  return raise_error(PyExc_TypeError,
                     "dlpack_exchange(): expected a tensor and a type, got %zd arguments", count);
}

PyMethodDef dlpack_exchange_function = {
    "dlpack_exchange",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_dlpack_exchange)),
    METH_FASTCALL,
    "dlpack_exchange(tensor, type, /)\n--\n\n"
    "The tensor's memory as a tensor of another library, of this type, by its DLPack table; None: "
    "it has none."};

// What pickle and deepcopy call.
nb::object rebuild(nb::handle type, nb::bytes bytes, nb::handle dtype, nb::tuple shape,
                   nb::handle device, bool requires_grad) {
  if (!PyType_Check(type.ptr()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), &tensor_type)) {
    raise_error(PyExc_TypeError, "expected tenon.Tensor or a subclass of it in a pickle, got %R",
                type.ptr());
    throw nb::python_error();
  }
  Target target(dtype, device);
  std::vector<int64_t> extents;
  for (nb::handle extent : shape) extents.push_back(nb::cast<int64_t>(extent));
  Tensor tensor =
      make_host_tensor(target.dtype, static_cast<int32_t>(extents.size()), extents.data());
  if (!tensor) throw nb::python_error();
  if (bytes.size() != static_cast<size_t>(tensor->numel) * host->dtype_size(target.dtype))
    throw nb::value_error("the pickled bytes do not match the shape");
  if (bytes.size() > 0) std::memcpy(tensor->data, bytes.c_str(), bytes.size());
  tensor = convert_tensor(tensor.get(), kAnyDtype, target.device);
  if (!tensor) throw nb::python_error();
  if (requires_grad) set_requires_grad(tensor);
  PyObject* object = wrap_as(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor.release());
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace

namespace {

// The shape is given as a list of sizes.
nb::object pinned_empty(nb::handle device, nb::handle dtype, nb::handle sizes) {
  need_plugins();
  tenon_device_id id = TENON_DEVICE_NONE;
  int32_t type = TENON_DTYPE_F32;
  if (!optional_device(device.ptr(), TENON_DEVICE_NONE, id) ||
      !optional_dtype(dtype.ptr(), TENON_DTYPE_F32, type))
    throw nb::python_error();
  std::vector<int64_t> shape;
  for (nb::handle size : nb::iter(sizes)) shape.push_back(nb::cast<int64_t>(size));
  tenon_tensor* made;
  ErrorSink err;
  check(host->tensor_create_pinned(id, type, static_cast<int32_t>(shape.size()), shape.data(),
                                   &made, err),
        err);
  return nb::steal(wrap(made));
}

}  // namespace

void add_conversion_functions(nb::module_& module) {
  general_tensor =
      nb::cpp_function(&make_tensor, nb::name("tensor"), nb::arg("data"),
                       nb::arg("dtype").none() = nb::none(), nb::arg("device").none() = nb::none(),
                       nb::arg("requires_grad") = false)
          .release()
          .ptr();
  module.attr("tensor") = nb::steal(
      PyCFunction_NewEx(&tensor_function, nullptr, nb::object(module.attr("__name__")).ptr()));
  module.def("asarray", &asarray, nb::arg("data"), nb::arg("dtype").none() = nb::none(),
             nb::kw_only(), nb::arg("device").none() = nb::none(),
             nb::arg("copy").none() = nb::none(),
             "`data` as a tensor, sharing memory where that is possible.");
  module.def("from_numpy", &from_numpy, nb::arg("array"),
             "A tensor that shares the memory of a NumPy array.");
  module.def("frombuffer", &from_buffer, nb::arg("buffer"), nb::arg("dtype").none() = nb::none(),
             nb::arg("shape").none() = nb::none(), nb::arg("offset") = 0,
             "A tensor over the bytes of any buffer, from byte `offset` on. Without `shape`, all "
             "that is there.");
  general_from_dlpack =
      nb::cpp_function(&from_dlpack, nb::name("from_dlpack"), nb::arg("x"), nb::kw_only(),
                       nb::arg("device").none() = nb::none(), nb::arg("copy").none() = nb::none())
          .release()
          .ptr();
  for (PyMethodDef* function : {&from_dlpack_function, &dlpack_exchange_function})
    module.attr(function->ml_name) =
        nb::steal(PyCFunction_NewEx(function, nullptr, nb::object(module.attr("__name__")).ptr()));
  module.def("pinned_empty", &pinned_empty, nb::arg("device"), nb::arg("dtype"), nb::arg("shape"));
  module.def("_rebuild", &rebuild);
}

}  // namespace tenon::python
