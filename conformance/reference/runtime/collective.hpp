// SPDX-License-Identifier: Apache-2.0
// What the groups `collective` and `exchange` share.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "device.hpp"
#include "meeting.hpp"

struct tenon_comm_s {
  std::shared_ptr<reference::Meeting> meeting;  // queued work holds it too
};

namespace reference {

// The ranks' slots, combined in the order of ranks: every rank computes the same bits.
void reduce_slots(const Meeting& meeting, void* dst, uint64_t count, int32_t dtype, int32_t reduce);

tenon_status check_reduction(const char* name, int32_t dtype, int32_t reduce, tenon_err* err);
tenon_status check_rank(tenon_comm comm, const char* name, int32_t rank, tenon_err* err);

inline char* bytes_of(void* memory) { return static_cast<char*>(memory); }
inline const char* bytes_of(const void* memory) { return static_cast<const char*>(memory); }

inline Result aborted(const char* name) {
  return {TENON_ABORTED, std::string("reference: ") + name + ": the communicator was aborted"};
}

// What the calls that move pieces have in common. `step(meeting, begin, bytes)` moves one piece; false: aborted.
template <class Step>
tenon_status collective(tenon_device device, tenon_comm comm, const char* name, uint64_t count,
                        int32_t dtype, tenon_stream stream, tenon_err* err, Step step) {
  const uint64_t size = tenon::host->dtype_size(dtype);
  if (size == 0)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       std::string("reference: ") + name + ": unknown dtype");
  return enqueue(
      device, stream,
      {TENON_PROFILE_KERNEL, name, 0,
       [=, meeting = comm->meeting] {
         for (uint64_t begin = 0; begin < count * size; begin += Meeting::kSlotBytes)
           if (!step(*meeting, begin, std::min(Meeting::kSlotBytes, count * size - begin)))
             return aborted(name);
         return Result{};
       }},
      err);
}

}  // namespace reference
