// SPDX-License-Identifier: Apache-2.0
// A Python function that sees the operator calls of a thread, for counting what they cost.
#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "modules.hpp"
#include "python_callback.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

class CallObserver;

// Where calls are seen: a layer.
struct Level {
  const char* name;
  int32_t order;
  int32_t layer = -1;
};
// Before gradients, so that a call is seen as it was written; and behind the layer of sharded tensors, so that it is seen as
// this rank computes it.
constinit Level levels[] = {{"python call observer", 50}, {"python observer of local calls", 250}};
constinit thread_local CallObserver* current[2] = {};

// Lets the layer see calls of this thread in a scope, or not.
class Seeing {
 public:
  Seeing(int32_t layer, bool on) : layer_(layer), was_(host->layer_enable(layer, on)) {}
  ~Seeing() { host->layer_enable(layer_, was_); }
  Seeing(const Seeing&) = delete;

 private:
  int32_t layer_, was_;
};

class CallObserver {
 public:
  // `function(name, arguments, results, has_parts)` is called after each call that computes or
  // copies: views do neither. A call has parts if operators were called on the way. An exception of the
  // function ends the observation, and exit() raises it.
  CallObserver(nb::callable function, bool sees_local_calls)
      : function_(function), at_(sees_local_calls) {}
  CallObserver(const CallObserver&) = delete;

  // The thread has a pointer to the observer until exit, and so a reference to the object.
  void enter(nb::handle self);
  void exit(nb::handle self);
  tenon_status call(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                    uint32_t nouts, tenon_err* err);

 private:
  bool report(const tenon_op_def& def, const tenon_value* args, uint32_t nargs,
              const tenon_value* outs, uint32_t nouts, bool has_parts) const;

  nb::object function_;
  bool at_;  // in `levels`
  CallObserver* before_ = nullptr;
  bool is_entered_ = false;
  bool has_seen_ = false;  // a call ended since it was last set to false
  std::optional<nb::python_error> failure_;
};

template <int at>
tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  return current[at]->call(op, args, nargs, outs, nouts, err);
}

int32_t register_layer(int at, tenon_err* err) {
  const tenon_layer_def def = {
      .struct_size = sizeof(tenon_layer_def),
      .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_NO_BIT,
      .name = levels[at].name,
      .order = levels[at].order,
      .call = at ? layer_call<1> : layer_call<0>,
  };
  return host->layer_register(&def, err);
}

void CallObserver::enter(nb::handle self) {
  if (!ensure_loaded()) throw nb::python_error();
  if (is_entered_) {
    raise_error(PyExc_RuntimeError, "expected an observer of calls that is not in use already");
    throw nb::python_error();
  }
  if (int32_t& layer = levels[at_].layer; layer < 0) {
    ErrorSink err;
    layer = register_layer(at_, err);
    if (layer < 0) {
      raise(host->err_code(err), err);
      throw nb::python_error();
    }
  }
  is_entered_ = true;
  before_ = std::exchange(current[at_], this);
  host->layer_enable(levels[at_].layer, 1);
  self.inc_ref();
}

void CallObserver::exit(nb::handle self) {
  if (current[at_] != this) {
    raise_error(PyExc_RuntimeError,
                "expected the end of the block on the thread that entered it, innermost first");
    throw nb::python_error();
  }
  host->layer_enable(levels[at_].layer, before_ != nullptr);
  current[at_] = before_;
  is_entered_ = false;
  std::optional<nb::python_error> failure = std::exchange(failure_, std::nullopt);
  self.dec_ref();  // the caller has one
  if (failure) throw nb::python_error(std::move(*failure));
}

tenon_status CallObserver::call(const tenon_op* op, tenon_value* args, uint32_t nargs,
                                tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const tenon_op_def& def = *host->op_def(op);
  has_seen_ = false;
  TENON_TRY(host->op_call_below(levels[at_].layer, op, args, nargs, outs, nouts, err));
  if (def.flags & TENON_OP_VIEW) return TENON_OK;
  const bool has_parts = std::exchange(has_seen_, true);
  PythonThread python;
  if (failure_ || !python.is_alive()) return TENON_OK;
  Seeing none(levels[at_].layer, false);
  // The call has succeeded, whatever the observer says: its error waits for the end.
  if (!report(def, args, nargs, outs, nouts, has_parts)) failure_.emplace();
  return TENON_OK;
}

bool CallObserver::report(const tenon_op_def& def, const tenon_value* args, uint32_t nargs,
                          const tenon_value* outs, uint32_t nouts, bool has_parts) const {
  nb::dict arguments;
  for (uint32_t i = 0; i < nargs; ++i) {
    PyObject* value = python_value(args[i], true);
    if (!value) return false;
    arguments[def.params[i].name] = nb::steal(value);
  }
  nb::list results;
  for (uint32_t k = 0; k < nouts; ++k) {
    PyObject* value = python_value(outs[k], true);
    if (!value) return false;
    results.append(nb::steal(value));
  }
  PyObject* done = PyObject_CallFunction(function_.ptr(), "sOOO", def.name, arguments.ptr(),
                                         results.ptr(), has_parts ? Py_True : Py_False);
  Py_XDECREF(done);
  return done != nullptr;
}

}  // namespace

void add_call_observer(nb::module_& module) {
  nb::class_<CallObserver>(module, "_CallObserver")
      .def(nb::init<nb::callable, bool>(), nb::arg("function"), nb::arg("local") = false)
      .def("enter", [](nb::handle self) { nb::cast<CallObserver&>(self).enter(self); })
      .def("exit", [](nb::handle self) { nb::cast<CallObserver&>(self).exit(self); });
}

}  // namespace tenon::python
