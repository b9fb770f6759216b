// SPDX-License-Identifier: Apache-2.0
// Memory that processes share through a file descriptor, such as a memfd, as a tensor. Python's own mmap
// keeps a descriptor open for each mapping, and programs may keep more batches than open files.
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "host_call.hpp"
#include "modules.hpp"
#include "runtime.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

struct Mapping {
  Mapping(void* address, size_t bytes) : address(address), bytes(bytes) {}
  Mapping(Mapping&&) = delete;
  ~Mapping() { munmap(address, bytes); }
  void* address;
  size_t bytes;
};

void unmap(void* mapping) { delete static_cast<Mapping*>(mapping); }

// A uint8 tensor on the first `bytes` of the file, which it maps until the last tensor on it dies.
nb::object map_shared_memory(int descriptor, int64_t bytes) {
  tenon_device_id device = require_host_device();
  if (device == TENON_DEVICE_NONE) throw nb::python_error();
  if (bytes < 1) throw nb::value_error("map_shared_memory(): expected at least one byte");
  void* address = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (address == MAP_FAILED) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  auto mapping = std::make_unique<Mapping>(address, static_cast<size_t>(bytes));
  tenon_tensor* tensor = nullptr;
  ErrorSink err;
  check(host->tensor_wrap(device, TENON_DTYPE_U8, 1, &bytes, nullptr, address, 0, unmap,
                          mapping.get(), &tensor, err),
        err);
  mapping.release();
  nb::object result = nb::steal(wrap(tensor));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace

void add_shared_memory(nb::module_& module) {
  module.def("map_shared_memory", &map_shared_memory, nb::arg("descriptor"), nb::arg("bytes"));
}

}  // namespace tenon::python
