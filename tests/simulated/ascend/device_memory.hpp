// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated chips, Ascend's and Kunlun's. Its addresses are reserved and unreadable in this process, as those of a real
// one would be; the bytes are in another mapping, to which translate() leads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simulated::ascend {

constexpr int kMaxDevices = 16;
int device_count();  // SIMULATED_ASCEND_DEVICES, SIMULATED_KUNLUN_DEVICES

// nullptr: there is not so much left on the chip.
void* device_allocate(size_t bytes, int device = 0);
bool device_release(void* memory);  // false: `memory` is not what device_allocate returned
size_t device_total(int device = 0);
size_t device_free(int device = 0);

}  // namespace simulated::ascend

extern "C" {
// Where the bytes are; nullptr if [address, address + bytes) is not in one allocation.
__attribute__((visibility("default"))) void* simulated_ascend_translate(const void* address,
                                                                        size_t bytes);
// The chip whose memory it is; -1: no chip's.
__attribute__((visibility("default"))) int simulated_ascend_device_of(const void* address);
__attribute__((visibility("default"))) int simulated_ascend_current_device();   // -1: none
__attribute__((visibility("default"))) int64_t simulated_ascend_determinism();  // aclSysParamOpt
__attribute__((visibility("default"))) bool simulated_ascend_is_captured(void* stream);
// Work that a stream of the current device does in its order; returns an AscendCL error. An error of `work` appears
// at the next wait.
__attribute__((visibility("default"))) int simulated_ascend_queue(void* stream, int (*work)(void*),
                                                                  void (*drop)(void*), void* user);
// The same; aclrtStreamAbort calls abort(user) while the work runs, which has to end soon.
__attribute__((visibility("default"))) int simulated_ascend_queue_abortable(
    void* stream, int (*work)(void*), void (*abort)(void*), void (*drop)(void*), void* user);
}
