// SPDX-License-Identifier: Apache-2.0
#include "argument_parser.hpp"

#include <cstring>

#include "argument_errors.hpp"
#include "batched.hpp"
#include "call.hpp"
#include "errors.hpp"
#include "ports.hpp"
#include "python/spellings.hpp"
#include "small_int.hpp"
#include "types.hpp"

namespace tenon::python {

void* ArgumentArena::take_from_heap(size_t count) {
  auto* block = static_cast<Block*>(PyMem_Malloc(sizeof(Block) + count * 8));
  if (!block) return PyErr_NoMemory();
  block->next = blocks_;
  blocks_ = block;
  return block + 1;
}

bool ArgumentArena::keep(PyObject* owned) {
  if (kept_count_ == kMaxKept) {
    Py_DECREF(owned);
    return raise_error(PyExc_TypeError, "expected at most %zd list arguments", kMaxKept);
  }
  kept_[kept_count_++] = owned;
  return true;
}

void ArgumentArena::release() {
  while (blocks_) {
    Block* next = blocks_->next;
    PyMem_Free(blocks_);
    blocks_ = next;
  }
  while (kept_count_ > 0) Py_DECREF(kept_[--kept_count_]);
}

namespace {

bool set_int(PyObject* object, int64_t& out) {
  int overflow;
  out = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return raise_error(PyExc_OverflowError, "%R does not fit 64 bits", object);
  return out != -1 || !PyErr_Occurred();
}

// int, bool, or what declares itself an integer by __index__ (NumPy's). Tensors are refused:
// reading one waits for its device.
bool box_int(PyObject* object, int64_t& out) {
  if (small_int(object, out)) return true;
  if (PyLong_Check(object)) return set_int(object, out);
  if (is_tensor(object) || !PyIndex_Check(object)) return false;
  PyObject* index = PyNumber_Index(object);
  if (!index) return false;
  bool ok = set_int(index, out);
  Py_DECREF(index);
  return ok;
}

bool box_float(PyObject* object, double& out) {
  if (PyFloat_Check(object)) {
    out = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (PyLong_Check(object)) {
    out = PyLong_AsDouble(object);
    return out != -1.0 || !PyErr_Occurred();
  }
  tenon_value value;
  if (is_tensor(object) || box_number(object, value, nullptr) != 1) return false;
  if (value.tag != TENON_VALUE_FLOAT && value.tag != TENON_VALUE_INT &&
      value.tag != TENON_VALUE_BOOL)
    return false;
  out = value.tag == TENON_VALUE_FLOAT ? value.v.f : static_cast<double>(value.v.i);
  return true;
}

bool box_bool(PyObject* object, int64_t& out) {
  if (object == Py_True || object == Py_False) {
    out = object == Py_True;
    return true;
  }
  tenon_value value;  // numpy.bool
  if (is_tensor(object) || PyLong_Check(object) || box_number(object, value, nullptr) != 1)
    return false;
  out = value.v.i;
  return value.tag == TENON_VALUE_BOOL;
}

// The items of a list or tuple that stay valid while the call runs. NULL: not a list, or an error.
PyObject* const* list_items(PyObject* object, Py_ssize_t& count, ArgumentArena& arena) {
  if (PyList_Check(object)) {  // another thread may change it while the GIL is released
    object = PyList_AsTuple(object);
    if (!object || !arena.keep(object)) return nullptr;
  } else if (!PyTuple_Check(object)) {
    return nullptr;
  }
  count = PyTuple_GET_SIZE(object);
  return reinterpret_cast<PyTupleObject*>(object)->ob_item;
}

bool box_ints(PyObject* const* items, Py_ssize_t count, const OperatorObject& self,
              tenon_value& value, ArgumentArena& arena) {
  auto* list = static_cast<int64_t*>(arena.take(count));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!box_int(items[i], list[i])) return false;
  if (self.sizes_by_shape) {
    int64_t product = 1;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (__builtin_mul_overflow(product, list[i], &product)) product = 0;
    arena.work += product;
  }
  value = {TENON_VALUE_INTS, static_cast<uint32_t>(count), {.p = list}};
  return true;
}

bool box_floats(PyObject* const* items, Py_ssize_t count, tenon_value& value,
                ArgumentArena& arena) {
  auto* list = static_cast<double*>(arena.take(count));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!box_float(items[i], list[i])) return false;
  value = {TENON_VALUE_FLOATS, static_cast<uint32_t>(count), {.p = list}};
  return true;
}

bool box_tensors(PyObject* const* items, Py_ssize_t count, tenon_value& value,
                 ArgumentArena& arena) {
  auto* list = static_cast<tenon_tensor**>(arena.take(count));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_tensor(items[i])) return false;
    arena.has_batched |= is_batched(items[i]);
    list[i] = handle_of(items[i]);
    arena.work += list[i]->numel;
  }
  value = {TENON_VALUE_TENSORS, static_cast<uint32_t>(count), {.p = list}};
  return !arena.has_batched;
}

// One list parameter from `count` objects: the elements of a list, or the rest of the arguments.
bool box_list(int32_t kind, PyObject* const* items, Py_ssize_t count, const OperatorObject& self,
              tenon_value& value, ArgumentArena& arena) {
  switch (kind) {
    case TENON_PARAM_INTS:
      return box_ints(items, count, self, value, arena);
    case TENON_PARAM_FLOATS:
      return box_floats(items, count, value, arena);
    default:
      return box_tensors(items, count, value, arena);
  }
}

bool is_list_kind(int32_t kind) {
  return kind == TENON_PARAM_INTS || kind == TENON_PARAM_FLOATS || kind == TENON_PARAM_TENSORS;
}

bool is_item(int32_t kind, PyObject* object) {
  int64_t integer;
  double number;
  return kind == TENON_PARAM_TENSORS ? is_tensor(object)
         : kind == TENON_PARAM_INTS  ? box_int(object, integer)
                                     : box_float(object, number);
}

// What is wrong with a list is nearly always one item of it, which the error then names.
[[gnu::cold]] bool wrong_list(const OperatorObject& self, const Parameter& parameter,
                              PyObject* const* items, Py_ssize_t count, PyObject* list) {
  bool is_spread = !list && (PyList_Check(items[0]) || PyTuple_Check(items[0]));
  for (Py_ssize_t i = 0; i < count && !is_spread && !PyErr_Occurred(); ++i)
    if (!is_item(parameter.kind, items[i]))
      return wrong_item(self, parameter, list ? list : items[i], items[i], list ? i : -1);
  return wrong_type(self, parameter, list ? list : items[count - 1]);
}

[[gnu::cold]] bool wrong_argument(const OperatorObject& self, const Parameter& parameter,
                                  PyObject* object) {
  bool is_list = is_list_kind(parameter.kind) && (PyList_Check(object) || PyTuple_Check(object));
  if (!is_list || PyErr_Occurred()) return wrong_type(self, parameter, object);
  return wrong_list(self, parameter, PySequence_Fast_ITEMS(object),
                    PySequence_Fast_GET_SIZE(object), object);
}

// A lone number is a list of one.
bool is_single(int32_t kind, PyObject* object) {
  if (kind == TENON_PARAM_TENSORS) return is_tensor(object);
  if (kind == TENON_PARAM_FLOATS) return PyFloat_Check(object) || PyLong_Check(object);
  if (PyLong_Check(object)) return true;
  if (is_tensor(object) || !PyIndex_Check(object)) return false;
  PyObject* index = PyNumber_Index(object);  // NumPy's arrays have the slot, and refuse
  PyErr_Clear();
  Py_XDECREF(index);
  return index != nullptr;
}

bool box_list_argument(int32_t kind, PyObject* object, const OperatorObject& self,
                       tenon_value& value, ArgumentArena& arena) {
  Py_ssize_t count;
  if (PyObject* const* items = list_items(object, count, arena))
    return box_list(kind, items, count, self, value, arena);
  if (PyErr_Occurred()) return false;
  if (is_single(kind, object)) return box_list(kind, &object, 1, self, value, arena);
  if (is_tensor(object) || PyUnicode_Check(object) || !PySequence_Check(object)) return false;
  PyObject* tuple = PySequence_Tuple(object);  // range, numpy array of ints, ...
  if (!tuple || !arena.keep(tuple)) return false;
  return box_list(kind, reinterpret_cast<PyTupleObject*>(tuple)->ob_item, PyTuple_GET_SIZE(tuple),
                  self, value, arena);
}

// True is no axis, as in NumPy: PyTorch's `unbiased` and `keepdim` come where an axis would.
bool is_bool_as_axis(const Parameter& parameter, PyObject* object) {
  return PyBool_Check(object) &&
         (parameter.kind == TENON_PARAM_INT || parameter.kind == TENON_PARAM_INTS) &&
         PyUnicode_CompareWithASCIIString(parameter.name, "axis") == 0;
}

bool box_argument(const OperatorObject& self, const Parameter& parameter, PyObject* object,
                  tenon_value& value, ArgumentArena& arena) {
  if (object == Py_None && parameter.flags & TENON_PARAM_FLAG_OPTIONAL) {
    value = {};
    return true;
  }
  if (is_bool_as_axis(parameter, object)) return wrong_type(self, parameter, object);
  value.aux = 0;
  bool ok = false;
  switch (parameter.kind) {
    case TENON_PARAM_TENSOR:
      if (is_tensor(object)) {
        if (is_batched(object)) return arena.has_batched = true, false;
        value = {TENON_VALUE_TENSOR, 0, {.p = handle_of(object)}};
        arena.work += handle_of(object)->numel;
        return true;
      }
      ok = box_number(object, value, &arena) == 1;
      break;
    case TENON_PARAM_INT:
      value.tag = TENON_VALUE_INT;
      ok = box_int(object, value.v.i);
      break;
    case TENON_PARAM_FLOAT:
      value.tag = TENON_VALUE_FLOAT;
      ok = box_float(object, value.v.f);
      break;
    case TENON_PARAM_BOOL:
      value.tag = TENON_VALUE_BOOL;
      ok = box_bool(object, value.v.i);
      break;
    case TENON_PARAM_SCALAR:
      ok = !is_tensor(object) && box_number(object, value, &arena) == 1;
      break;
    case TENON_PARAM_STRING:
      if (PyUnicode_Check(object)) {
        Py_ssize_t bytes;
        const char* text = PyUnicode_AsUTF8AndSize(object, &bytes);
        if (!text) return false;
        value = {TENON_VALUE_STRING, static_cast<uint32_t>(bytes), {.p = const_cast<char*>(text)}};
        ok = true;
      }
      break;
    case TENON_PARAM_DTYPE: {
      int32_t dtype;
      value.tag = TENON_VALUE_DTYPE;
      ok = to_dtype(object, dtype);
      value.v.i = dtype;
      break;
    }
    case TENON_PARAM_DEVICE: {
      tenon_device_id device;
      value.tag = TENON_VALUE_DEVICE;
      ok = to_device_id(object, device);
      value.v.i = device;
      // A copy between devices waits for the work that makes the tensor, whatever its size.
      if (self.takes_tensor) arena.work += kReleaseGilElements;
      break;
    }
    default:
      ok = box_list_argument(parameter.kind, object, self, value, arena);
  }
  return ok || (!arena.has_batched && wrong_argument(self, parameter, object));
}

// Fast path for a small Python int that is given for an int or a list of ints. Returns false for
// everything else, which box_argument handles.
inline bool box_small_int(const OperatorObject& self, int32_t kind, PyObject* object,
                          tenon_value& value, ArgumentArena& arena) {
  int64_t number;
  if ((kind != TENON_PARAM_INT && kind != TENON_PARAM_INTS) || !small_int(object, number))
    return false;
  if (kind == TENON_PARAM_INT) {
    value = {TENON_VALUE_INT, 0, {.i = number}};
    return true;
  }
  auto* list = static_cast<int64_t*>(arena.take(1));
  if (!list) return false;
  *list = number;
  if (self.sizes_by_shape) arena.work += number;
  value = {TENON_VALUE_INTS, 1, {.p = list}};
  return true;
}

int find_parameter(const OperatorObject& self, PyObject* name) {
  for (uint32_t i = 0; i < self.parameter_count; ++i)
    if (self.parameters[i].name == name) return static_cast<int>(i);
  for (uint32_t i = 0; i < self.parameter_count; ++i)
    if (PyUnicode_Compare(self.parameters[i].name, name) == 0) return static_cast<int>(i);
  return -1;
}

// Keywords of the array API standard, NumPy and PyTorch for parameters of Tenon's own names. They
// are read only after no parameter had the name, so that Tenon's own keywords cost what they did.
[[gnu::cold]] int find_other_spelling(const OperatorObject& self, PyObject* name) {
  for (const auto& [theirs, ours] : kTakenKeywords) {
    if (PyUnicode_CompareWithASCIIString(name, theirs) != 0) continue;
    for (uint32_t i = 0; i < self.parameter_count; ++i)
      if (PyUnicode_CompareWithASCIIString(self.parameters[i].name, ours) == 0)
        return static_cast<int>(i);
  }
  return -1;
}

bool parse_keywords(const OperatorObject& self, PyObject* const* objects, PyObject* names,
                    uint64_t& given, ParsedCall& call) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    int i = find_parameter(self, name);
    if (i < 0) {
      i = find_other_spelling(self, name);
      if (i >= 0 && !has_one_meaning(self, name, names, call.count)) return false;
    }
    if (i < 0) {
      if (PyUnicode_CompareWithASCIIString(name, "out") != 0) return unknown_keyword(self, name);
      if (objects[k] != Py_None) call.out = objects[k];
      continue;
    }
    if (given >> i & 1) return wrong_call(self, "got two values for argument", name);
    if (!box_argument(self, self.parameters[i], objects[k], call.values[i], call.arena))
      return false;
    if (i == 0) call.first = objects[k];
    given |= uint64_t{1} << i;
  }
  return true;
}

// Everything but the case that all arguments were positional and none is left out in the middle.
bool complete(const OperatorObject& self, PyObject* const* keyword_objects, PyObject* keyword_names,
              ParsedCall& call) {
  uint64_t given = (uint64_t{1} << call.count) - 1;
  if (keyword_names && !parse_keywords(self, keyword_objects, keyword_names, given, call))
    return false;
  if (uint64_t missing = self.required & ~given)
    return wrong_call(self, "missing argument", self.parameters[__builtin_ctzll(missing)].name);
  call.count = given ? 64 - static_cast<uint32_t>(__builtin_clzll(given)) : 0;
  for (uint32_t i = 0; i < call.count; ++i)
    if (!(given >> i & 1)) call.values[i] = self.parameters[i].default_value;
  return true;
}

PyTypeObject* numpy_generic() {
  static PyTypeObject* type;
  if (type) return type;
  // Looked up only if NumPy is imported already: without it, there are no NumPy scalars.
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = PyDict_GetItemString(modules, "numpy");
  PyObject* generic = numpy ? PyObject_GetAttrString(numpy, "generic") : nullptr;
  PyErr_Clear();
  return type = reinterpret_cast<PyTypeObject*>(generic);
}

}  // namespace

int box_number(PyObject* object, tenon_value& value, ArgumentArena* arena) {
  if (PyFloat_Check(object)) {
    value = {TENON_VALUE_FLOAT, 0, {.f = PyFloat_AS_DOUBLE(object)}};
    return 1;
  }
  if (PyBool_Check(object)) {
    value = {TENON_VALUE_BOOL, 0, {.i = object == Py_True}};
    return 1;
  }
  if (PyLong_Check(object)) {
    value.tag = TENON_VALUE_INT;
    value.aux = 0;
    return set_int(object, value.v.i) ? 1 : -1;
  }
  if (PyComplex_Check(object)) {
    auto* parts = arena ? static_cast<double*>(arena->take(2)) : nullptr;
    if (!parts) return PyErr_Occurred() ? -1 : 0;
    parts[0] = PyComplex_RealAsDouble(object);
    parts[1] = PyComplex_ImagAsDouble(object);
    value = {TENON_VALUE_COMPLEX, 0, {.p = parts}};
    return 1;
  }
  PyTypeObject* generic = numpy_generic();
  if (!generic || !PyType_IsSubtype(Py_TYPE(object), generic)) return 0;
  PyObject* number = PyObject_CallMethod(object, "item", nullptr);
  if (!number) return -1;
  int result = Py_TYPE(number) == Py_TYPE(object) ? 0 : box_number(number, value, arena);
  Py_DECREF(number);
  return result;
}

bool parse_arguments(const OperatorObject& self, PyObject* const* objects, Py_ssize_t positional,
                     PyObject* keyword_names, ParsedCall& call) {
  uint32_t count = static_cast<uint32_t>(positional);
  if (positional > self.positional_count) [[unlikely]] {
    if (!self.gathers)
      return raise_error(PyExc_TypeError,
                         "%U(): expected at most %u positional arguments, got %zd\n  signature: %s",
                         self.name, self.positional_count, positional, self.schema());
    count = self.positional_count - 1;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Parameter& parameter = self.parameters[i];
    PyObject* object = objects[i];
    if (is_exact_tensor(object) && parameter.kind == TENON_PARAM_TENSOR) [[likely]] {
      tenon_tensor* tensor = handle_of(object);
      call.values[i] = {TENON_VALUE_TENSOR, 0, {.p = tensor}};
      call.arena.work += tensor->numel;
    } else if (!box_small_int(self, parameter.kind, object, call.values[i], call.arena) &&
               !box_argument(self, parameter, object, call.values[i], call.arena)) {
      return false;
    }
  }
  call.count = count;
  if (positional > 0) call.first = objects[0];
  if (positional > self.positional_count) [[unlikely]] {
    const Parameter& parameter = self.parameters[count];
    if (!box_list(parameter.kind, objects + count, positional - count, self, call.values[count],
                  call.arena))
      return !call.arena.has_batched &&
             wrong_list(self, parameter, objects + count, positional - count, nullptr);
    call.count = count + 1;
  }
  bool all_positional = !keyword_names && !(self.required >> call.count);
  if (!all_positional && !complete(self, objects + positional, keyword_names, call)) return false;
  for (; call.count < self.parameter_count; ++call.count)
    call.values[call.count] = self.parameters[call.count].default_value;
  return true;
}

}  // namespace tenon::python
