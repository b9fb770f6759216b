// SPDX-License-Identifier: Apache-2.0
// What is called once at the end of the backward pass that runs on a thread.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace tenon::python {

// One pass. Those inside others, which hooks run, belong to the outermost one.
class BackwardPass {
 public:
  BackwardPass();
  ~BackwardPass();  // what is still listed, because the pass has failed, is forgotten
  BackwardPass(const BackwardPass&) = delete;
  // The pass has succeeded: call what is listed, in order. False: Python error set.
  bool finish();
};

// The number of this thread's pass, of no other pass of the process; 0: there is none.
uint64_t backward_pass_number();
// Lists `callable` for the end of this thread's pass. False: Python error set, such as outside of one.
bool call_after_backward(PyObject* callable);

}  // namespace tenon::python
