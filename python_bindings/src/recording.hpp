// SPDX-License-Identifier: Apache-2.0
// What the bindings tell a recording of this thread's operator calls (tenon.export).
#pragma once

#include <Python.h>
#include <tenon/abi.h>

#include <string>

namespace tenon::python {

// Recordings under way in any thread; guarded by the GIL.
inline int recordings = 0;

// False, with the Python error set: this thread records, and may not read data.
[[gnu::cold]] bool ask_whether_readable(const char* what);
inline bool may_read(const char* what) {
  return recordings == 0 || ask_whether_readable(what);  // one comparison where nothing is recorded
}

// The thread is about to do what no program repeats: `rest` goes behind the line of the user's program. False, with the Python error
// set: this thread records, and may not.
[[gnu::cold]] bool tell_effect(const char* what, const char* rest);
inline bool may_act(const char* what, const char* rest) {
  return recordings == 0 || tell_effect(what, rest);
}

// While a function is recorded at several sizes: makes the numbers that Python gets for sizes, so that it knows what
// is asked of them (tenon.jit.dynamic_shapes). NULL otherwise. Guarded by the GIL.
inline PyObject* size_tracer = nullptr;
// NULL: Python error set.
[[gnu::cold]] PyObject* traced_size(int64_t size);
// len() is a plain number. False: Python error set.
[[gnu::cold]] bool tell_length(int64_t size);

// .grad of a tensor is being read, and is this or None.
[[gnu::cold]] void tell_grad_read(PyObject* tensor, PyObject* grad);

// A function in Python of an operator that was defined in it runs: a body in terms of others, a shape rule or a gradient.
[[gnu::cold]] void tell_operator(const std::string& name);
inline void note_operator(const std::string& name) {
  if (recordings != 0) tell_operator(name);
}

// .grad of a tensor is about to be assigned. False: Python error set.
[[gnu::cold]] bool tell_grad(tenon_tensor* tensor);

// The state of random numbers is being read.
[[gnu::cold]] void tell_random_state_read();

// The function does what programs do not: TENON_GRAPH_NOTE_*.
[[gnu::cold]] void tell_note(unsigned notes);
inline void note_in_recording(unsigned notes) {
  if (recordings != 0) tell_note(notes);
}

// A backward pass begins, with flags of TENON_BACKWARD_*; `accumulates`: into .grad.
[[gnu::cold]] void tell_backward(unsigned flags, bool accumulates);
inline void note_backward(unsigned flags, bool accumulates) {
  if (recordings != 0) tell_backward(flags, accumulates);
}
// It has ended, and the GIL is held.
[[gnu::cold]] void tell_backward_end();
inline void note_backward_end() {
  if (recordings != 0) tell_backward_end();
}

}  // namespace tenon::python
