// SPDX-License-Identifier: Apache-2.0
// The group `collective`: HCCL, opened at run time when the first communicator is made.
//
// Note [Aborted communicators]
// HCCL has no function that ends the work of a communicator. AscendCL's aclrtStreamAbort drops the work of a
// stream, and a stream that waits for an event of that work waits for ever, so that its work is to be dropped as
// well. Which streams those are is not known: every stream of the device that has work is dropped and marked, and
// the next wait for it fails with TENON_ABORTED. A call inside HCCL that waits for another rank ends when its
// communicator is destroyed from another thread, which HCCL allows for this purpose alone. Chips older than
// Atlas A2 have no aclrtStreamAbort: there, what waits ends after HCCL_EXEC_TIMEOUT.
#include "collective.hpp"

#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "root_info.hpp"

namespace ascend {

using hccl::library;
using hccl::Result;
using std::chrono::milliseconds;

tenon_status load_hccl(tenon_err* err) {
  if (hccl::problem().empty()) return TENON_OK;
  return tenon::fail(err, TENON_UNAVAILABLE, "ascend: " + hccl::problem());
}

tenon_status fail_hccl(tenon_err* err, Result result, const char* name) {
  tenon_status status = TENON_INTERNAL;
  if (result == hccl::kInvalidParameter) status = TENON_INVALID_ARGUMENT;
  if (result == hccl::kNotSupported) status = TENON_UNSUPPORTED;
  if (result == hccl::kNoMemory || result == hccl::kOutOfMemory) status = TENON_OUT_OF_MEMORY;
  const char* text = library.error_text ? library.error_text(result) : nullptr;
  const char* detail = acl.aclGetRecentErrMsg();
  return tenon::fail_format(err, status, "ascend: %s: %s (%d)%s%s", name,
                            text ? text : "HCCL failed", result, detail && *detail ? ", " : "",
                            detail ? detail : "");
}

tenon_status fail_aborted(tenon_err* err, const char* name) {
  return tenon::fail_format(err, TENON_ABORTED,
                            "ascend: %s: the communicator was aborted; make a new one", name);
}

tenon_status check_rank(tenon_comm comm, const char* name, int32_t rank, tenon_err* err) {
  if (rank >= 0 && rank < comm->size) return TENON_OK;
  return tenon::fail_format(err, TENON_INVALID_ARGUMENT,
                            "ascend: %s: expected a rank below %d, got %d", name, comm->size, rank);
}

tenon_status make_root_info(tenon_device device, hccl::RootInfo* out, const char* name,
                            tenon_err* err) {
  if (const tenon_status status = load_hccl(err)) return status;
  if (const tenon_status status = make_current(device, err)) return status;
  static std::mutex mutex;  // HCCL promises that one thread may do this after another, no more
  const std::lock_guard lock(mutex);
  *out = {};
  const Result result = library.root_info(out);
  return result ? fail_hccl(err, result, name) : TENON_OK;
}

namespace {

void destroy(tenon_comm comm) {
  // What has just ended may still count as under way.
  for (int i = 0; i < 500 && !comm->is_destroyed; ++i) {
    comm->is_destroyed = library.destroy(comm->handle) != hccl::kInUse;
    if (!comm->is_destroyed) std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace

tenon_status join(tenon_device device, const hccl::RootInfo& info, int32_t rank, int32_t size,
                  const char* name, tenon_comm* out, tenon_err* err) {
  auto comm = std::unique_ptr<tenon_comm_s>(new (std::nothrow) tenon_comm_s);
  if (!comm) return tenon::fail_host_memory(err);
  if (const tenon_status status = make_current(device, err)) return status;
  comm->rank = rank;
  comm->size = size;
  if (const int error = acl.aclrtCreateEventExWithFlag(&comm->last, kEventSync))
    return fail_acl(err, "aclrtCreateEventExWithFlag", error);
  if (const Result result = library.join(static_cast<uint32_t>(size), &info,
                                         static_cast<uint32_t>(rank), &comm->handle)) {
    acl.aclrtDestroyEvent(comm->last);
    return fail_hccl(err, result, name);
  }
  *out = comm.release();
  return TENON_OK;
}

tenon_status enter(tenon_device device, tenon_comm comm, const char* name, Stream stream,
                   tenon_err* err) {
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, name);
  if (const tenon_status status = make_current(device, err)) return status;
  Result failure = 0;
  if (library.async_error && !library.async_error(comm->handle, &failure) && failure)
    return fail_hccl(err, failure, name);
  if (!comm->last_stream || comm->last_stream == stream) return TENON_OK;
  const int error = acl.aclrtStreamWaitEvent(stream, comm->last);
  return error ? fail_acl(err, "aclrtStreamWaitEvent", error) : TENON_OK;
}

tenon_status record(tenon_comm comm, Stream stream, tenon_err* err) {
  if (const int error = acl.aclrtRecordEvent(comm->last, stream))
    return fail_acl(err, "aclrtRecordEvent", error);
  comm->last_stream = stream;
  return TENON_OK;
}

// Without a stream, the work has ended when the call returns.
tenon_status leave(tenon_device device, tenon_comm comm, const char* name, tenon_stream on,
                   tenon_status status, tenon_err* err) {
  if (status || on) return status;
  const int error = acl.aclrtSynchronizeStream(device->stream);
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, name);
  if (!error) return TENON_OK;
  fail_acl(err, "aclrtSynchronizeStream", error);
  tenon::add_context(err, "%s", name);
  return tenon::host->err_code(err);
}

tenon_status find_reduction(const char* name, int32_t dtype, int32_t reduction, Reducible* out,
                            tenon_err* err) {
  if (reduction < TENON_REDUCE_SUM || reduction > TENON_REDUCE_MEAN)
    return tenon::fail_format(err, TENON_INVALID_ARGUMENT,
                              "ascend: %s: expected a reduction from 0 to 4, got %d", name,
                              reduction);
  constexpr int kReductions[] = {hccl::kSum, hccl::kProduct, hccl::kMin, hccl::kMax, hccl::kSum};
  const bool is_mean = reduction == TENON_REDUCE_MEAN;
  const bool is_linear = is_mean || reduction == TENON_REDUCE_SUM;
  int32_t part = dtype;
  if (is_linear && dtype == TENON_DTYPE_C64) part = TENON_DTYPE_F32;
  if (is_linear && dtype == TENON_DTYPE_C128) part = TENON_DTYPE_F64;
  const bool is_floating = part == TENON_DTYPE_F16 || part == TENON_DTYPE_BF16 ||
                           part == TENON_DTYPE_F32 || part == TENON_DTYPE_F64;
  *out = {.type = hccl::reduced_type(part),
          .parts = part == dtype ? 1u : 2u,
          .reduction = kReductions[reduction],
          .divided = is_mean ? part : -1};
  if (out->type < 0 || (is_mean && !is_floating))
    return tenon::fail_format(err, TENON_UNSUPPORTED,
                              "ascend: %s: expected a dtype that HCCL reduces in this way, got "
                              "dtype %d; convert the tensor first",
                              name, dtype);
  if (is_mean && !mean_problem().empty())
    return tenon::fail_format(err, TENON_UNSUPPORTED, "ascend: %s: %s", name,
                              mean_problem().c_str());
  return TENON_OK;
}

namespace {

tenon_status comm_id_create(tenon_device device, tenon_comm_id* out, tenon_err* err) {
  hccl::RootInfo info;
  if (const tenon_status status = make_root_info(device, &info, "comm_id_create", err))
    return status;
  return publish(info, out, err);
}

tenon_status comm_create(tenon_device device, const tenon_comm_id* id, int32_t rank, int32_t size,
                         tenon_comm* out, tenon_err* err) {
  if (size < 1 || rank < 0 || rank >= size)
    return tenon::fail_format(
        err, TENON_INVALID_ARGUMENT,
        "ascend: comm_create: expected a rank below the number of ranks, got rank %d of %d", rank,
        size);
  if (const tenon_status status = load_hccl(err)) return status;
  hccl::RootInfo info;
  if (const tenon_status status = look_up(*id, &info, err)) return status;
  const tenon_status status = join(device, info, rank, size, "comm_create", out, err);
  withdraw(*id);  // every rank has it, or the communicator will never be
  return status;
}

void comm_destroy(tenon_device device, tenon_comm comm) {
  acl.aclrtSetDevice(device->index);
  // HCCL destroys no communicator that has work.
  if (!comm->aborted && comm->last_stream) acl.aclrtSynchronizeEvent(comm->last);
  destroy(comm);
  acl.aclrtDestroyEvent(comm->last);
  if (comm->workspace) acl.aclrtFree(comm->workspace);
  delete comm;
}

// From any thread.
void comm_abort(tenon_device device, tenon_comm comm) {
  if (comm->aborted.exchange(true)) return;
  acl.aclrtSetDevice(device->index);
  abort_streams(device);
  // A call that is inside HCCL goes on with the handle, unless it waits for another rank there.
  for (int i = 0; i < 100; ++i) {
    const std::unique_lock lock(comm->mutex, milliseconds(100));
    if (lock) return;
    if (library.destroy(comm->handle) == hccl::kInUse) continue;
    const std::lock_guard ended(comm->mutex);
    comm->is_destroyed = true;
    return;
  }
}

tenon_status all_reduce(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, int32_t reduction, tenon_stream stream,
                        tenon_err* err) {
  return reduce(device, comm, "all_reduce", dst, count, dtype, reduction, stream, err,
                [&](const Reducible& how, uint64_t parts, Stream on) {
                  return library.all_reduce(const_cast<void*>(src), dst, parts, how.type,
                                            how.reduction, comm->handle, on);
                });
}

tenon_status reduce_scatter(tenon_device device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduction, tenon_stream stream,
                            tenon_err* err) {
  return reduce(device, comm, "reduce_scatter", dst, count, dtype, reduction, stream, err,
                [&](const Reducible& how, uint64_t parts, Stream on) {
                  return library.reduce_scatter(const_cast<void*>(src), dst, parts, how.type,
                                                how.reduction, comm->handle, on);
                });
}

// Moves carry bytes, so that they serve every dtype.
template <class Call>
tenon_status move(tenon_device device, tenon_comm comm, const char* name, uint64_t count,
                  int32_t dtype, int32_t rank, tenon_stream stream, tenon_err* err, Call call) {
  const uint64_t size = host->dtype_size(dtype);
  if (size == 0)
    return tenon::fail_format(err, TENON_INVALID_ARGUMENT, "ascend: %s: expected a dtype, got %d",
                              name, dtype);
  if (const tenon_status status = check_rank(comm, name, rank, err)) return status;
  if (count == 0) return TENON_OK;
  return queue(device, comm, name, stream, err, [&](Stream on) { return call(count * size, on); });
}

tenon_status all_gather(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "all_gather", count, dtype, 0, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.all_gather(const_cast<void*>(src), dst, bytes, hccl::kUint8,
                                          comm->handle, on);
              });
}

tenon_status broadcast(tenon_device device, tenon_comm comm, void* buffer, uint64_t count,
                       int32_t dtype, int32_t root, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "broadcast", count, dtype, root, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.broadcast(buffer, bytes, hccl::kUint8, static_cast<uint32_t>(root),
                                         comm->handle, on);
              });
}

tenon_status send(tenon_device device, tenon_comm comm, const void* src, uint64_t count,
                  int32_t dtype, int32_t to, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "send", count, dtype, to, stream, err, [&](uint64_t bytes, Stream on) {
    return library.send(const_cast<void*>(src), bytes, hccl::kUint8, static_cast<uint32_t>(to),
                        comm->handle, on);
  });
}

tenon_status recv(tenon_device device, tenon_comm comm, void* dst, uint64_t count, int32_t dtype,
                  int32_t from, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "recv", count, dtype, from, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.receive(dst, bytes, hccl::kUint8, static_cast<uint32_t>(from),
                                       comm->handle, on);
              });
}

}  // namespace

void stop_collectives() { withdraw_all(); }

const tenon_collective_api kCollective = {
    .struct_size = sizeof(tenon_collective_api),
    .reserved = 0,
    .comm_id_create = comm_id_create,
    .comm_create = comm_create,
    .comm_destroy = comm_destroy,
    .comm_abort = comm_abort,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .broadcast = broadcast,
    .send = send,
    .recv = recv,
};

}  // namespace ascend
