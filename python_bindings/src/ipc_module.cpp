// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.runtime.ipc: device memory of one process in another.
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <vector>

#include "group.hpp"
#include "modules.hpp"
#include "recording.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

using IpcGroup = Group<tenon_ipc_api, TENON_GROUP_IPC>;

// (handle, offset of the first element in bytes) of the plugin's allocation under a tensor.
nb::tuple ipc_export(nb::handle object) {
  tenon_tensor* tensor = tensor_argument(object, "share");
  if (!may_read("ipc.share()")) throw nb::python_error();
  IpcGroup group(tensor->device);
  void* memory = nullptr;
  uint64_t bytes = 0, offset = 0;
  ErrorSink err;
  check(host->memory_origin(tensor, &memory, &bytes, &offset, err), err);
  tenon_ipc_handle handle = {};
  group.run("ipc_export", [&](tenon_err* failure) {
    return group->ipc_export(group.handle(), memory, bytes, &handle, failure);
  });
  return nb::make_tuple(nb::bytes(handle.bytes, sizeof handle.bytes), offset);
}

// Memory of another process: closed when the last tensor on it dies, on whatever thread.
struct Opened {
  explicit Opened(tenon_device_id device) : group(device) {}
  ~Opened() {
    if (memory) group->ipc_close(group.handle(), memory);
  }
  IpcGroup group;
  void* memory = nullptr;
  uint64_t bytes = 0;
};

void close_opened(void* user) {
  auto* opened = static_cast<Opened*>(user);
  if (!opened->group.settle()) opened->memory = nullptr;
  delete opened;
}

// Whether a layout stays inside `available` bytes when its first element is at `offset`. The
// numbers come from another process.
bool fits(int32_t dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
          uint64_t offset, uint64_t available) {
  auto size = static_cast<int64_t>(host->dtype_size(dtype));
  if (offset > available || available > INT64_MAX) return false;
  int64_t low = static_cast<int64_t>(offset), high = low;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t reach;
    if (shape[axis] < 0) return false;
    if (shape[axis] == 0) return true;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) ||
        __builtin_mul_overflow(reach, size, &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      return false;
  }
  return low >= 0 && !__builtin_add_overflow(high, size, &high) &&
         high <= static_cast<int64_t>(available);
}

nb::object ipc_open(nb::handle device, nb::bytes handle_bytes, nb::handle dtype,
                    const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                    uint64_t offset) {
  if (!may_act("ipc.open()",
               " takes memory of another process, and a program would keep its "
               "elements of now; call it outside and pass the tensor"))
    throw nb::python_error();
  tenon_ipc_handle handle;
  int32_t dtype_id;
  if (!optional_dtype(dtype.ptr(), TENON_DTYPE_F32, dtype_id)) throw nb::python_error();
  if (handle_bytes.size() != sizeof handle.bytes || shape.size() != strides.size() ||
      shape.size() > TENON_MAX_NDIM)
    throw nb::value_error("open(): expected what share() returned, got other bytes");
  std::memcpy(handle.bytes, handle_bytes.c_str(), sizeof handle.bytes);
  auto opened = std::make_unique<Opened>(device_id(device));
  const IpcGroup& group = opened->group;
  group.run("ipc_open", [&](tenon_err* err) {
    tenon_status status =
        group->ipc_open(group.handle(), &handle, &opened->memory, &opened->bytes, err);
    if (status == TENON_OK && !opened->memory)
      return tenon::fail(err, TENON_INTERNAL,
                         "returned OK and no memory; this is a bug in the plugin");
    return status;
  });
  if (offset % host->dtype_size(dtype_id) != 0 ||
      !fits(dtype_id, shape, strides, offset, opened->bytes)) {
    raise_error(PyExc_ValueError,
                "open(): the tensor described reaches outside the %llu bytes that were shared",
                static_cast<unsigned long long>(opened->bytes));
    throw nb::python_error();
  }
  tenon_device_info info = {};
  info.struct_size = sizeof info;
  ErrorSink err;
  check(host->device_info(group.device(), &info, err), err);
  if (info.flags & TENON_DEVICE_OPAQUE_MEMORY && offset != 0)
    throw nb::value_error("open(): the tensor does not begin where the device's handle does");
  tenon_tensor* tensor = nullptr;
  check(host->tensor_wrap(group.device(), dtype_id, static_cast<int32_t>(shape.size()),
                          shape.data(), strides.data(), static_cast<char*>(opened->memory) + offset,
                          0, close_opened, opened.get(), &tensor, err),
        err);
  opened.release();
  nb::object result = nb::steal(wrap(tensor));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

}  // namespace

void add_ipc_functions(nb::module_& module) {
  module.def("ipc_export", &ipc_export, nb::arg("tensor"));
  module.def("ipc_open", &ipc_open, nb::arg("device"), nb::arg("handle"), nb::arg("dtype"),
             nb::arg("shape"), nb::arg("strides"), nb::arg("offset"));
}

}  // namespace tenon::python
