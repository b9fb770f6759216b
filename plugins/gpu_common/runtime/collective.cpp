// SPDX-License-Identifier: Apache-2.0
// The groups `collective` and `exchange`: NCCL or RCCL, opened at run time when the first communicator is made.
//
// Note [Aborted communicators]
// ncclCommAbort ends the work that waits for other ranks, and its stream goes on as if the work had
// succeeded. What was queued behind it, directly or through events, reads memory that was not written.
// So every stream of the device that is not idle at this moment is marked, and the next wait for a
// marked stream fails with TENON_ABORTED.
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>

#include "runtime/collective_functions.hpp"
#include "runtime/device.hpp"
#include "runtime/library.hpp"

struct tenon_comm_s {
  void* handle = nullptr;
  int32_t size = 0;
  std::atomic<bool> aborted{false};
};

namespace gpu {
namespace {

using nccl::Result;

nccl::Functions library = {};

constexpr Symbol kCollectiveSymbols[] = {
#define TENON_GPU_SYMBOL(result, member, name, parameters, optional) \
  {#name, offsetof(nccl::Functions, member), optional},
    TENON_GPU_COLLECTIVE_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

std::mutex collective_mutex;
std::atomic<bool> collective_loaded{false};

tenon_status load_library(tenon_err* err) try {
  if (collective_loaded.load(std::memory_order_acquire)) return TENON_OK;
  std::lock_guard lock(collective_mutex);
  if (collective_loaded.load(std::memory_order_relaxed)) return TENON_OK;
  std::string why;
  void* file = open_library(vendor::kCollectiveVariable, vendor::kCollectiveNames, &why);
  if (!file)
    return fail(err, TENON_UNAVAILABLE, "the library of collectives was not found (%s); %s",
                why.c_str(), vendor::kInstallCollective);
  nccl::Functions found = {};
  if (const char* missing =
          find_symbols(file, kCollectiveSymbols, std::size(kCollectiveSymbols), &found))
    return fail(err, TENON_UNAVAILABLE,
                "the library of collectives lacks %s; expected %s or later, update it", missing,
                vendor::kOldestCollective);
  library = found;
  collective_loaded.store(true, std::memory_order_release);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status fail_library(tenon_err* err, Result result, const char* name) {
  const char* detail = library.last_error ? library.last_error(nullptr) : nullptr;
  constexpr Result kInvalidArgument = 4;
  return fail(err, result == kInvalidArgument ? TENON_INVALID_ARGUMENT : TENON_INTERNAL,
              "%s: %s (%d)%s%s", name, library.error_text(result), result,
              detail && *detail ? ", " : "", detail ? detail : "");
}

tenon_status fail_aborted(tenon_err* err, const char* name) {
  return fail(err, TENON_ABORTED, "%s: the communicator was aborted; make a new one", name);
}

// ncclDataType_t
constexpr int kUint8 = 1;

// How the library reduces a dtype. `parts` is the number of its elements in one of ours.
struct Reducible {
  int type = -1;
  uint64_t parts = 1;
};

Reducible reducible(int32_t dtype, int32_t reduction) {
  const bool is_linear = reduction == TENON_REDUCE_SUM || reduction == TENON_REDUCE_MEAN;
  switch (dtype) {
    case TENON_DTYPE_I8:
      return {0};
    case TENON_DTYPE_U8:
      return {kUint8};
    case TENON_DTYPE_I32:
      return {2};
    case TENON_DTYPE_U32:
      return {3};
    case TENON_DTYPE_I64:
      return {4};
    case TENON_DTYPE_U64:
      return {5};
    case TENON_DTYPE_F16:
      return {6};
    case TENON_DTYPE_F32:
      return {7};
    case TENON_DTYPE_F64:
      return {8};
    case TENON_DTYPE_BF16:
      return {9};
    case TENON_DTYPE_C64:  // sums of real and imaginary parts
      return {is_linear ? 7 : -1, 2};
    case TENON_DTYPE_C128:
      return {is_linear ? 8 : -1, 2};
    default:
      return {};
  }
}

// ncclRedOp_t of TENON_REDUCE_*
constexpr int kReductions[] = {0, 1, 3, 2, 4};

// What all six have in common. `call(stream)` queues the work.
template <class Call>
tenon_status queue(tenon_device device, tenon_comm comm, const char* name, tenon_stream on,
                   tenon_err* err, Call call) {
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, name);
  Current current(device);
  Result failure = 0;
  Result result = library.async_error(comm->handle, &failure);
  if (result || failure) return fail_library(err, result ? result : failure, name);
  tenon_stream_s& stream = stream_of(device, on);
  Profile::Scope profile(device, stream, TENON_PROFILE_KERNEL, name);
  if (Error error = follow_synchronous(stream))
    return fail_device(device, &stream, error, err, "%s", name);
  result = call(stream.stream);
  profile.finish();
  submitted(stream);
  // A first send or receive connects the ranks, so that it may have waited for one that never came.
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, name);
  return result ? fail_library(err, result, name) : TENON_OK;
}

template <class Call>
tenon_status reduce(tenon_device device, tenon_comm comm, const char* name, int32_t dtype,
                    int32_t reduction, tenon_stream stream, tenon_err* err, Call call) {
  if (reduction < TENON_REDUCE_SUM || reduction > TENON_REDUCE_MEAN)
    return fail(err, TENON_INVALID_ARGUMENT, "%s: expected a reduction from 0 to 4, got %d", name,
                reduction);
  const Reducible how = reducible(dtype, reduction);
  if (how.type < 0)
    return fail(err, TENON_UNSUPPORTED,
                "%s: expected a dtype that the library of collectives reduces in this way, got "
                "dtype %d; convert the tensor first",
                name, dtype);
  return queue(device, comm, name, stream, err,
               [&](Stream on) { return call(how, kReductions[reduction], on); });
}

// Moves carry bytes, so that they serve every dtype.
template <class Call>
tenon_status move(tenon_device device, tenon_comm comm, const char* name, uint64_t count,
                  int32_t dtype, int32_t rank, tenon_stream stream, tenon_err* err, Call call) {
  const uint64_t size = host->dtype_size(dtype);
  if (size == 0)
    return fail(err, TENON_INVALID_ARGUMENT, "%s: expected a dtype, got %d", name, dtype);
  if (rank < 0 || rank >= comm->size)
    return fail(err, TENON_INVALID_ARGUMENT, "%s: expected a rank below %d, got %d", name,
                comm->size, rank);
  return queue(device, comm, name, stream, err, [&](Stream on) { return call(count * size, on); });
}

tenon_status comm_id_create(tenon_device device, tenon_comm_id* out, tenon_err* err) {
  GPU_TRY(load_library(err));
  Current current(device);
  nccl::UniqueId id;
  if (Result result = library.unique_id(&id)) return fail_library(err, result, "comm_id_create");
  std::memcpy(out->bytes, id.bytes, sizeof id);
  return TENON_OK;
}

tenon_status comm_create(tenon_device device, const tenon_comm_id* given, int32_t rank,
                         int32_t size, tenon_comm* out, tenon_err* err) {
  if (size < 1 || rank < 0 || rank >= size)
    return fail(err, TENON_INVALID_ARGUMENT,
                "comm_create: expected a rank below the number of ranks, got rank %d of %d", rank,
                size);
  GPU_TRY(load_library(err));
  auto comm = std::unique_ptr<tenon_comm_s>(new (std::nothrow) tenon_comm_s);
  if (!comm) return fail_host_memory(err);
  Current current(device);
  nccl::UniqueId id;
  std::memcpy(id.bytes, given->bytes, sizeof id);
  comm->size = size;
  if (Result result = library.init_rank(&comm->handle, size, id, rank))
    return fail_library(err, result, "comm_create");
  *out = comm.release();
  return TENON_OK;
}

void comm_destroy(tenon_device device, tenon_comm comm) {
  Current current(device);
  if (!comm->aborted.load(std::memory_order_acquire)) library.destroy(comm->handle);
  delete comm;
}

// From any thread, and only once: the library frees its communicator.
void comm_abort(tenon_device device, tenon_comm comm) {
  if (comm->aborted.exchange(true)) return;
  Current current(device);
  mark_busy_streams(device);  // Note [Aborted communicators]; before the work ends
  library.abort(comm->handle);
}

tenon_status all_reduce(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, int32_t reduction, tenon_stream stream,
                        tenon_err* err) {
  return reduce(device, comm, "all_reduce", dtype, reduction, stream, err,
                [&](Reducible how, int by, Stream on) {
                  return library.all_reduce(src, dst, count * how.parts, how.type, by, comm->handle,
                                            on);
                });
}

tenon_status reduce_scatter(tenon_device device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduction, tenon_stream stream,
                            tenon_err* err) {
  return reduce(device, comm, "reduce_scatter", dtype, reduction, stream, err,
                [&](Reducible how, int by, Stream on) {
                  return library.reduce_scatter(src, dst, count * how.parts, how.type, by,
                                                comm->handle, on);
                });
}

tenon_status all_gather(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "all_gather", count, dtype, 0, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.all_gather(src, dst, bytes, kUint8, comm->handle, on);
              });
}

tenon_status broadcast(tenon_device device, tenon_comm comm, void* buffer, uint64_t count,
                       int32_t dtype, int32_t root, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "broadcast", count, dtype, root, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.broadcast(buffer, buffer, bytes, kUint8, root, comm->handle, on);
              });
}

tenon_status send(tenon_device device, tenon_comm comm, const void* src, uint64_t count,
                  int32_t dtype, int32_t to, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "send", count, dtype, to, stream, err, [&](uint64_t bytes, Stream on) {
    return library.send(src, bytes, kUint8, to, comm->handle, on);
  });
}

tenon_status recv(tenon_device device, tenon_comm comm, void* dst, uint64_t count, int32_t dtype,
                  int32_t from, tenon_stream stream, tenon_err* err) {
  return move(device, comm, "recv", count, dtype, from, stream, err,
              [&](uint64_t bytes, Stream on) {
                return library.receive(dst, bytes, kUint8, from, comm->handle, on);
              });
}

tenon_status check_transfers(tenon_comm comm, const tenon_transfer* transfers, uint32_t count,
                             int32_t dtype, tenon_err* err) {
  if (host->dtype_size(dtype) == 0)
    return fail(err, TENON_INVALID_ARGUMENT, "transfer: expected a dtype, got %d", dtype);
  for (uint32_t i = 0; i < count; ++i) {
    const tenon_transfer& each = transfers[i];
    if (each.kind > TENON_TRANSFER_RECV || each.peer < 0 || each.peer >= comm->size)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "transfer %u: expected kind 0 or 1 and a rank below %d, got kind %u and rank %d",
                  i, comm->size, each.kind, each.peer);
  }
  return TENON_OK;
}

tenon_status transfer(tenon_device device, tenon_comm comm, const tenon_transfer* transfers,
                      uint32_t count, int32_t dtype, tenon_stream stream, tenon_err* err) {
  GPU_TRY(check_transfers(comm, transfers, count, dtype, err));
  const uint64_t size = host->dtype_size(dtype);
  return queue(device, comm, "transfer", stream, err, [&](Stream on) {
    Result result = library.group_start();
    if (result) return result;
    for (uint32_t i = 0; i < count && !result; ++i) {
      const tenon_transfer& each = transfers[i];
      const uint64_t bytes = each.count * size;
      if (bytes == 0) continue;
      result = each.kind == TENON_TRANSFER_SEND
                   ? library.send(each.memory, bytes, kUint8, each.peer, comm->handle, on)
                   : library.receive(each.memory, bytes, kUint8, each.peer, comm->handle, on);
    }
    const Result end = library.group_end();  // also after a failure, which it would carry on
    return result ? result : end;
  });
}

tenon_status reduce_to_root(tenon_device device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduction, int32_t root,
                            tenon_stream stream, tenon_err* err) {
  if (root < 0 || root >= comm->size)
    return fail(err, TENON_INVALID_ARGUMENT, "reduce: expected a rank below %d, got %d", comm->size,
                root);
  return reduce(
      device, comm, "reduce", dtype, reduction, stream, err, [&](Reducible how, int by, Stream on) {
        return library.reduce(src, dst, count * how.parts, how.type, by, root, comm->handle, on);
      });
}

constexpr int kNoColor = -1;  // NCCL_SPLIT_NOCOLOR

tenon_status comm_split(tenon_device device, tenon_comm comm, int32_t color, int32_t key,
                        tenon_comm* out, tenon_err* err) {
  if (!library.split)
    return fail(err, TENON_UNSUPPORTED,
                "comm_split: the library of collectives lacks ncclCommSplit; expected NCCL 2.18, "
                "update it");
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, "comm_split");
  auto part = std::unique_ptr<tenon_comm_s>(new (std::nothrow) tenon_comm_s);
  if (!part) return fail_host_memory(err);
  Current current(device);
  wait_for_streams(device);  // the ranks agree on the parts through the communicator itself
  if (Result result =
          library.split(comm->handle, color < 0 ? kNoColor : color, key, &part->handle, nullptr))
    return fail_library(err, result, "comm_split");
  if (color >= 0)
    if (Result result = library.count(part->handle, &part->size)) {
      library.destroy(part->handle);
      return fail_library(err, result, "comm_split");
    }
  *out = color < 0 ? nullptr : part.release();
  return TENON_OK;
}

tenon_status comm_error(tenon_device device, tenon_comm comm, tenon_err* err) {
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, "comm_error");
  Current current(device);
  Result failure = 0;
  const Result result = library.async_error(comm->handle, &failure);
  return result || failure ? fail_library(err, result ? result : failure, "comm_error") : TENON_OK;
}

}  // namespace

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

const tenon_exchange_api kExchange = {
    .struct_size = sizeof(tenon_exchange_api),
    .reserved = 0,
    .transfer = transfer,
    .reduce = reduce_to_root,
    .comm_split = comm_split,
    .comm_error = comm_error,
};

}  // namespace gpu
