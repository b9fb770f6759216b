// SPDX-License-Identifier: Apache-2.0
// Communicators, and what the groups `collective` and `exchange` share.
#pragma once

#include <mutex>
#include <string>

#include "device.hpp"
#include "library/hccl.hpp"

struct tenon_comm_s {
  ascend::hccl::Comm handle = nullptr;
  int32_t rank = 0, size = 0;
  std::atomic<bool> aborted{false};
  std::timed_mutex mutex;                // held while a call is inside HCCL; guards what follows
  bool is_destroyed = false;             // the handle
  ascend::Event last = nullptr;          // behind the last call
  ascend::Stream last_stream = nullptr;  // where that was queued; NULL: there was none
  // For means, in the order of the calls.
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
};

namespace ascend {

tenon_status load_hccl(tenon_err* err);
// "name: text (number)" under the status that fits.
tenon_status fail_hccl(tenon_err* err, hccl::Result result, const char* name);
tenon_status fail_aborted(tenon_err* err, const char* name);
tenon_status check_rank(tenon_comm comm, const char* name, int32_t rank, tenon_err* err);

tenon_status make_root_info(tenon_device device, hccl::RootInfo* out, const char* name,
                            tenon_err* err);
// Returns when every rank has called it.
tenon_status join(tenon_device device, const hccl::RootInfo& info, int32_t rank, int32_t size,
                  const char* name, tenon_comm* out, tenon_err* err);

// The start and the end of a call, whose work follows that of the call before on whichever stream that was.
tenon_status enter(tenon_device device, tenon_comm comm, const char* name, Stream stream,
                   tenon_err* err);
tenon_status record(tenon_comm comm, Stream stream, tenon_err* err);
tenon_status leave(tenon_device device, tenon_comm comm, const char* name, tenon_stream on,
                   tenon_status status, tenon_err* err);

// What all of them have in common. call(stream) queues the work.
template <class Call>
tenon_status queue(tenon_device device, tenon_comm comm, const char* name, tenon_stream on,
                   tenon_err* err, Call call) {
  const Stream stream = stream_of(device, on);
  tenon_status status;
  {
    const std::lock_guard lock(comm->mutex);
    status = enter(device, comm, name, stream, err);
    if (status) return status;
    const hccl::Result result = call(stream);
    // A first call connects the ranks, so that it may have waited for one that never came.
    if (result && comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, name);
    status = result ? fail_hccl(err, result, name) : record(comm, stream, err);
  }
  return leave(device, comm, name, on, status, err);
}

// How HCCL reduces a dtype. `parts` is the number of its elements in one of ours.
struct Reducible {
  int type = -1;
  uint64_t parts = 1;
  int reduction = hccl::kSum;
  int divided = -1;  // the TENON_DTYPE_ in which the sum is divided for a mean; -1: it is not
};
tenon_status find_reduction(const char* name, int32_t dtype, int32_t reduction, Reducible* out,
                            tenon_err* err);

// mean.cpp. HCCL computes no mean, so that a sum is divided on the chip by the number of ranks.
const std::string& mean_problem();  // empty: there is what divides
// Queues the division behind the sum. The mutex of `comm` is held.
tenon_status divide(tenon_comm comm, void* memory, uint64_t count, int dtype, Stream stream,
                    tenon_err* err);

template <class Call>
tenon_status reduce(tenon_device device, tenon_comm comm, const char* name, void* dst,
                    uint64_t count, int32_t dtype, int32_t reduction, tenon_stream stream,
                    tenon_err* err, Call call) {
  Reducible how;
  if (const tenon_status status = find_reduction(name, dtype, reduction, &how, err)) return status;
  if (count == 0) return TENON_OK;
  tenon_status divided = TENON_OK;
  const tenon_status status = queue(device, comm, name, stream, err, [&](Stream on) {
    const hccl::Result result = call(how, count * how.parts, on);
    if (!result && how.divided >= 0 && dst)
      divided = divide(comm, dst, count * how.parts, how.divided, on, err);
    return result;
  });
  return status ? status : divided;
}

}  // namespace ascend
