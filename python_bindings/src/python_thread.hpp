// SPDX-License-Identifier: Apache-2.0
// For callbacks that the host makes at any time on any thread.
#pragma once

#include <Python.h>

namespace tenon::python {

// Holds the GIL, unless the interpreter is shutting down: then callbacks must leave Python alone,
// and what they would have freed is left to the process's end.
class PythonThread {
 public:
  PythonThread() : alive_(Py_IsInitialized() && !is_finalizing()) {
    if (alive_) state_ = PyGILState_Ensure();
  }
  ~PythonThread() {
    if (alive_) PyGILState_Release(state_);
  }
  PythonThread(const PythonThread&) = delete;
  PythonThread& operator=(const PythonThread&) = delete;
  bool is_alive() const { return alive_; }

 private:
  static bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
  }
  bool alive_;
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace tenon::python
