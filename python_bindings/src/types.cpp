// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <nanobind/stl/string.h>
#include <tenon/dtypes.h>

#include <array>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>

#include "added_keywords.hpp"
#include "default_device.hpp"
#include "errors.hpp"
#include "runtime.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

PyTypeObject* dtype_type;
PyTypeObject* device_type;
PyObject* dtype_objects[TENON_DTYPE_COUNT];

bool is_floating(int32_t id) { return kDtypeTable[id].type_class == DtypeClass::kFloating; }
bool is_complex(int32_t id) { return kDtypeTable[id].type_class == DtypeClass::kComplex; }
bool is_integer(int32_t id) {
  return kDtypeTable[id].type_class == DtypeClass::kUnsigned ||
         kDtypeTable[id].type_class == DtypeClass::kSigned;
}

// The class of a dtype as Python has it.
const char* class_name(DtypeClass type_class) {
  switch (type_class) {
    case DtypeClass::kBool:
      return "bool";
    case DtypeClass::kUnsigned:
      return "unsigned";
    case DtypeClass::kSigned:
      return "signed";
    case DtypeClass::kFloating:
      return "floating";
    case DtypeClass::kComplex:
      return "complex";
    case DtypeClass::kStorage:
      return "storage";
  }
  return "";
}

// (eps, max, min, smallest_normal) of a floating dtype, or None.
nb::object limits_of(int32_t id) {
  switch (id) {
#define TENON_CASE(id, ...) \
  case TENON_DTYPE_##id:    \
    return nb::make_tuple(__VA_ARGS__);
    TENON_FLOAT_DTYPES(TENON_CASE)
#undef TENON_CASE
  }
  return nb::none();
}

// The table of dtypes, for tenon/_tensor/dtypes.py, which names the columns.
nb::tuple dtype_table() {
  nb::list rows;
  for (const DtypeRow& row : kDtypeTable)
    rows.append(nb::make_tuple(nb::borrow(dtype_objects[row.id]), class_name(row.type_class),
                               row.dl.bits, row.dl.lanes, row.safetensors, row.alias,
                               limits_of(row.id)));
  return nb::tuple(rows);
}

// From a name, also NumPy's spelling of bool, and those of ml_dtypes and PyTorch.
bool dtype_from_name(const char* name, int32_t& id) {
  id = host->dtype_find(name);
  for (const DtypeRow& row : kDtypeTable)
    if (id < 0 && *row.alias && std::string_view(row.alias) == name) id = row.id;
  return id >= 0;
}

// numpy.dtype('float32') has a name; numpy.float32 is a class with one.
bool dtype_from_numpy(PyObject* object, int32_t& id) {
  PyObject* owner = PyType_Check(object) ? object : reinterpret_cast<PyObject*>(Py_TYPE(object));
  PyObject* module = PyObject_GetAttrString(owner, "__module__");
  const char* module_name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
  std::string_view package(module_name ? module_name : "");
  bool known = package.starts_with("numpy") || package.starts_with("ml_dtypes");
  PyObject* name =
      known ? PyObject_GetAttrString(object, PyType_Check(object) ? "__name__" : "name") : nullptr;
  bool found = name && PyUnicode_Check(name) && dtype_from_name(PyUnicode_AsUTF8(name), id);
  PyErr_Clear();
  Py_XDECREF(name);
  Py_XDECREF(module);
  return found;
}

std::string device_text(tenon_device_id id) {
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(id));
  return std::string(kind ? kind : "unknown") + ":" + std::to_string(TENON_DEVICE_INDEX(id));
}

nb::object make_dtype(nb::handle specification) {
  int32_t id;
  if (to_dtype(specification.ptr(), id)) return nb::borrow(dtype_objects[id]);
  if (!PyErr_Occurred())
    raise_error(PyExc_TypeError, "expected a dtype or its name, such as 'float32', got %R",
                specification.ptr());
  throw nb::python_error();
}

nb::object make_device(nb::handle specification, nb::handle index) {
  tenon_device_id id = 0;
  bool found = false;
  if (index.is_none()) {
    found = to_device_id(specification.ptr(), id);
  } else {
    nb::object name = nb::steal(PyUnicode_FromFormat("%S:%S", specification.ptr(), index.ptr()));
    found = name.is_valid() && to_device_id(name.ptr(), id);
  }
  if (found) return nb::steal(device_object(id));
  if (!PyErr_Occurred())
    raise_error(PyExc_TypeError, "expected a device or its name, such as 'cpu:0', got %R",
                specification.ptr());
  throw nb::python_error();
}

bool same_dtype(const DType& self, nb::handle other) {
  int32_t id;
  bool comparable = Py_TYPE(other.ptr()) == dtype_type || PyUnicode_Check(other.ptr()) ||
                    (!PyType_Check(other.ptr()) && dtype_from_numpy(other.ptr(), id));
  bool same = comparable && to_dtype(other.ptr(), id) && id == self.id;
  PyErr_Clear();
  return same;
}

bool same_device(const Device& self, nb::handle other) {
  tenon_device_id id;
  bool same = to_device_id(other.ptr(), id) && id == self.id;
  PyErr_Clear();
  return same;
}

}  // namespace

PyObject* dtype_object(int32_t id) { return Py_NewRef(dtype_objects[id]); }

PyObject* device_object(tenon_device_id id) {
  static auto& objects = *new std::unordered_map<tenon_device_id, PyObject*>;
  PyObject*& object = objects[id];
  if (!object) object = nb::cast(new Device{id}, nb::rv_policy::take_ownership).release().ptr();
  return Py_XNewRef(object);
}

bool to_dtype(PyObject* object, int32_t& id) {
  if (Py_TYPE(object) == dtype_type) {
    id = nb::inst_ptr<DType>(object)->id;
    return true;
  }
  if (PyUnicode_Check(object)) {
    const char* name = PyUnicode_AsUTF8(object);
    if (name && dtype_from_name(name, id)) return true;
    return raise_error(PyExc_ValueError, "expected the name of a dtype, such as 'float32', got %R",
                       object);
  }
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return id = TENON_DTYPE_BOOL, true;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return id = TENON_DTYPE_I64, true;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return id = default_float, true;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return id = default_complex(), true;
  return dtype_from_numpy(object, id);
}

namespace {

// Plugins written for other frameworks lie in a folder of the environment. They can only be found out about
// by running them, so they are loaded when a program names a device that is not known, and only once.
bool load_foreign_plugins() {
  static bool is_done = false;
  const char* folder = ::secure_getenv("CUSTOM_DEVICE_ROOT");
  if (std::exchange(is_done, true) || !folder || !*folder) return false;
  try {
    nb::module_::import_("tenon.compat.paddle").attr("_load_for_unknown_device")(folder);
    return true;
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("CUSTOM_DEVICE_ROOT");
    return false;
  }
}

}  // namespace

bool to_device_id(PyObject* object, tenon_device_id& id) {
  if (Py_TYPE(object) == device_type) {
    id = nb::inst_ptr<Device>(object)->id;
    return true;
  }
  if (!PyUnicode_Check(object)) return false;
  const char* name = PyUnicode_AsUTF8(object);
  if (!name || !ensure_loaded()) return false;
  ErrorSink err;
  tenon_status status = host->device_find(name, &id, err);
  if (status == TENON_NOT_FOUND && load_foreign_plugins()) {
    host->err_clear(err);
    status = host->device_find(name, &id, err);
  }
  if (status == TENON_OK) return true;
  return raise(status, err);
}

bool optional_dtype(PyObject* object, int32_t fallback, int32_t& id) {
  id = fallback;
  if (object == Py_None || to_dtype(object, id)) return true;
  if (PyErr_Occurred()) return false;
  return raise_error(PyExc_TypeError, "expected a dtype such as tenon.float32 or 'float32', got %R",
                     object);
}

bool optional_device(PyObject* object, tenon_device_id fallback, tenon_device_id& id) {
  id = fallback;
  if (object == Py_None || to_device_id(object, id)) return true;
  if (PyErr_Occurred()) return false;
  return raise_error(PyExc_TypeError,
                     "expected a device such as 'cpu' or tenon.device('cpu'), got %R", object);
}

void add_types(nb::module_& module) {
  nb::class_<DType> dtype(module, "dtype", "The type of a tensor's elements.");
  dtype.def(nb::new_(&make_dtype), nb::arg("name"))
      .def_prop_ro("name", [](const DType& self) { return host->dtype_name(self.id); })
      .def_prop_ro(
          "itemsize", [](const DType& self) { return host->dtype_size(self.id); },
          "Bytes per element.")
      .def_prop_ro("is_floating_point", [](const DType& self) { return is_floating(self.id); })
      .def_prop_ro("is_complex", [](const DType& self) { return is_complex(self.id); })
      .def_prop_ro("is_integer", [](const DType& self) { return is_integer(self.id); })
      .def_prop_ro("is_signed",
                   [](const DType& self) {
                     const uint8_t code = kDtypeTable[self.id].dl.code;
                     return code != TENON_DL_BOOL && code != TENON_DL_UINT &&
                            code != TENON_DL_FLOAT8_E8M0FNU;
                   })
      .def("__eq__", &same_dtype, nb::arg("other").none())
      .def("__hash__",
           [](const DType& self) { return nb::hash(nb::str(host->dtype_name(self.id))); })
      .def("__repr__",
           [](const DType& self) { return std::string("tenon.") + host->dtype_name(self.id); })
      .def("__str__", [](const DType& self) { return host->dtype_name(self.id); })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(self.attr("name")));
      });
  dtype.attr("__module__") = "tenon";
  module.def("_promote", [](const DType& a, const DType& b) {
    return nb::steal(dtype_object(host->dtype_promote(a.id, b.id)));
  });
  module.def("_dtype_table", &dtype_table);
  dtype_type = reinterpret_cast<PyTypeObject*>(dtype.ptr());

  nb::class_<Device> device(module, "device", "Where a tensor's memory is and its operators run.");
  device.def(nb::new_(&make_device), nb::arg("name"), nb::arg("index").none() = nb::none())
      .def_prop_ro(
          "kind",
          [](const Device& self) { return host->device_kind_name(TENON_DEVICE_KIND(self.id)); })
      .def_prop_ro(
          "type",
          [](const Device& self) { return host->device_kind_name(TENON_DEVICE_KIND(self.id)); })
      .def_prop_ro("index", [](const Device& self) { return TENON_DEVICE_INDEX(self.id); })
      .def("__eq__", &same_device, nb::arg("other").none())
      .def("__hash__",
           [](const Device& self) { return nb::hash(nb::str(device_text(self.id).c_str())); })
      .def("__repr__",
           [](const Device& self) { return "tenon.device('" + device_text(self.id) + "')"; })
      .def("__str__", [](const Device& self) { return device_text(self.id); })
      .def(
          "__enter__",
          [](nb::handle self) {
            enter_device(nb::inst_ptr<Device>(self)->id);
            return nb::borrow(self);
          },
          "New tensors of this thread are made here where a call names no device.")
      .def("__exit__", [](nb::handle, nb::args) { leave_device(); })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self)));
      });
  device.attr("__module__") = "tenon";
  device_type = reinterpret_cast<PyTypeObject*>(device.ptr());

  for (int32_t id = 0; id < TENON_DTYPE_COUNT; ++id) {
    nb::object object = nb::cast(new DType{id}, nb::rv_policy::take_ownership);
    module.attr(host->dtype_name(id)) = object;
    dtype_objects[id] = object.release().ptr();
  }
}

}  // namespace tenon::python
