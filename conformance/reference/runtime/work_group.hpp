// SPDX-License-Identifier: Apache-2.0
// Running a compiled kernel over its work items, on one thread.
#pragma once

#include "kernel_text.hpp"

namespace reference {

inline constexpr uint32_t kMaxItems = 256;  // of a group

void run_groups(const KernelEntry& kernel, void* const* arguments, const uint32_t (&groups)[3],
                const uint32_t (&size)[3]);

}  // namespace reference
