// SPDX-License-Identifier: Apache-2.0
#include "added_keywords.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "modules.hpp"
#include "python/spellings.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// How the dtype follows from a call that names none.
enum class Dtype {
  kDefault,    // the default floating dtype
  kOfNumbers,  // that for floats, int64 or bool for others
  kOfTensor,   // that of the argument
};

struct Creation {
  std::string_view name;
  Dtype dtype;
};

constexpr Creation kCreations[] = {
    {"zeros", Dtype::kDefault},        {"ones", Dtype::kDefault},
    {"empty", Dtype::kDefault},        {"eye", Dtype::kDefault},
    {"linspace", Dtype::kDefault},     {"uniform", Dtype::kDefault},
    {"normal", Dtype::kDefault},       {"full", Dtype::kOfNumbers},
    {"arange", Dtype::kOfNumbers},     {"zeros_like", Dtype::kOfTensor},
    {"ones_like", Dtype::kOfTensor},   {"full_like", Dtype::kOfTensor},
    {"empty_like", Dtype::kOfTensor},  {"uniform_like", Dtype::kOfTensor},
    {"normal_like", Dtype::kOfTensor},
};

const Creation* find_creation(std::string_view name) {
  auto* found = std::find_if(std::begin(kCreations), std::end(kCreations),
                             [&](const Creation& creation) { return creation.name == name; });
  return found == std::end(kCreations) ? nullptr : found;
}

// The arguments of a call, to be changed.
struct Arguments {
  std::vector<PyObject*> objects;  // borrowed
  std::vector<PyObject*> names;    // of the last of them, borrowed
  size_t positional;

  Arguments(PyObject* const* given, size_t count, PyObject* keyword_names) : positional(count) {
    const Py_ssize_t named = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
    objects.assign(given, given + count + static_cast<size_t>(named));
    for (Py_ssize_t i = 0; i < named; ++i) names.push_back(PyTuple_GET_ITEM(keyword_names, i));
  }

  // The keyword's value, which is taken out; NULL if it was not given, or as None.
  PyObject* take(const char* name) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (PyUnicode_CompareWithASCIIString(names[i], name) != 0) continue;
      const auto place = static_cast<ptrdiff_t>(positional + i);
      PyObject* value = objects[static_cast<size_t>(place)];
      objects.erase(objects.begin() + place);
      names.erase(names.begin() + static_cast<ptrdiff_t>(i));
      return value == Py_None ? nullptr : value;
    }
    return nullptr;
  }

  void add(PyObject* name, PyObject* value) {
    names.push_back(name);
    objects.push_back(value);
  }

  bool has_float() const {
    return std::any_of(objects.begin(), objects.end(),
                       [](PyObject* o) { return PyFloat_Check(o); });
  }

  PyObject* call(PyObject* callable, vectorcallfunc function) const {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
    if (!tuple) return nullptr;
    for (size_t i = 0; i < names.size(); ++i)
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
    PyObject* result =
        function(callable, objects.data(), positional, names.empty() ? nullptr : tuple);
    Py_DECREF(tuple);
    return result;
  }
};

constexpr std::string_view kInDtype[] = {"sum",    "prod",    "mean",    "nansum",     "nanmean",
                                         "cumsum", "cumprod", "softmax", "log_softmax"};

// object.to(dtype=dtype)
PyObject* converted(PyObject* object, PyObject* dtype) {
  static PyObject* name = PyUnicode_InternFromString("to");
  static PyObject* keywords = Py_BuildValue("(s)", "dtype");
  PyObject* const arguments[] = {object, dtype};
  return PyObject_VectorcallMethod(name, arguments, 1, keywords);
}

// `tensor`, which requires grad from now on; consumed if that fails.
PyObject* requiring_grad(PyObject* tensor) {
  const tenon_autograd_api* api = tensor ? require_autograd() : nullptr;
  if (api) {
    ErrorSink err;
    tenon_status status = api->set_requires_grad(handle_of(tensor), 1, err);
    if (status == TENON_OK) return tensor;
    raise(status, err);
  }
  Py_XDECREF(tensor);
  return nullptr;
}

void set_default_dtype(nb::handle dtype) {
  int32_t id;
  if (!optional_dtype(dtype.ptr(), -1, id)) throw nb::python_error();
  if (id < TENON_DTYPE_F16 || id > TENON_DTYPE_F64) {
    raise_error(PyExc_TypeError,
                "set_default_dtype(): expected float16, bfloat16, float32 or float64, got %R",
                dtype.ptr());
    throw nb::python_error();
  }
  default_float = id;
}

}  // namespace

int32_t default_complex() {
  return default_float == TENON_DTYPE_F64 ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
}

bool takes_creation_keywords(const char* name) { return find_creation(name) != nullptr; }

PyObject* call_creation(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names, vectorcallfunc call) {
  static PyObject* dtype_name = PyUnicode_InternFromString("dtype");
  const auto& self = *reinterpret_cast<OperatorObject*>(callable);
  const Creation& creation = *find_creation(PyUnicode_AsUTF8(self.name));
  Arguments arguments(objects, static_cast<size_t>(PyVectorcall_NARGS(flags)), keyword_names);
  PyObject* requires_grad = arguments.take("requires_grad");
  const int is_wanted = requires_grad ? PyObject_IsTrue(requires_grad) : 0;
  if (is_wanted < 0) return nullptr;
  PyObject* dtype = arguments.take("dtype");
  PyObject* made = nullptr;
  const bool is_default = creation.dtype == Dtype::kDefault ||
                          (creation.dtype == Dtype::kOfNumbers && arguments.has_float());
  if (!dtype && default_float != TENON_DTYPE_F32 && is_default)
    dtype = made = dtype_object(default_float);
  if (dtype) arguments.add(dtype_name, dtype);
  PyObject* result = arguments.call(callable, call);
  Py_XDECREF(made);
  return is_wanted ? requiring_grad(result) : result;
}

bool takes_dtype_keyword(const char* name) {
  return std::find(std::begin(kInDtype), std::end(kInDtype), name) != std::end(kInDtype);
}

PyObject* call_in_dtype(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names, vectorcallfunc call) {
  Arguments arguments(objects, static_cast<size_t>(PyVectorcall_NARGS(flags)), keyword_names);
  PyObject* dtype = arguments.take("dtype");
  if (!dtype || arguments.objects.empty() || !is_tensor(arguments.objects[0]))
    return arguments.call(callable, call);
  PyObject* x = converted(arguments.objects[0], dtype);
  if (!x) return nullptr;
  arguments.objects[0] = x;
  PyObject* result = arguments.call(callable, call);
  Py_DECREF(x);
  if (!result) return nullptr;
  PyObject* answer = converted(result, dtype);  // small integers are accumulated in a wider dtype
  Py_DECREF(result);
  return answer;
}

bool takes_generator_keyword(const char* name) {
  return std::find(kDraws.begin(), kDraws.end(), std::string_view(name)) != kDraws.end();
}

PyObject* call_with_generator(PyObject* callable, PyObject* const* objects, size_t flags,
                              PyObject* keyword_names, vectorcallfunc call) {
  static PyObject* const generator_name = PyUnicode_InternFromString("generator");
  const int contains = keyword_names ? PySequence_Contains(keyword_names, generator_name) : 0;
  if (contains <= 0) return contains < 0 ? nullptr : call(callable, objects, flags, keyword_names);
  Arguments arguments(objects, static_cast<size_t>(PyVectorcall_NARGS(flags)), keyword_names);
  PyObject* generator = arguments.take("generator");
  if (!generator) return arguments.call(callable, call);
  PyObject* module = PyImport_ImportModule("tenon._tensor.generators");
  PyObject* function = module ? PyObject_GetAttrString(module, "draw_from") : nullptr;
  Py_XDECREF(module);
  if (!function) return nullptr;
  PyObject* const before[] = {generator, callable};
  arguments.objects.insert(arguments.objects.begin(), std::begin(before), std::end(before));
  arguments.positional += std::size(before);
  PyObject* result = arguments.call(function, PyObject_Vectorcall);
  Py_DECREF(function);
  return result;
}

void add_default_dtype_functions(nb::module_& module) {
  module.def(
      "set_default_dtype", &set_default_dtype, nb::arg("dtype"),
      "Set the dtype of Python floats and of new tensors that no dtype is given for: float16, "
      "bfloat16, float32, which it is at first, or float64. What operators compute from tensors "
      "of integers stays float32.");
  module.def(
      "get_default_dtype", [] { return nb::steal(dtype_object(default_float)); },
      "The dtype of Python floats and of new tensors that no dtype is given for.");
}

}  // namespace tenon::python
