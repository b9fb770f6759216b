// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.profiler.device_profile: a device's own records of what ran when.
#include <nanobind/stl/pair.h>

#include <cstring>
#include <vector>

#include "group.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

class Profile {
 public:
  explicit Profile(tenon_device_id device) : group_(device) {}

  tenon_device_id device() const { return group_.device(); }

  void start() {
    group_.run("profile_start",
               [&](tenon_err* err) { return group_->profile_start(group_.handle(), err); });
  }
  void stop() {
    group_.run("profile_stop",
               [&](tenon_err* err) { return group_->profile_stop(group_.handle(), err); });
  }

  // The same moment on the host's monotonic clock and on the device's, in nanoseconds.
  std::pair<uint64_t, uint64_t> clock() {
    uint64_t host_ns = 0, device_ns = 0;
    group_.run("clock_pair", [&](tenon_err* err) {
      return group_->clock_pair(group_.handle(), &host_ns, &device_ns, err);
    });
    return {host_ns, device_ns};
  }

  // Tuples (kind, name, begin, end, bytes, stream) of all finished work that is not drained yet.
  nb::list drain() {
    constexpr uint32_t kBatch = 256;
    std::vector<tenon_profile_record> batch(kBatch);
    nb::list result;
    for (;;) {
      std::memset(batch.data(), 0, kBatch * sizeof(tenon_profile_record));
      uint32_t count = 0;
      group_.run("profile_drain", [&](tenon_err* err) {
        tenon_status status = group_->profile_drain(
            group_.handle(), batch.data(), sizeof(tenon_profile_record), kBatch, &count, err);
        if (status == TENON_OK && count > kBatch)
          return tenon::fail(
              err, TENON_INTERNAL,
              "returned more records than there was room for; this is a bug in the plugin");
        return status;
      });
      if (count == 0) return result;
      for (uint32_t i = 0; i < count; ++i) result.append(tuple_of(batch[i]));
    }
  }

 private:
  static nb::tuple tuple_of(const tenon_profile_record& record) {
    // A name cut inside a character is no reason to lose the record.
    nb::object name = nb::steal(PyUnicode_DecodeUTF8(
        record.name, static_cast<Py_ssize_t>(strnlen(record.name, sizeof record.name)), "replace"));
    if (!name.is_valid()) throw nb::python_error();
    return nb::make_tuple(record.kind, name, record.begin_ns, record.end_ns, record.bytes,
                          reinterpret_cast<uintptr_t>(record.stream));
  }

  Group<tenon_profile_api, TENON_GROUP_PROFILE> group_;
};

}  // namespace

void add_profile_type(nb::module_& module) {
  nb::class_<Profile>(module, "Profile")
      .def(
          "__init__",
          [](Profile* self, nb::handle device) { new (self) Profile(device_id(device)); },
          nb::arg("device").none() = nb::none())
      .def_prop_ro("device", [](const Profile& self) { return device_value(self.device()); })
      .def("start", &Profile::start)
      .def("stop", &Profile::stop)
      .def("clock", &Profile::clock)
      .def("drain", &Profile::drain);
}

}  // namespace tenon::python
