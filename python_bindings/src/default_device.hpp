// SPDX-License-Identifier: Apache-2.0
// The device of what is made without naming one: tenon.set_device, `with tenon.device(...):`.
#pragma once

#include <nanobind/nanobind.h>
#include <tenon/abi.h>

namespace tenon::python {

struct OperatorObject;
struct ParsedCall;

// Whether a thread has ever chosen one. Until then calls look no further.
inline bool has_default_device = false;

// That of the calling thread; the host device, if it has chosen none. Plugins are loaded.
tenon_device_id default_device();

// That which the calling thread has chosen, or TENON_DEVICE_NONE.
tenon_device_id chosen_device();

// Of a call that makes a tensor out of none and names no device: it is made on the chosen one.
[[gnu::cold]] void fill_device(const OperatorObject& self, ParsedCall& call);

// `with device:`; innermost last.
void enter_device(tenon_device_id device);
void leave_device();

void add_default_device(nanobind::module_& module);

}  // namespace tenon::python
