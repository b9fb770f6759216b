// SPDX-License-Identifier: Apache-2.0
// tenon.Operator: any operator of the host's table as a Python function. The same object is the
// function `tenon.add` and, found through the type, the method `Tensor.add` (short ones have a
// method of CPython's kind beside it, operator_method.hpp). Nothing here is written per operator:
// parameters come from the definition, so operators of plugins get the same treatment.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

inline constexpr uint32_t kMaxParameters = 32;
inline constexpr uint32_t kMaxResults = 8;

struct Parameter {
  PyObject* name;             // interned
  int32_t kind;               // TENON_PARAM_*
  uint32_t flags;             // TENON_PARAM_FLAG_*
  tenon_value default_value;  // NONE if it has none
};

enum class CallForm : uint8_t { kFunction, kInPlace };

struct OperatorObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const tenon_op* op;
  const tenon_op_def* def;  // the host's; all zero once the operator's plugin is unloaded
  uint64_t schema_hash;     // of the definition that `parameters` were read from
  int* calls;               // calls under way, see calls_of
  Parameter* parameters;
  uint32_t parameter_count;
  uint32_t positional_count;
  uint64_t required;  // bit per parameter without default
  uint32_t result_count;
  CallForm form;
  bool may_view;        // the result may be a view, says the host
  bool takes_integers;  // by position, after a tensor if it takes_tensor (integer_call.hpp)
  bool takes_tensor;    // first
  bool returns_list;
  bool gathers;         // f(x, 1, 2) means f(x, [1, 2]): the last positional parameter is a list
  bool sizes_by_shape;  // creation: the work is the product of the shape argument
  PyObject* name;
  PyTypeObject* result_type;  // named tuple for several results

  // False after the plugin was unloaded, or replaced by one with another signature.
  bool is_current() const { return def->schema_hash == schema_hash; }
  const char* schema() const { return is_current() ? def->schema : "(its plugin was unloaded)"; }
};

extern PyTypeObject operator_type;

// The operator called `name` ("add", "add_" for the in-place form, "acme::swiglu"): a new
// reference. NULL without a Python error: there is none of that name.
PyObject* find_operator(const char* name);

// The same of one that is a part of others, by its full name ("tenon::attention"), made anew.
PyObject* find_internal_operator(const char* name);

// Calls under way of an operator of a namespace where programs may define some, from Python on any
// thread: while there are some it is not taken out. kCallsRefused while it is being taken out, and
// kTakenOut from then until it is there again. Guarded by the GIL.
inline constexpr int kCallsRefused = -1, kTakenOut = -2;
int& calls_of(const tenon_op* op);

// Give tenon.Tensor a method for every operator of namespace `tenon` that takes a tensor first.
bool add_tensor_methods();

bool ready_operator_type();

}  // namespace tenon::python
