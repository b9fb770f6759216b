// SPDX-License-Identifier: Apache-2.0
// Collectives: each is a task of its stream that meets the same task of the other ranks. Data goes
// through the meeting's slots, piece by piece.
#include <algorithm>
#include <cstring>

#include "../kernels/numbers.hpp"
#include "collective.hpp"

namespace reference {
namespace {

template <class T>
T combine(int32_t reduce, T a, T b) {
  switch (reduce) {
    case TENON_REDUCE_MIN:
      return b < a || b != b ? b : a;
    case TENON_REDUCE_MAX:
      return b > a || b != b ? b : a;
    case TENON_REDUCE_PROD:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      else
        return a * b;
    default:  // SUM, MEAN
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      else
        return a + b;
  }
}

}  // namespace

// The ranks' slots, combined in the order of ranks: every rank computes the same bits.
void reduce_slots(const Meeting& meeting, void* dst, uint64_t count, int32_t dtype,
                  int32_t reduce) {
  with_type(dtype, [&]<class T>(Type<T>) {
    for (uint64_t i = 0; i < count; ++i) {
      auto total = static_cast<Compute<T>>(reinterpret_cast<const T*>(meeting.slot(0))[i]);
      for (int32_t rank = 1; rank < meeting.size(); ++rank)
        total = combine(reduce, total,
                        static_cast<Compute<T>>(reinterpret_cast<const T*>(meeting.slot(rank))[i]));
      if (reduce == TENON_REDUCE_MEAN)
        total = static_cast<Compute<T>>(total / static_cast<Compute<T>>(meeting.size()));
      static_cast<T*>(dst)[i] = static_cast<T>(total);
    }
  });
}

tenon_status check_reduction(const char* name, int32_t dtype, int32_t reduce, tenon_err* err) {
  if (reduce < TENON_REDUCE_SUM || reduce > TENON_REDUCE_MEAN)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       std::string("reference: ") + name + ": unknown reduction");
  if (dtype < 0 || dtype >= TENON_DTYPE_COUNT || !((kFloats | kIntegers) >> dtype & 1))
    return tenon::fail(err, TENON_UNSUPPORTED,
                       std::string("reference: ") + name +
                           ": expected an integer or floating dtype other than float8; others can "
                           "be gathered, not "
                           "reduced");
  return TENON_OK;
}

tenon_status check_rank(tenon_comm comm, const char* name, int32_t rank, tenon_err* err) {
  if (rank >= 0 && rank < comm->meeting->size()) return TENON_OK;
  return tenon::fail(err, TENON_INVALID_ARGUMENT,
                     std::string("reference: ") + name + ": no such rank");
}

namespace {

static_assert(sizeof(MemoryFile) <= sizeof(tenon_comm_id));

tenon_status comm_id_create(tenon_device, tenon_comm_id* out, tenon_err* err) {
  MemoryFile file;
  if (!Meeting::create(&file))
    return tenon::fail(err, TENON_UNAVAILABLE, "reference: comm_id_create: no shared memory left");
  *out = {};
  std::memcpy(out->bytes, &file, sizeof file);
  return TENON_OK;
}

tenon_status comm_create(tenon_device, const tenon_comm_id* id, int32_t rank, int32_t size,
                         tenon_comm* out, tenon_err* err) {
  if (size < 1 || size > Meeting::kMaxRanks || rank < 0 || rank >= size)
    return tenon::fail(
        err, TENON_INVALID_ARGUMENT,
        "reference: comm_create: expected 1 to 64 ranks and a rank below their number");
  MemoryFile file;
  std::memcpy(&file, id->bytes, sizeof file);
  const char* why;
  auto meeting = Meeting::join(file, rank, size, &why);
  if (!meeting)
    return tenon::fail(err, TENON_INVALID_ARGUMENT, std::string("reference: comm_create: ") + why);
  *out = new tenon_comm_s{std::move(meeting)};
  return TENON_OK;
}

void comm_destroy(tenon_device, tenon_comm comm) { delete comm; }
void comm_abort(tenon_device, tenon_comm comm) { comm->meeting->abort(); }

tenon_status all_reduce(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, int32_t reduce, tenon_stream stream,
                        tenon_err* err) {
  if (tenon_status status = check_reduction("all_reduce", dtype, reduce, err); status != TENON_OK)
    return status;
  const uint64_t size = tenon::host->dtype_size(dtype);
  return collective(device, comm, "all_reduce", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      std::memcpy(meeting.slot(meeting.rank()), bytes_of(src) + begin, bytes);
                      if (!meeting.barrier()) return false;
                      reduce_slots(meeting, bytes_of(dst) + begin, bytes / size, dtype, reduce);
                      return meeting.barrier();
                    });
}

tenon_status all_gather(tenon_device device, tenon_comm comm, const void* src, void* dst,
                        uint64_t count, int32_t dtype, tenon_stream stream, tenon_err* err) {
  const uint64_t part = count * tenon::host->dtype_size(dtype);
  return collective(device, comm, "all_gather", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      std::memcpy(meeting.slot(meeting.rank()), bytes_of(src) + begin, bytes);
                      if (!meeting.barrier()) return false;
                      for (int32_t rank = 0; rank < meeting.size(); ++rank)
                        std::memcpy(bytes_of(dst) + static_cast<uint64_t>(rank) * part + begin,
                                    meeting.slot(rank), bytes);
                      return meeting.barrier();
                    });
}

tenon_status reduce_scatter(tenon_device device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduce, tenon_stream stream,
                            tenon_err* err) {
  if (tenon_status status = check_reduction("reduce_scatter", dtype, reduce, err);
      status != TENON_OK)
    return status;
  const uint64_t size = tenon::host->dtype_size(dtype), part = count * size;
  return collective(device, comm, "reduce_scatter", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      for (int32_t rank = 0; rank < meeting.size(); ++rank) {
                        std::memcpy(meeting.slot(meeting.rank()),
                                    bytes_of(src) + static_cast<uint64_t>(rank) * part + begin,
                                    bytes);
                        if (!meeting.barrier()) return false;
                        if (rank == meeting.rank())
                          reduce_slots(meeting, bytes_of(dst) + begin, bytes / size, dtype, reduce);
                        if (!meeting.barrier()) return false;
                      }
                      return true;
                    });
}

tenon_status broadcast(tenon_device device, tenon_comm comm, void* buffer, uint64_t count,
                       int32_t dtype, int32_t root, tenon_stream stream, tenon_err* err) {
  if (tenon_status status = check_rank(comm, "broadcast", root, err); status != TENON_OK)
    return status;
  return collective(device, comm, "broadcast", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      if (meeting.rank() == root)
                        std::memcpy(meeting.slot(root), bytes_of(buffer) + begin, bytes);
                      if (!meeting.barrier()) return false;
                      if (meeting.rank() != root)
                        std::memcpy(bytes_of(buffer) + begin, meeting.slot(root), bytes);
                      return meeting.barrier();
                    });
}

tenon_status send(tenon_device device, tenon_comm comm, const void* src, uint64_t count,
                  int32_t dtype, int32_t to, tenon_stream stream, tenon_err* err) {
  if (tenon_status status = check_rank(comm, "send", to, err); status != TENON_OK) return status;
  const uint64_t total = count * tenon::host->dtype_size(dtype);
  return collective(device, comm, "send", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      return meeting.put_letter(to, bytes_of(src) + begin, bytes, total);
                    });
}

tenon_status recv(tenon_device device, tenon_comm comm, void* dst, uint64_t count, int32_t dtype,
                  int32_t from, tenon_stream stream, tenon_err* err) {
  if (tenon_status status = check_rank(comm, "recv", from, err); status != TENON_OK) return status;
  const uint64_t total = count * tenon::host->dtype_size(dtype);
  return collective(device, comm, "recv", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      uint64_t theirs = 0;
                      if (!meeting.take_letter(from, bytes_of(dst) + begin, bytes, &theirs))
                        return false;
                      if (theirs != total)
                        meeting.abort();  // the ranks disagree about what is said
                      return theirs == total;
                    });
}

}  // namespace

const tenon_collective_api kCollective = {
    .struct_size = sizeof(tenon_collective_api),
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

}  // namespace reference
