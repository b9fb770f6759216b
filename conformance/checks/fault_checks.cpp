// SPDX-License-Identifier: Apache-2.0
// Calls that cannot succeed: they answer with a code and a text, and the device goes on.
#include <cinttypes>

#include "subject/device.hpp"

namespace tenon::kit {
namespace {

void still_works(Device& device) {
  device.session().step("the device after the failure");
  Buffer buffer = device.alloc(4096);
  Bytes data = pattern(4096);
  device.put(buffer, 0, data.data(), data.size());
  std::string difference = first_difference(data, device.read(buffer));
  device.session().expect(difference.empty(), "the device works on", difference);
}

constexpr uint64_t kAbsurd[] = {uint64_t{1} << 60, uint64_t{1} << 63, ~uint64_t{0} - 4096,
                                ~uint64_t{0}};

void oom(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  for (uint64_t bytes : kAbsurd) {
    session.step(text("alloc of ", bytes, " bytes"));
    void* memory = nullptr;
    Error error;
    tenon_status status = device.alloc_raw(bytes, 256, nullptr, &memory, error);
    session.expect(status == TENON_OUT_OF_MEMORY,
                   text("alloc of ", bytes, " bytes: code 8 (OUT_OF_MEMORY)"),
                   describe(status, error),
                   "check sizes before adding to them, and map the driver's code: the host trims "
                   "its cache and asks again only after this one");
    session.expect(memory == nullptr, "out parameters are untouched on failure", "one was written");
  }
  still_works(device);
}

void open_range(Session& session) {
  Plugin plugin(session);
  uint32_t count = static_cast<uint32_t>(Device::enumerate(plugin).size());
  for (uint32_t index : {count, count + 1, UINT32_MAX}) {
    session.step(text("open of device ", index));
    tenon_device handle = nullptr;
    Error error;
    tenon_status status = plugin.api().open(index, &handle, error);
    session.expect(status != TENON_OK, text("open of device ", index, " of ", count, " fails"),
                   "TENON_OK", "compare the index with the number of devices");
    if (status == TENON_OK) plugin.api().close(handle);
  }
}

// Every failure that can be had without harm. Which code it is, others check.
void error_text(Session& session) {
  Plugin plugin(session);
  uint32_t count = static_cast<uint32_t>(Device::enumerate(plugin).size());
  Device device(plugin);
  auto expect_text = [&](const std::string& call, tenon_status status, const Error& error) {
    if (status == TENON_OK) return;
    session.expect(!error.text().empty(), "a text for the failure of " + call,
                   text("code ", status, " without one"));
  };
  void* memory = nullptr;
  tenon_device other = nullptr;
  {
    Error error;
    session.step("open out of range");
    expect_text("open", plugin.api().open(count + 7, &other, error), error);
  }
  {
    Error error;
    session.step("alloc of too much");
    expect_text("alloc of too much", device.alloc_raw(kAbsurd[0], 256, nullptr, &memory, error),
                error);
  }
  {
    Error error;
    session.step("alloc with an unknown feature");
    tenon_status status = device.alloc_raw(64, 256, nullptr, &memory, error, 1ull << 63);
    expect_text("alloc with an unknown feature", status, error);
  }
  {
    Error error;
    session.step("alloc of an unknown kind");
    tenon_status status = device.alloc_raw(64, 256, nullptr, &memory, error, 0, 77);
    expect_text("alloc of an unknown kind", status, error);
  }
  Buffer buffer = device.alloc(64);
  for (bool understood : {true, false}) {
    session.step(understood ? "copy in an unknown direction" : "copy with an unknown feature");
    tenon_copy_request request{sizeof request,
                               understood ? 9 : TENON_COPY_DEVICE_TO_DEVICE,
                               understood ? 0 : 1ull << 63,
                               buffer.memory(),
                               buffer.memory(),
                               0,
                               0,
                               0,
                               nullptr};
    Error error;
    expect_text(understood ? "copy in an unknown direction" : "copy with an unknown feature",
                device.api().copy(device.handle(), &request, error), error);
  }
}

void zero_bytes(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Buffer buffer = device.alloc(64);
  for (int32_t direction :
       {TENON_COPY_HOST_TO_DEVICE, TENON_COPY_DEVICE_TO_HOST, TENON_COPY_DEVICE_TO_DEVICE})
    for (bool is_null : {true, false}) {
      session.step(text("copy of 0 bytes, direction ", direction));
      unsigned char byte = 0;
      bool to_host = direction == TENON_COPY_DEVICE_TO_HOST;
      bool from_host = direction == TENON_COPY_HOST_TO_DEVICE;
      void* dst = is_null ? nullptr : to_host ? static_cast<void*>(&byte) : buffer.memory();
      const void* src = is_null ? nullptr : from_host ? static_cast<void*>(&byte) : buffer.memory();
      tenon_copy_request request{sizeof request, direction, 0, dst, src, 0, 0, 0, nullptr};
      Error error;
      tenon_status status = device.api().copy(device.handle(), &request, error);
      session.expect(status == TENON_OK,
                     text("copy of 0 bytes, direction ", direction,
                          is_null ? ", NULL pointers: TENON_OK" : ": TENON_OK"),
                     describe(status, error));
    }
  session.step("fill of 0 bytes");
  Error error;
  unsigned char zero = 0;
  tenon_status status =
      device.api().fill(device.handle(), buffer.memory(), 0, 0, &zero, 1, nullptr, error);
  session.expect(status == TENON_OK, "fill of 0 bytes: TENON_OK", describe(status, error));
}

}  // namespace

const Checks& fault_checks() {
  static const Checks checks = {
      {"faults.oom", "Too much memory is refused, and the device goes on.",
       "abi.h section 5, alloc", "return TENON_OUT_OF_MEMORY with a text; never abort or throw",
       "lifecycle.sync memory.copy_grid", oom},
      {"faults.open_range", "A device that does not exist is not opened.", "abi.h section 5, open",
       "", "lifecycle.load", open_range},
      {"faults.error_text", "Every failure has a text.", "abi.h, ground rules; section 8, fail",
       "call host->fail with the code and a text before returning it", "lifecycle.sync faults.oom",
       error_text},
      {"faults.zero_bytes", "Copies of nothing succeed, whatever the pointers.",
       "abi.h section 5, copy", "return TENON_OK at once if bytes == 0", "lifecycle.sync",
       zero_bytes},
  };
  return checks;
}

}  // namespace tenon::kit
