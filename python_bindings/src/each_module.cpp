// SPDX-License-Identifier: Apache-2.0
// One operator for lists of tensors, called from one call of Python: what optimizers do for many small parameters. Each
// tensor has a call of the operator of its own, which layers, recordings and profiles see as any other.
#include <tenon/services/autograd.h>

#include <algorithm>
#include <vector>

#include "argument_parser.hpp"
#include "batched.hpp"
#include "call.hpp"
#include "composed.hpp"
#include "counted_call.hpp"
#include "errors.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "operator_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

[[noreturn]] void throw_python() { throw nb::python_error(); }

// A list of plain tensors, which another thread cannot change meanwhile.
class Tensors {
 public:
  Tensors(PyObject* list, const OperatorObject& op) : items_(nb::steal(PyList_AsTuple(list))) {
    if (!items_.is_valid()) throw_python();
    for (size_t i = 0; i < size(); ++i) {
      PyObject* item = at(i);
      if (is_tensor(item) && !is_batched(item)) continue;
      raise_error(PyExc_TypeError,
                  "call_each(): %U: expected lists of tensors, got %s at index %zu", op.name,
                  type_name(item), i);
      throw_python();
    }
  }
  size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(items_.ptr())); }
  PyObject* at(size_t i) const {
    return PyTuple_GET_ITEM(items_.ptr(), static_cast<Py_ssize_t>(i));
  }

 private:
  nb::object items_;
};

struct ListArgument {
  uint32_t parameter;
  Tensors tensors;
};

class EachCall {
 public:
  EachCall(nb::handle op, nb::args args, nb::kwargs keywords)
      : self_(operator_of(op)), counted_(self_) {
    if (!counted_) throw_python();
    check_operator();
    for (nb::handle item : args) take(item.ptr(), static_cast<uint32_t>(objects_.size()), true);
    positional_ = objects_.size();
    names_ = nb::steal(PyTuple_New(0));
    nb::list names;
    for (auto [name, value] : keywords) {
      if (PyUnicode_CompareWithASCIIString(name.ptr(), "out") == 0) {
        take_outputs(value);
        continue;
      }
      names.append(name);
      take(value.ptr(), parameter_named(name.ptr()), false);
    }
    names_ = nb::tuple(names);
    if (count_ < 0) refuse("expected a list of tensors among the arguments, got none");
  }

  nb::object run() {
    if (count_ == 0) return nb::list();
    ParsedCall first;
    if (!parse_arguments(self_, objects_.data(), static_cast<Py_ssize_t>(positional_),
                         PyTuple_GET_SIZE(names_.ptr()) ? names_.ptr() : nullptr, first))
      refuse_arguments(first);
    if (first.out) refuse("expected `out` as lists");
    nb::list results;
    for (Py_ssize_t i = 0; i < count_; ++i) call(first, static_cast<size_t>(i), results);
    return results;
  }

 private:
  static const OperatorObject& operator_of(nb::handle op) {
    if (!PyObject_TypeCheck(op.ptr(), &operator_type)) {
      raise_error(PyExc_TypeError, "call_each(): expected an operator, got %s",
                  type_name(op.ptr()));
      throw_python();
    }
    return *reinterpret_cast<OperatorObject*>(op.ptr());
  }

  void check_operator() const {
    const bool is_plain =
        self_.form == CallForm::kFunction && self_.takes_tensor && !self_.returns_list;
    if (is_plain && self_.is_current()) return;
    raise_error(PyExc_TypeError,
                "call_each(): expected an operator of tensors that gives tensors, got %U",
                self_.name);
    throw_python();
  }

  [[noreturn]] void refuse(const char* what) const {
    raise_error(PyExc_TypeError, "call_each(): %U: %s", self_.name, what);
    throw_python();
  }

  [[noreturn]] void refuse_arguments(const ParsedCall& call) const {
    if (call.arena.has_batched) refuse("expected plain tensors, got one of a batch");
    throw_python();
  }

  void same_count(const Tensors& tensors) {
    const auto size = static_cast<Py_ssize_t>(tensors.size());
    if (count_ >= 0 && count_ != size) refuse("expected lists of one length");
    count_ = size;
  }

  // Objects are borrowed from the call's own tuple and dict.
  void take(PyObject* object, uint32_t parameter, bool is_positional) {
    if (!PyList_Check(object)) return objects_.push_back(object);
    const bool is_known =
        parameter < (is_positional ? self_.positional_count : self_.parameter_count);
    if (!is_known || self_.parameters[parameter].kind != TENON_PARAM_TENSOR)
      refuse("expected lists for parameters that are tensors");
    const ListArgument& list = lists_.emplace_back(ListArgument{parameter, Tensors(object, self_)});
    same_count(list.tensors);
    objects_.push_back(list.tensors.size() ? list.tensors.at(0) : Py_None);
  }

  void take_outputs(nb::handle out) {
    if (PyList_Check(out.ptr())) {
      outs_.emplace_back(out.ptr(), self_);
    } else if (PyTuple_Check(out.ptr())) {
      for (nb::handle list : nb::borrow<nb::tuple>(out)) {
        if (!PyList_Check(list.ptr())) refuse("expected `out` as lists");
        outs_.emplace_back(list.ptr(), self_);
      }
    }
    if (outs_.size() != self_.result_count) refuse("expected a list for each result as `out`");
    for (const Tensors& each : outs_) same_count(each);
  }

  uint32_t parameter_named(PyObject* name) const {
    for (uint32_t i = 0; i < self_.parameter_count; ++i)
      if (PyUnicode_Compare(self_.parameters[i].name, name) == 0) return i;
    return self_.parameter_count;  // the parser says what is known
  }

  void call(const ParsedCall& first, size_t i, nb::list& made) const {
    tenon_value values[kMaxParameters], results[kMaxResults];
    std::copy_n(first.values, self_.parameter_count, values);
    int64_t work = first.arena.work;
    for (const ListArgument& list : lists_) {
      tenon_tensor* tensor = handle_of(list.tensors.at(i));
      values[list.parameter] = value_of(tensor);
      work = std::max(work, tensor->numel);
    }
    for (uint32_t k = 0; k < self_.result_count; ++k)
      results[k] = outs_.empty() ? tenon_value{} : value_of(handle_of(outs_[k].at(i)));
    ErrorSink err;
    const tenon_status status = call_complete(self_.op, values, results, work, err);
    if (status != TENON_OK) {
      raise_call(status, self_.def, values, self_.parameter_count, err);
      throw_python();
    }
    if (outs_.empty()) made.append(wrapped(results));
  }

  nb::object wrapped(tenon_value* results) const {
    if (self_.result_count == 1) return nb::steal(wrap(static_cast<tenon_tensor*>(results[0].v.p)));
    nb::list several;
    for (uint32_t k = 0; k < self_.result_count; ++k)
      several.append(nb::steal(wrap(static_cast<tenon_tensor*>(results[k].v.p))));
    return nb::tuple(several);
  }

  const OperatorObject& self_;
  const CountedCall counted_;
  std::vector<PyObject*> objects_;
  size_t positional_ = 0;
  nb::object names_;
  std::vector<ListArgument> lists_;
  std::vector<Tensors> outs_;
  Py_ssize_t count_ = -1;
};

nb::object call_each(nb::handle op, nb::args args, nb::kwargs keywords) {
  return EachCall(op, args, keywords).run();
}

bool is_dense_real(const tenon_tensor& tensor) {
  return !(tensor.flags & TENON_TENSOR_COMPOSED) && tensor.dtype >= TENON_DTYPE_F8E4M3 &&
         tensor.dtype <= TENON_DTYPE_F64;
}

// (those with a small gradient, their gradients, their numbers of elements, the others with a gradient). The numbers are plain
// ones where a recording follows sizes: how a list is divided is no part of a program.
nb::tuple small_gradients(nb::list params, int64_t limit) {
  nb::list served, grads, sizes, rest;
  const tenon_autograd_api* api = require_autograd();
  if (!api) throw_python();
  for (nb::handle param : params) {
    nb::object grad = nb::steal(PyObject_GetAttrString(param.ptr(), "grad"));
    if (!grad.is_valid()) throw_python();
    if (grad.is_none()) continue;
    const tenon_tensor* tensor = tensor_argument(param, "small_gradients");
    const bool is_small = tensor->numel <= limit && is_dense_real(*tensor) &&
                          is_exact_tensor(grad.ptr()) && is_dense_real(*handle_of(grad.ptr()));
    if (is_small) {
      served.append(param);
      grads.append(grad);
      sizes.append(tensor->numel);
    } else {
      rest.append(param);
    }
  }
  return nb::make_tuple(served, grads, sizes, rest);
}

}  // namespace

void add_each_functions(nb::module_& module) {
  module.def("call_each", &call_each,
             "Calls an operator once for each index of the lists of tensors among its arguments, "
             "which have one length, "
             "with the other arguments as they are: `call_each(tenon.add, [a, b], 1.0)` is [a + "
             "1.0, b + 1.0]. With "
             "`out`, a list (of several results a tuple of lists), results are written there, and "
             "an empty list is "
             "returned. An error ends it; the calls before have been made.");
  module.def(
      "small_gradients", &small_gradients, nb::arg("params"), nb::arg("limit"),
      "(params, grads, sizes, others): of those that have a gradient, the ones of at most `limit` "
      "elements that are real, "
      "dense and floating, as is their gradient; their gradients; their numbers of elements; and "
      "the rest.");
}

}  // namespace tenon::python
