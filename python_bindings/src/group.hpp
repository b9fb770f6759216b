// SPDX-License-Identifier: Apache-2.0
// An optional group of a device, borrowed from the host for as long as the object lives: the device
// stays open and its plugin loaded.
#pragma once

#include <string>
#include <utility>

#include "host_call.hpp"

namespace tenon::python {

template <class Table, int32_t kNumber>
class Group {
 public:
  // Raises NotImplementedError, which names the group, if the device has none.
  explicit Group(tenon_device_id device) : device_(device) {
    const void* table = nullptr;
    ErrorSink err;
    check(host->device_group_borrow(device, kNumber, &table, &handle_, err), err);
    table_ = static_cast<const Table*>(table);
  }
  ~Group() { host->device_group_return(device_, kNumber); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Raises if another thread is inside a call: what the call uses must not be destroyed under it.
  void require_idle(const char* what) const {
    if (calls_ == 0) return;
    raise_error(PyExc_RuntimeError, "%s is in use by another thread; wait until its call returns",
                what);
    throw nanobind::python_error();
  }

  // Wait for queued work before something that it uses is destroyed; needs no GIL. False: the
  // device is lost, also by a fork, and nothing of it can be destroyed any more. Errors of the work
  // are for those who wait for its results.
  bool settle() const {
    tenon_err* err = host->err_create();
    tenon_status status = host->device_sync(device_, err);
    host->err_destroy(err);
    return status != TENON_UNAVAILABLE;
  }

  const Table* operator->() const { return table_; }
  tenon_device handle() const { return handle_; }
  tenon_device_id device() const { return device_; }

  // Call a function of the group with the GIL released: call(err). Failures are told with the
  // device and `name` in front.
  template <class Call>
  void run(const char* name, Call&& call) const {
    struct Counted {
      explicit Counted(int& calls) : calls_(calls) { ++calls_; }
      ~Counted() { --calls_; }
      int& calls_;
    } counted(calls_);
    call_unlocked([&](tenon_err* err) { return result(name, call(err), err); });
  }

 private:
  tenon_status result(const char* name, tenon_status status, tenon_err* err) const {
    if (status == TENON_OK) return status;
    if (host->err_code(err) == TENON_OK)
      tenon::fail(err, status, "failed with code " + std::to_string(status) + " and no text");
    const char* kind = host->device_kind_name(TENON_DEVICE_KIND(device_));
    std::string context = std::string(kind ? kind : "?") + ":" +
                          std::to_string(TENON_DEVICE_INDEX(device_)) + " > " + name;
    host->err_context(err, context.data(), context.size());
    return status;
  }

  const Table* table_ = nullptr;
  tenon_device handle_ = nullptr;
  tenon_device_id device_;
  mutable int calls_ = 0;  // under way; guarded by the GIL
};

}  // namespace tenon::python
