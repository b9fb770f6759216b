// SPDX-License-Identifier: Apache-2.0
// Faults that take the process along, or leave something in it.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tables.hpp"

namespace reference {

namespace {
char staging[64 << 10];  // one for all threads
}

FAULT(race) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    if (request->direction != TENON_COPY_HOST_TO_DEVICE || request->bytes > sizeof staging)
      return kDevice.copy(device, request, err);
    tenon_copy_request staged = *request;
    std::memcpy(staging, request->src, request->bytes);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    staged.src = staging;
    return kDevice.copy(device, &staged, err);
  };
}

FAULT(hang_in_sync) {
  tables.device.sync = [](tenon_device, tenon_stream, tenon_err*) -> tenon_status {
    for (;;) pause();
  };
}

FAULT(exit_in_open) {
  tables.device.open = [](uint32_t, tenon_device*, tenon_err*) -> tenon_status { _exit(0); };
}

namespace {
bool armed = false;
struct Bomb {
  ~Bomb() {
    if (armed) std::abort();
  }
} bomb;
}  // namespace

FAULT(crash_at_unload) { armed = true; }

FAULT(close_leaks_file) {
  tables.device.open = [](uint32_t index, tenon_device* out, tenon_err* err) {
    if (open("/dev/null", O_RDONLY) < 0)
      return tenon::fail(err, TENON_UNAVAILABLE, "no files left");
    return kDevice.open(index, out, err);
  };
}

// The thread never comes back to code that may be unmapped by then.
FAULT(quiesce_leaves_thread) {
  tables.device.open = [](uint32_t index, tenon_device* out, tenon_err* err) {
    static std::atomic<bool> started{false};
    if (!started.exchange(true)) std::thread([] { pause(); }).detach();
    return kDevice.open(index, out, err);
  };
}

FAULT(enumerate_overflows) {
  tables.device.enumerate = [](tenon_device_info* out, uint32_t capacity, uint32_t* count,
                               tenon_err* err) {
    return kDevice.enumerate(out, capacity > 0 ? kDevices : 0, count, err);
  };
}

}  // namespace reference
