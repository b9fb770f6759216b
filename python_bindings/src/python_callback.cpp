// SPDX-License-Identifier: Apache-2.0
#include "python_callback.hpp"

#include <algorithm>
#include <utility>

#include "tensor_object.hpp"
#include "types.hpp"

namespace tenon::python {
namespace {

// A number that was given for a tensor lives on the caller's stack: Python gets one of its own.
PyObject* own_scalar(const tenon_tensor& scalar) {
  tenon_tensor* made;
  ErrorSink err;
  tenon_status status =
      host->tensor_create(host->device_host(), scalar.dtype, 0, nullptr, &made, err);
  if (status != TENON_OK) return raise(status, err);
  std::copy_n(static_cast<const char*>(scalar.data), host->dtype_size(scalar.dtype),
              static_cast<char*>(made->data));
  return wrap(made);
}

// Does the tensor, or the base of a view, carry bits of layers, whether these are enabled or not?
static bool has_layers(const tenon_tensor* tensor) {
  if (tensor->layers) return true;
  const tenon_tensor* base =
      tensor->flags & TENON_TENSOR_FOLLOWS_BASE ? host->tensor_base(tensor) : nullptr;
  return base && base->layers;
}

PyObject* python_tensor(tenon_tensor* tensor, bool detaches) {
  if (!tensor) return Py_NewRef(Py_None);
  if (tensor->flags & TENON_TENSOR_HOST_SCALAR) return own_scalar(*tensor);
  if (!detaches || !has_layers(tensor) || !autograd) return wrap_borrowed(tensor);
  tenon_tensor* view;
  ErrorSink err;
  tenon_status status = autograd->detach(tensor, &view, err);
  return status == TENON_OK ? wrap(view) : raise(status, err);
}

template <class Element>
PyObject* python_tuple(uint32_t count, Element element) {
  PyObject* tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple && i < count; ++i) {
    PyObject* item = element(i);
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

PyObject* wanted_names(const CallFrame& frame) {
  PyObject* names = PyFrozenSet_New(nullptr);
  for (uint32_t i = 0; names && i < frame.schema.params().size(); ++i) {
    if (!(frame.needs >> i & 1)) continue;
    PyObject* name = PyUnicode_FromString(frame.schema.params()[i].name.c_str());
    if (!name || PySet_Add(names, name) < 0) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

PyObject* make_argument(const CallFrame& frame, ArgumentSource source) {
  switch (source.kind) {
    case ArgumentSource::Kind::kArgument:
      return python_value(frame.args[source.index], frame.detaches);
    case ArgumentSource::Kind::kResult:
      return python_tensor(frame.results[source.index], frame.detaches);
    case ArgumentSource::Kind::kGradient:
      return python_tensor(frame.gradients[source.index], false);
    case ArgumentSource::Kind::kOutputs: {
      auto output = [&](uint32_t i) { return python_tensor(frame.results[i], true); };
      auto count = static_cast<uint32_t>(frame.schema.results().size());
      return count == 1 ? output(0) : python_tuple(count, output);
    }
    case ArgumentSource::Kind::kNeeds:
      return wanted_names(frame);
  }
  return nullptr;
}

}  // namespace

PyObject* python_value(const tenon_value& value, bool detaches) {
  switch (value.tag) {
    case TENON_VALUE_NONE:
      return Py_NewRef(Py_None);
    case TENON_VALUE_INT:
      return PyLong_FromLongLong(value.v.i);
    case TENON_VALUE_BOOL:
      return PyBool_FromLong(value.v.i != 0);
    case TENON_VALUE_FLOAT:
      return PyFloat_FromDouble(value.v.f);
    case TENON_VALUE_COMPLEX: {
      auto* parts = static_cast<const double*>(value.v.p);
      return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    case TENON_VALUE_DTYPE:
      return dtype_object(static_cast<int32_t>(value.v.i));
    case TENON_VALUE_DEVICE:
      return device_object(static_cast<tenon_device_id>(value.v.i));
    case TENON_VALUE_STRING:
      return PyUnicode_FromStringAndSize(static_cast<const char*>(value.v.p), value.aux);
    case TENON_VALUE_TENSOR:
      return python_tensor(static_cast<tenon_tensor*>(value.v.p), detaches);
    case TENON_VALUE_TENSORS: {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      return python_tuple(value.aux, [&](uint32_t i) { return python_tensor(list[i], detaches); });
    }
    case TENON_VALUE_INTS: {
      auto* list = static_cast<const int64_t*>(value.v.p);
      return python_tuple(value.aux, [&](uint32_t i) { return PyLong_FromLongLong(list[i]); });
    }
    case TENON_VALUE_FLOATS: {
      auto* list = static_cast<const double*>(value.v.p);
      return python_tuple(value.aux, [&](uint32_t i) { return PyFloat_FromDouble(list[i]); });
    }
    default:
      return raise_error(PyExc_NotImplementedError, "Python functions take no values with tag %d",
                         value.tag);
  }
}

Callback::Callback(PyObject* function, std::vector<ArgumentSource> sources, PyObject* keyword_names)
    : function_(Py_NewRef(function)),
      keyword_names_(Py_XNewRef(keyword_names)),
      sources_(std::move(sources)) {}

Callback::~Callback() {
  Py_XDECREF(function_);
  Py_XDECREF(keyword_names_);
}

void Callback::swap(Callback& other) {
  std::swap(function_, other.function_);
  std::swap(keyword_names_, other.keyword_names_);
  std::swap(sources_, other.sources_);
}

bool Callback::takes(ArgumentSource::Kind kind) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [&](const ArgumentSource& source) { return source.kind == kind; });
}

uint64_t Callback::indices(ArgumentSource::Kind kind) const {
  uint64_t mask = 0;
  for (const ArgumentSource& source : sources_)
    if (source.kind == kind) mask |= uint64_t{1} << source.index;
  return mask;
}

PyObject* Callback::call(const CallFrame& frame) const {
  constexpr size_t kMaxArguments = 64;
  PyObject* arguments[kMaxArguments + 1] = {};
  if (sources_.size() > kMaxArguments)
    return raise_error(PyExc_TypeError, "expected a function of at most %zu parameters, got %zu",
                       kMaxArguments, sources_.size());
  PyObject** first = arguments + 1;  // the callee may use the place before it
  size_t count = 0;
  while (count < sources_.size() && (first[count] = make_argument(frame, sources_[count]))) ++count;
  PyObject* result = nullptr;
  if (count == sources_.size()) {
    PyObject* function = Py_NewRef(function_);
    size_t keywords = keyword_names_ ? static_cast<size_t>(PyTuple_GET_SIZE(keyword_names_)) : 0;
    result = PyObject_Vectorcall(
        function, first, (count - keywords) | PY_VECTORCALL_ARGUMENTS_OFFSET, keyword_names_);
    Py_DECREF(function);
  }
  for (size_t i = 0; i < count; ++i) Py_DECREF(first[i]);
  return result;
}

}  // namespace tenon::python
