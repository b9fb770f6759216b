// SPDX-License-Identifier: Apache-2.0
#include "default_device.hpp"

#include <vector>

#include "argument_parser.hpp"
#include "host_call.hpp"
#include "operator_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

thread_local tenon_device_id chosen = TENON_DEVICE_NONE;
thread_local std::vector<tenon_device_id> outer_devices;  // what `with device:` brings back

void choose(tenon_device_id device) {
  chosen = device;
  if (device != TENON_DEVICE_NONE) has_default_device = true;
}

bool holds_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR || (value.tag == TENON_VALUE_TENSORS && value.aux > 0);
}

void set_device(nb::handle device) {
  need_plugins();
  tenon_device_id id;
  if (!optional_device(device.ptr(), TENON_DEVICE_NONE, id)) throw nb::python_error();
  choose(id);
}

nb::object default_device_value() {
  need_plugins();
  return device_value(default_device());
}

}  // namespace

tenon_device_id chosen_device() { return has_default_device ? chosen : TENON_DEVICE_NONE; }

tenon_device_id default_device() {
  const tenon_device_id device = chosen_device();
  return device == TENON_DEVICE_NONE ? host->device_host() : device;
}

void fill_device(const OperatorObject& self, ParsedCall& call) {
  if (chosen == TENON_DEVICE_NONE || call.out) return;
  for (uint32_t i = 0; i < call.count; ++i)
    if (holds_tensor(call.values[i])) return;
  for (uint32_t i = 0; i < call.count; ++i)
    if (self.parameters[i].kind == TENON_PARAM_DEVICE && call.values[i].tag == TENON_VALUE_NONE)
      call.values[i] = {TENON_VALUE_DEVICE, 0, {.i = chosen}};
}

void enter_device(tenon_device_id device) {
  outer_devices.push_back(chosen);
  choose(device);
}

void leave_device() {
  if (outer_devices.empty()) return;
  chosen = outer_devices.back();
  outer_devices.pop_back();
}

void add_default_device(nb::module_& module) {
  module.def("set_device", &set_device, nb::arg("device").none(),
             "Make new tensors of this thread on `device` where a call names none; None: on the "
             "host device "
             "again.");
  module.def("get_device", &default_device_value,
             "The device on which this thread makes tensors where a call names none.");
}

}  // namespace tenon::python
