// SPDX-License-Identifier: Apache-2.0
#include "core/host.hpp"

namespace tenon::paddle {
namespace {

// Before the static initialisers of plugins, which are loaded later, and before those of this
// library that have no priority.
__attribute__((constructor(101))) void attach_host() {
  tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
}

}  // namespace
}  // namespace tenon::paddle
