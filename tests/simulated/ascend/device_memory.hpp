// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated chip. Its addresses are reserved and unreadable in this process, as those of a real
// one would be; the bytes are in another mapping, to which translate() leads.
#pragma once

#include <cstddef>

namespace simulated::ascend {

// nullptr: there is not so much left.
void* device_allocate(size_t bytes);
bool device_release(void* memory);  // false: `memory` is not what device_allocate returned
size_t device_total();
size_t device_free();

}  // namespace simulated::ascend

extern "C" {
// Where the bytes are; nullptr if [address, address + bytes) is not in one allocation.
__attribute__((visibility("default"))) void* simulated_ascend_translate(const void* address,
                                                                        size_t bytes);
// Work that a stream does in its order; returns an AscendCL error. An error of `work` appears at the next wait.
__attribute__((visibility("default"))) int simulated_ascend_queue(void* stream, int (*work)(void*),
                                                                  void (*drop)(void*), void* user);
}
