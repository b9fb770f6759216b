// SPDX-License-Identifier: Apache-2.0
#include "operator_type.hpp"

#include <structmember.h>
#include <cstddef>
#include <cstring>

#include <string>
#include <unordered_map>

#include "added_keywords.hpp"
#include "argument_parser.hpp"
#include "batched.hpp"
#include "call.hpp"
#include "counted_call.hpp"
#include "default_device.hpp"
#include "errors.hpp"
#include "integer_call.hpp"
#include "method_table.hpp"
#include "operator_method.hpp"
#include "operator_text.hpp"
#include "ports.hpp"
#include "python/spellings.hpp"
#include "runtime.hpp"

namespace tenon::python {
namespace {

OperatorObject* as_operator(PyObject* object) { return reinterpret_cast<OperatorObject*>(object); }

// -- results --------------------------------------------------------------------------------------

PyObject* wrap_list(tenon_value& result) {
  auto** list = static_cast<tenon_tensor**>(result.v.p);
  PyObject* tuple = PyTuple_New(result.aux);
  for (uint32_t i = 0; tuple && i < result.aux; ++i) {
    PyObject* item = wrap(list[i]);
    list[i] = nullptr;
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  host->list_release(list, result.aux);
  return tuple;
}

PyObject* wrap_several(const OperatorObject& self, tenon_value* results) {
  PyObject* tuple = PyStructSequence_New(self.result_type);
  for (uint32_t i = 0; i < self.result_count; ++i) {
    auto* tensor = static_cast<tenon_tensor*>(results[i].v.p);
    if (!tuple) {
      host->tensor_release(tensor);
    } else if (results[i].tag != TENON_VALUE_TENSOR) {
      PyStructSequence_SET_ITEM(tuple, i, Py_NewRef(Py_None));
    } else if (PyObject* item = wrap(tensor)) {
      PyStructSequence_SET_ITEM(tuple, i, item);
    } else {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

// Put the tensors of `out=` into the results. False: TypeError set.
bool set_outputs(const OperatorObject& self, PyObject* out, tenon_value* results) {
  PyObject* const* items = &out;
  Py_ssize_t count = 1;
  if (PyTuple_Check(out)) {
    items = reinterpret_cast<PyTupleObject*>(out)->ob_item;
    count = PyTuple_GET_SIZE(out);
  }
  if (count != self.result_count || self.returns_list)
    return raise_error(PyExc_TypeError, "%U(): expected %u tensors for 'out', got %zd", self.name,
                       self.returns_list ? 0 : self.result_count, count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_tensor(items[i]))
      return raise_error(PyExc_TypeError, "%U(): argument 'out': expected Tensor, got %s",
                         self.name, type_name(items[i]));
    results[i] = {TENON_VALUE_TENSOR, 0, {.p = handle_of(items[i])}};
  }
  return true;
}

PyObject* raise_gone(const OperatorObject& self) {
  return raise_error(PyExc_LookupError,
                     "operator %U: its plugin was unloaded or replaced; look the operator up again",
                     self.name);
}

// Arguments are wrong, or of a batch.
[[gnu::noinline]] PyObject* call_refused(const OperatorObject& self, const ParsedCall& call,
                                         PyObject* const* objects, size_t flags,
                                         PyObject* keyword_names) {
  if (!call.arena.has_batched) return call_as_other_library(self, objects, flags, keyword_names);
  PyErr_Clear();
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(flags));
  for (Py_ssize_t k = 0; keyword_names && k < PyTuple_GET_SIZE(keyword_names); ++k)
    if (!has_one_meaning(self, PyTuple_GET_ITEM(keyword_names, k), keyword_names, positional))
      return nullptr;
  return call_batched(reinterpret_cast<PyObject*>(const_cast<OperatorObject*>(&self)), objects,
                      flags, keyword_names);
}

bool is_complex(const tenon_value& value) {
  const int32_t dtype = static_cast<const tenon_tensor*>(value.v.p)->dtype;
  return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
}

PyObject* call_now(const OperatorObject& self, PyObject* const* objects, size_t flags,
                   PyObject* keyword_names) {
  if (!self.is_current()) [[unlikely]]
    return raise_gone(self);
  ParsedCall call;
  if (!parse_arguments(self, objects, PyVectorcall_NARGS(flags), keyword_names, call)) [[unlikely]]
    return call_refused(self, call, objects, flags, keyword_names);
  if (has_default_device) [[unlikely]]
    fill_device(self, call);
  if (self.may_view && !call.out) {
    tenon_tensor* view;
    if (calls->view(self.op, call.values, &view)) return wrap(view);
  }

  tenon_value results[kMaxResults];
  for (uint32_t i = 0; i < self.result_count; ++i) results[i].tag = TENON_VALUE_NONE;
  PyObject* given = nullptr;  // what the caller supplied to be written, and gets back
  if (self.form == CallForm::kInPlace) [[unlikely]] {
    if (call.values[0].tag != TENON_VALUE_TENSOR)
      return raise_error(PyExc_TypeError, "%U(): expected a Tensor to write into, got %s",
                         self.name, type_name(call.first));
    if (self.def->out_dtype == TENON_OUT_REAL && is_complex(call.values[0]))
      return raise_error(
          PyExc_TypeError,
          "%U(): expected a real tensor, got a complex one, whose result is real; use "
          "the form that is not in place",
          self.name);
    results[0] = call.values[0];
    given = call.first;
  } else if (call.out) [[unlikely]] {
    if (!set_outputs(self, call.out, results)) return nullptr;
    given = call.out;
  }

  ErrorSink err;
  tenon_status status = call_complete(self.op, call.values, results, call.arena.work, err);
  if (status != TENON_OK) [[unlikely]]
    return raise_call(status, self.def, call.values, call.count, err);
  if (given) [[unlikely]]
    return Py_NewRef(given);
  if (self.result_count == 1) [[likely]]
    return self.returns_list ? wrap_list(results[0])
                             : wrap(static_cast<tenon_tensor*>(results[0].v.p));
  return wrap_several(self, results);
}

PyObject* operator_call(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names) {
  const OperatorObject& self = *as_operator(callable);
  const bool is_free = !has_default_device || self.takes_tensor;
  if (self.takes_integers && !keyword_names && is_free && self.is_current()) {
    Py_ssize_t count = PyVectorcall_NARGS(flags), first = self.takes_tensor && count > 0;
    PyObject* tensor = first ? objects[0] : nullptr;
    if (Answer answer = call_with_integers(self, tensor, objects + first, count - first))
      return *answer;
  }
  return call_now(self, objects, flags, keyword_names);
}

// The call of an operator that programs may define.
PyObject* counted_call(PyObject* callable, PyObject* const* objects, size_t flags,
                       PyObject* keyword_names) {
  const CountedCall counted(*as_operator(callable));
  return counted ? operator_call(callable, objects, flags, keyword_names) : nullptr;
}

// The call of an operator that the host knows as a creation.
PyObject* creation_call(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names) {
  const OperatorObject& self = *as_operator(callable);
  if (!keyword_names && !has_default_device && self.is_current()) {
    int64_t shape[TENON_MAX_NDIM];
    int32_t ndim = read_shape(objects, PyVectorcall_NARGS(flags), shape);
    tenon_tensor* tensor;
    if (ndim >= 0 && calls->create(self.op, ndim, shape, &tensor)) return wrap(tensor);
  }
  return operator_call(callable, objects, flags, keyword_names);
}

// The call of an operator that makes a tensor.
PyObject* new_tensor_call(PyObject* callable, PyObject* const* objects, size_t flags,
                          PyObject* keyword_names) {
  if (default_float != TENON_DTYPE_F32 || keyword_names) [[unlikely]]
    return call_creation(callable, objects, flags, keyword_names, operator_call);
  return creation_call(callable, objects, flags, keyword_names);
}

PyObject* new_like_call(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names) {
  if (default_float != TENON_DTYPE_F32 || keyword_names) [[unlikely]]
    return call_creation(callable, objects, flags, keyword_names, operator_call);
  return operator_call(callable, objects, flags, keyword_names);
}

// The calls of operators that draw random numbers: those that make a tensor, and others.
PyObject* new_drawn_call(PyObject* callable, PyObject* const* objects, size_t flags,
                         PyObject* keyword_names) {
  return call_with_generator(callable, objects, flags, keyword_names, new_tensor_call);
}
PyObject* new_drawn_like_call(PyObject* callable, PyObject* const* objects, size_t flags,
                              PyObject* keyword_names) {
  return call_with_generator(callable, objects, flags, keyword_names, new_like_call);
}
PyObject* drawn_call(PyObject* callable, PyObject* const* objects, size_t flags,
                     PyObject* keyword_names) {
  return call_with_generator(callable, objects, flags, keyword_names, operator_call);
}

// The call of an operator that computes in another dtype on request.
PyObject* in_dtype_call(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names) {
  if (keyword_names) return call_in_dtype(callable, objects, flags, keyword_names, operator_call);
  return operator_call(callable, objects, flags, nullptr);
}

// Found through an instance, the operator becomes a method of it.
PyObject* operator_bind(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// -- making one -----------------------------------------------------------------------------------

void operator_dealloc(PyObject* object) {
  OperatorObject* self = as_operator(object);
  for (uint32_t i = 0; self->parameters && i < self->parameter_count; ++i)
    Py_XDECREF(self->parameters[i].name);
  PyMem_Free(self->parameters);
  Py_XDECREF(self->name);
  Py_XDECREF(self->result_type);
  Py_TYPE(object)->tp_free(object);
}

const tenon_param_def& parameter_def(const tenon_op_def& def, uint32_t i) {
  uint32_t stride = def.param_size ? def.param_size : sizeof(tenon_param_def);
  return *reinterpret_cast<const tenon_param_def*>(reinterpret_cast<const char*>(def.params) +
                                                   i * stride);
}

bool read_parameters(OperatorObject& self) {
  const tenon_op_def& def = *self.def;
  self.parameters =
      static_cast<Parameter*>(PyMem_Calloc(def.nparams ? def.nparams : 1, sizeof(Parameter)));
  if (!self.parameters) return PyErr_NoMemory();
  self.parameter_count = def.nparams;
  for (uint32_t i = 0; i < def.nparams; ++i) {
    const tenon_param_def& from = parameter_def(def, i);
    Parameter& to = self.parameters[i];
    to.name = PyUnicode_InternFromString(from.name);
    if (!to.name) return false;
    to.kind = from.kind;
    to.flags = from.flags;
    if (from.flags & TENON_PARAM_FLAG_HAS_DEFAULT) to.default_value = from.default_value;
    if (!(from.flags & (TENON_PARAM_FLAG_HAS_DEFAULT | TENON_PARAM_FLAG_OPTIONAL)))
      self.required |= uint64_t{1} << i;
    if (!(from.flags & TENON_PARAM_FLAG_KEYWORD_ONLY)) self.positional_count = i + 1;
  }
  if (self.positional_count > 0) {
    int32_t last = self.parameters[self.positional_count - 1].kind;
    self.gathers = last == TENON_PARAM_INTS || last == TENON_PARAM_TENSORS;
  }
  self.sizes_by_shape = def.compute == TENON_COMPUTE_OUTPUT;
  return true;
}

PyTypeObject* make_result_type(const OperatorObject& self) {
  PyStructSequence_Field fields[kMaxResults + 1] = {};
  for (uint32_t i = 0; i < self.result_count; ++i) fields[i].name = self.def->out_names[i];
  // CPython keeps the pointer: the text lives as long as the process.
  std::string* name =
      new std::string(std::string("tenon.") + PyUnicode_AsUTF8(self.name) + "_result");
  PyStructSequence_Desc description = {name->c_str(), "Results of an operator, by name.", fields,
                                       static_cast<int>(self.result_count)};
  return PyStructSequence_NewType(&description);
}

PyObject* make_operator(const tenon_op* op, CallForm form) {
  const tenon_op_def* def = host->op_def(op);
  if (def->nparams > kMaxParameters || def->nouts > kMaxResults)
    return raise_error(PyExc_NotImplementedError,
                       "operator %s: expected at most %u parameters and %u results, got %u and %u",
                       def->name, kMaxParameters, kMaxResults, def->nparams, def->nouts);
  PyObject* object = operator_type.tp_alloc(&operator_type, 0);
  if (!object) return nullptr;
  OperatorObject& self = *as_operator(object);
  bool is_own = std::strncmp(def->name, "tenon::", 7) == 0;  // packages may not define it
  self.vectorcall = is_own ? operator_call : counted_call;
  self.op = op;
  self.def = def;
  self.schema_hash = def->schema_hash;
  self.calls = &calls_of(op);
  if (*self.calls == kTakenOut) *self.calls = 0;  // a plugin has defined it since
  self.form = form;
  self.result_count = def->nouts;
  self.returns_list = def->flags & TENON_OP_LIST_OUTPUT;
  const char* colons = std::strstr(def->name, "::");
  self.name = PyUnicode_FromFormat("%s%s", colons ? colons + 2 : def->name,
                                   form == CallForm::kInPlace ? "_" : "");
  if (self.name && read_parameters(self)) {
    bool is_plain = form == CallForm::kFunction && def->nouts == 1 && !self.returns_list;
    self.may_view = is_plain && calls->may_view(op);
    self.takes_integers = is_plain && takes_integers(self);
    if (is_plain && calls->is_creation(op)) self.vectorcall = creation_call;
    if (is_plain && is_own && takes_creation_keywords(def->name + 7))
      self.vectorcall = self.vectorcall == creation_call ? new_tensor_call : new_like_call;
    if (is_plain && is_own && takes_dtype_keyword(def->name + 7)) self.vectorcall = in_dtype_call;
    if (form == CallForm::kFunction && is_own && takes_generator_keyword(def->name + 7))
      self.vectorcall = self.vectorcall == new_tensor_call ? new_drawn_call
                        : self.vectorcall == new_like_call ? new_drawn_like_call
                                                           : drawn_call;
    self.takes_tensor = def->nparams > 0 && self.parameters[0].kind == TENON_PARAM_TENSOR;
    if (def->nouts > 1) self.result_type = make_result_type(self);
    if (def->nouts <= 1 || self.result_type) return object;
  }
  Py_DECREF(object);
  return nullptr;
}

// An operator whose result is written over its first argument: elementwise, or its traits say so.
bool has_in_place_form(const tenon_op_def& def) {
  if (def.nouts != 1 || def.nparams == 0 || parameter_def(def, 0).kind != TENON_PARAM_TENSOR)
    return false;
  constexpr std::string_view kInPlace = "in_place: ";
  const std::string_view traits = def.traits ? def.traits : "";
  const size_t at = traits.find(kInPlace);
  const bool says_so = at != traits.npos && (at == 0 || traits[at - 1] == '\n');
  return says_so || def.flags & TENON_OP_ELEMENTWISE;
}

// -- attributes -----------------------------------------------------------------------------------

const char* host_text(const char* text) { return text ? text : ""; }

PyObject* get_name(PyObject* self, void*) { return Py_NewRef(as_operator(self)->name); }
PyObject* get_module(PyObject*, void*) { return PyUnicode_InternFromString("tenon"); }
PyObject* get_full_name(PyObject* self, void*) {
  return PyUnicode_FromString(host_text(as_operator(self)->def->name));
}
PyObject* get_schema(PyObject* self, void*) {
  return PyUnicode_FromString(as_operator(self)->schema());
}
PyObject* get_origin(PyObject* self, void*) {
  return PyUnicode_FromString(host_text(as_operator(self)->def->origin));
}
PyObject* get_doc(PyObject* self, void*) { return operator_doc(*as_operator(self)); }
PyObject* get_text_signature(PyObject* self, void*) {
  return operator_text_signature(*as_operator(self));
}

PyGetSetDef operator_attributes[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", get_text_signature, nullptr, nullptr, nullptr},
    {"full_name", get_full_name, nullptr, "Name with namespace, \"tenon::add\".", nullptr},
    {"schema", get_schema, nullptr, "Canonical signature.", nullptr},
    {"origin", get_origin, nullptr, "Where the operator is defined.", nullptr},
    {},
};

PyObject* operator_repr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %s%s>", as_operator(self)->schema(),
                              as_operator(self)->form == CallForm::kInPlace ? ", in place" : "");
}

PyObject* operator_reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("tenon._tensor.pickling");
  PyObject* function = module ? PyObject_GetAttrString(module, "operator") : nullptr;
  Py_XDECREF(module);
  if (!function) return nullptr;
  const OperatorObject& op = *as_operator(self);
  return Py_BuildValue("N(N)", function,
                       PyUnicode_FromFormat("%s%s", host_text(op.def->name),
                                            op.form == CallForm::kInPlace ? "_" : ""));
}

// `self` first, then the arguments, to a function of tenon/ops/_definition.py.
PyObject* call_definition(const char* function_name, PyObject* self, PyObject* arguments,
                          PyObject* keywords) {
  PyObject* module = PyImport_ImportModule("tenon.ops._definition");
  PyObject* function = module ? PyObject_GetAttrString(module, function_name) : nullptr;
  Py_XDECREF(module);
  PyObject* bound = function ? PyMethod_New(function, self) : nullptr;
  Py_XDECREF(function);
  PyObject* result = bound ? PyObject_Call(bound, arguments, keywords) : nullptr;
  Py_XDECREF(bound);
  return result;
}
PyObject* operator_shape(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return call_definition("add_shape", self, arguments, keywords);
}
PyObject* operator_grad(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return call_definition("add_gradient", self, arguments, keywords);
}
PyObject* operator_kernel(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return call_definition("kernel", self, arguments, keywords);
}

constexpr int kAnyArguments = METH_VARARGS | METH_KEYWORDS;
PyMethodDef operator_methods[] = {
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {"shape", with_keywords(operator_shape), kAnyArguments,
     "shape($self, function, /)\n--\n\nDecorator: the shape rule of an operator defined with "
     "tenon.op."},
    {"grad", with_keywords(operator_grad), kAnyArguments,
     "grad($self, function, /)\n--\n\nDecorator: the gradient of an operator defined with "
     "tenon.op."},
    {"kernel", with_keywords(operator_kernel), kAnyArguments,
     "kernel($self, device, /, *, dtypes=None, score=None, strided=False)\n--\n\nDecorator: a "
     "kernel "
     "for one kind of device; see tenon.kernel."},
    {},
};

bool is_public(const tenon_op* op) {
  const tenon_op_def* def = op ? host->op_def(op) : nullptr;
  return def && !(def->flags & TENON_OP_INTERNAL);
}

PyObject* cache;  // name -> operator, so that there is one object for each

PyObject* find_or_make(const char* name) {
  std::string_view text(name);
  const tenon_op* op = host->op_find(name);
  if (is_public(op)) return make_operator(op, CallForm::kFunction);
  if (text.size() < 2 || text.back() != '_') return nullptr;
  op = host->op_find(std::string(text.substr(0, text.size() - 1)).c_str());
  return is_public(op) && has_in_place_form(*host->op_def(op))
             ? make_operator(op, CallForm::kInPlace)
             : nullptr;
}

// `mul` for `multiply`, and `mul_` where there is `multiply_`: the same objects.
bool add_method_spellings() {
  for (const auto& [theirs, ours] : kOperatorSpellings)
    for (const char* ending : {"", "_"}) {
      const std::string name = std::string(theirs) + ending;
      PyObject* method =
          PyDict_GetItemString(tensor_type.tp_dict, (std::string(ours) + ending).c_str());
      if (!method || PyDict_GetItemString(tensor_type.tp_dict, name.c_str())) continue;
      if (add_tensor_attribute(name.c_str(), method) < 0) return false;
    }
  return true;
}

// Attributes of the type that are written by hand win over operators of the same name.
bool add_method(const char* name) {
  if (PyDict_GetItemString(tensor_type.tp_dict, name)) return true;
  PyObject* op = find_operator(name);
  if (!op) return !PyErr_Occurred();
  PyObject* method = operator_as_method(op);
  int result = method ? add_tensor_attribute(name, method) : -1;
  Py_XDECREF(method);
  Py_DECREF(op);
  return result == 0;
}

}  // namespace

PyObject* find_operator(const char* name) {
  if (std::strncmp(name, "tenon::", 7) == 0) name += 7;
  if (!ensure_loaded() || (!cache && !(cache = PyDict_New()))) return nullptr;
  PyObject* known = PyDict_GetItemString(cache, name);
  if (known && as_operator(known)->is_current()) return Py_NewRef(known);
  PyObject* made = find_or_make(name);
  if (made && PyDict_SetItemString(cache, name, made) < 0) Py_CLEAR(made);
  return made;
}

PyObject* find_internal_operator(const char* name) {
  if (!ensure_loaded()) return nullptr;
  const tenon_op* op = host->op_find(name);
  return op ? make_operator(op, CallForm::kFunction) : nullptr;
}

CountedCall::CountedCall(const OperatorObject& op) {
  if (*op.calls == kCallsRefused)
    raise_error(PyExc_LookupError,
                "operator %U is being defined anew on another thread; call it again", op.name);
  else if (*op.calls == kTakenOut)
    raise_gone(op);
  else
    ++*(calls_ = op.calls);
}

int& calls_of(const tenon_op* op) {
  static auto* calls = new std::unordered_map<const tenon_op*, int>;  // its elements stay in place
  return (*calls)[op];
}

bool add_tensor_methods() {
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op* op = host->op_at(id);
    if (!is_public(op)) continue;
    const tenon_op_def* def = host->op_def(op);
    if (std::strncmp(def->name, "tenon::", 7) != 0 || def->flags & TENON_OP_NO_METHOD) continue;
    if (def->nparams == 0 || parameter_def(*def, 0).kind != TENON_PARAM_TENSOR) continue;
    std::string name = def->name + 7;
    if (!add_method(name.c_str())) return false;
    if (has_in_place_form(*def) && !add_method((name + "_").c_str())) return false;
  }
  return add_method_spellings();
}

PyTypeObject operator_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "tenon.Operator",
    .tp_basicsize = sizeof(OperatorObject),
    .tp_dealloc = operator_dealloc,
    .tp_vectorcall_offset = offsetof(OperatorObject, vectorcall),
    .tp_repr = operator_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = operator_methods,
    .tp_getset = operator_attributes,
    .tp_descr_get = operator_bind,
};

bool ready_operator_type() { return PyType_Ready(&operator_type) == 0; }

}  // namespace tenon::python
