// SPDX-License-Identifier: Apache-2.0
// The host table, and the one symbol that the library exports.
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/calls.hpp"

namespace tenon::core {
namespace {

constexpr tenon_host kHost = {.struct_size = sizeof(tenon_host),
                              .revision = TENON_ABI_REVISION,
                              .features = 0,
#define TENON_FILL_SLOT(result, name, parameters) .name = slots::name,
                              TENON_HOST_SLOTS(TENON_FILL_SLOT)
#undef TENON_FILL_SLOT
};

}  // namespace
}  // namespace tenon::core

extern "C" __attribute__((visibility("default"))) const tenon_host* tenon_host_get(uint32_t epoch) {
  tenon::core::register_calls_service();
  return epoch == TENON_ABI_EPOCH ? &tenon::core::kHost : nullptr;
}
