// SPDX-License-Identifier: Apache-2.0
#include "operator_method.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "integer_call.hpp"
#include "operator_text.hpp"
#include "tensor_object.hpp"

namespace tenon::python {
namespace {

// More than there are operators of a tensor and integers; those beyond are called as any other.
constexpr size_t kRow = 128;
OperatorObject* row[kRow];  // never released: the type refers to them as long as there is one
PyMethodDef definitions[kRow];
size_t used = 0;

// As the operator itself is called, with `self` in front of its arguments.
[[gnu::noinline]] PyObject* call_operator_object(OperatorObject* op, PyObject* self,
                                                 PyObject* const* arguments, Py_ssize_t count,
                                                 PyObject* keyword_names) {
  std::vector<PyObject*> objects{self};
  Py_ssize_t named = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  objects.insert(objects.end(), arguments, arguments + count + named);
  return op->vectorcall(reinterpret_cast<PyObject*>(op), objects.data(),
                        static_cast<size_t>(count) + 1, keyword_names);
}

template <size_t place>
PyObject* call_in_row(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keyword_names) {
  OperatorObject* op = row[place];
  if (!keyword_names && op->is_current())
    if (Answer answer = call_with_integers(*op, self, arguments, count)) return *answer;
  return call_operator_object(op, self, arguments, count, keyword_names);
}

template <size_t... indices>
constexpr auto functions_of(std::index_sequence<indices...>) {
  return std::array{&call_in_row<indices>...};
}
constexpr auto functions = functions_of(std::make_index_sequence<kRow>());

// "reshape($self, shape, *, out=None)\n--\n\nreshape(Tensor x, ...". Kept for ever, as CPython
// asks.
const char* method_doc(const OperatorObject& op) {
  PyObject* signature = operator_text_signature(op);
  PyObject* doc = operator_doc(op);
  std::string text = PyUnicode_AsUTF8(op.name);
  if (signature && doc && PyUnicode_Check(signature)) {
    std::string arguments = PyUnicode_AsUTF8(signature);
    arguments.replace(1, std::string(PyUnicode_AsUTF8(op.parameters[0].name)).size(), "$self");
    text += arguments + "\n--\n\n" + PyUnicode_AsUTF8(doc);
  }
  Py_XDECREF(signature);
  Py_XDECREF(doc);
  return (new std::string(std::move(text)))->c_str();
}

}  // namespace

PyObject* operator_as_method(PyObject* object) {
  auto* op = reinterpret_cast<OperatorObject*>(object);
  if (!op->takes_integers || !op->takes_tensor || used == kRow) return Py_NewRef(object);
  row[used] = reinterpret_cast<OperatorObject*>(Py_NewRef(object));
  definitions[used] = {PyUnicode_AsUTF8(op->name),
                       reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(functions[used])),
                       METH_FASTCALL | METH_KEYWORDS, method_doc(*op)};
  return PyDescr_NewMethod(&tensor_type, &definitions[used++]);
}

}  // namespace tenon::python
