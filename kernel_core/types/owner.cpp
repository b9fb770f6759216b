// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/types/owner.hpp"

namespace tenon::core {

constinit thread_local const void* starting_plugin = nullptr;

}  // namespace tenon::core
