// SPDX-License-Identifier: Apache-2.0
// Python ints of one digit, as nearly all axes, extents and indices are, without a call.
#pragma once

#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>
#endif

#include <cstdint>

namespace tenon::python {

// False: no int, a subclass of one (bool is), or one of several digits.
inline bool small_int(PyObject* object, int64_t& value) {
  if (!PyLong_CheckExact(object)) return false;
  auto* number = reinterpret_cast<PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(number)) return false;
  value = PyUnstable_Long_CompactValue(number);
#else
  Py_ssize_t sign = Py_SIZE(number);  // times the digits
  if (sign < -1 || sign > 1) return false;
  value = sign * static_cast<int64_t>(number->ob_digit[0]);
#endif
  return true;
}

}  // namespace tenon::python
