// SPDX-License-Identifier: Apache-2.0
// Quiesce: a worker lives as long as its stream, and streams end before their device, so by now
// there should be none. A driver with threads of its own would stop them here.
#include <chrono>
#include <thread>

#include "device.hpp"

namespace reference {
namespace {

tenon_status quiesce(uint64_t timeout_ns, tenon_err* err) {
  const uint64_t begin = host_now();
  while (live_workers() > 0) {
    if (host_now() - begin >= timeout_ns)
      return tenon::fail(err, TENON_DEADLINE_EXCEEDED,
                         "reference: quiesce: " + std::to_string(live_workers()) +
                             " streams are still alive; destroy them first");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return TENON_OK;
}

}  // namespace

const tenon_quiesce_api kQuiesce = {.struct_size = sizeof(tenon_quiesce_api), .quiesce = quiesce};

}  // namespace reference
