// SPDX-License-Identifier: Apache-2.0
#include "host/backend.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tenon/error.hpp>

#include "control/store.hpp"
#include "control/time.hpp"
#include "group/rank_group.hpp"

namespace tenon::collectives {
namespace {

constexpr char kMagic[] = "tenon-host ";
constexpr uint64_t kTimeout = 300 * kSecond;

RankGroup& group_of(tenon_comm comm) { return *reinterpret_cast<RankGroup*>(comm); }
tenon_comm handle_of(std::unique_ptr<RankGroup> group) {
  return reinterpret_cast<tenon_comm>(group.release());
}

// Of files alone: what a store leaves.
void remove_folder(const std::string& folder) {
  if (DIR* files = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(files)) unlink((folder + "/" + entry->d_name).c_str());
    closedir(files);
  }
  rmdir(folder.c_str());
}

tenon_status comm_id_create(tenon_device, tenon_comm_id* out, tenon_err* err) {
  return guarded(err, [&] {
    const char* base = getenv("TMPDIR");
    std::string folder = std::string(base && strlen(base) < 64 ? base : "/tmp") + "/tenon-XXXXXX";
    if (!mkdtemp(folder.data()))
      throw Error(TENON_UNAVAILABLE,
                  "cannot make a folder to meet in: " + folder + ": " + strerror(errno));
    memset(out->bytes, 0, sizeof out->bytes);
    const std::string text = kMagic + folder;
    memcpy(out->bytes, text.data(), std::min(text.size(), sizeof out->bytes - 1));
  });
}

tenon_status comm_create(tenon_device, const tenon_comm_id* id, int32_t rank, int32_t size,
                         tenon_comm* out, tenon_err* err) {
  return guarded(err, [&] {
    const char* text = reinterpret_cast<const char*>(id->bytes);
    const std::string whole(text, strnlen(text, sizeof id->bytes));
    if (whole.rfind(kMagic, 0) != 0)
      throw Error(TENON_INVALID_ARGUMENT,
                  "expected an id that comm_id_create of this backend made");
    if (size < 1 || rank < 0 || rank >= size)
      throw Error(TENON_INVALID_ARGUMENT, "expected a rank from 0 to " + std::to_string(size - 1) +
                                              ", got " + std::to_string(rank));
    const std::string folder = whole.substr(strlen(kMagic));
    FileStore store(folder);
    MeetingOptions options;
    options.name = "host";
    options.rank = rank;
    options.size = size;
    options.timeout_ns = kTimeout;
    std::vector<int32_t> ranks(static_cast<size_t>(size));
    for (int32_t i = 0; i < size; ++i) ranks[static_cast<size_t>(i)] = i;
    struct Cleanup {
      int32_t rank;
      const std::string& folder;
      ~Cleanup() {
        if (rank == 0) remove_folder(folder);
      }
    } cleanup{rank, folder};
    auto meeting = std::make_shared<Meeting>(store, options);
    *out = handle_of(std::make_unique<RankGroup>(meeting, "host", "0", ranks, rank));
  });
}

void comm_destroy(tenon_device, tenon_comm comm) { delete &group_of(comm); }

void comm_abort(tenon_device, tenon_comm comm) {
  group_of(comm).meeting().fail(TENON_COLLECTIVE_ABORTED, "the communicator was aborted");
}

tenon_status run(tenon_comm comm, tenon_stream stream, const tenon_group_call& call,
                 tenon_err* err) {
  return guarded(err, [&] {
    if (stream) throw Error(TENON_INVALID_ARGUMENT, "host memory has no streams; expected NULL");
    group_of(comm).run(call);
  });
}

tenon_group_call call_of(int32_t kind, const void* src, void* dst, uint64_t count, int32_t dtype,
                         int32_t reduce, int32_t root) {
  tenon_group_call call = {};
  call.struct_size = sizeof call;
  call.kind = kind;
  call.src = src;
  call.dst = dst;
  call.count = count;
  call.dtype = dtype;
  call.reduce = reduce;
  call.root = root;
  return call;
}

tenon_status all_reduce(tenon_device, tenon_comm comm, const void* src, void* dst, uint64_t count,
                        int32_t dtype, int32_t reduce, tenon_stream stream, tenon_err* err) {
  return run(comm, stream, call_of(TENON_CALL_ALL_REDUCE, src, dst, count, dtype, reduce, 0), err);
}
tenon_status all_gather(tenon_device, tenon_comm comm, const void* src, void* dst, uint64_t count,
                        int32_t dtype, tenon_stream stream, tenon_err* err) {
  return run(comm, stream, call_of(TENON_CALL_ALL_GATHER, src, dst, count, dtype, 0, 0), err);
}
tenon_status reduce_scatter(tenon_device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduce, tenon_stream stream,
                            tenon_err* err) {
  return run(comm, stream, call_of(TENON_CALL_REDUCE_SCATTER, src, dst, count, dtype, reduce, 0),
             err);
}
tenon_status broadcast(tenon_device, tenon_comm comm, void* buffer, uint64_t count, int32_t dtype,
                       int32_t root, tenon_stream stream, tenon_err* err) {
  return run(comm, stream, call_of(TENON_CALL_BROADCAST, buffer, buffer, count, dtype, 0, root),
             err);
}

tenon_status transfer_list(tenon_comm comm, const tenon_transfer* transfers, uint32_t count,
                           int32_t dtype, tenon_stream stream, tenon_err* err) {
  tenon_group_call call = call_of(TENON_CALL_EXCHANGE, nullptr, nullptr, 0, dtype, 0, 0);
  call.transfers = transfers;
  call.transfer_count = count;
  for (uint32_t i = 0; i < count; ++i) call.count += transfers[i].count;
  return run(comm, stream, call, err);
}
tenon_status send(tenon_device, tenon_comm comm, const void* src, uint64_t count, int32_t dtype,
                  int32_t to, tenon_stream stream, tenon_err* err) {
  const tenon_transfer one = {TENON_TRANSFER_SEND, to, const_cast<void*>(src), count};
  return transfer_list(comm, &one, 1, dtype, stream, err);
}
tenon_status recv(tenon_device, tenon_comm comm, void* dst, uint64_t count, int32_t dtype,
                  int32_t from, tenon_stream stream, tenon_err* err) {
  const tenon_transfer one = {TENON_TRANSFER_RECV, from, dst, count};
  return transfer_list(comm, &one, 1, dtype, stream, err);
}
tenon_status transfer(tenon_device, tenon_comm comm, const tenon_transfer* transfers,
                      uint32_t count, int32_t dtype, tenon_stream stream, tenon_err* err) {
  return transfer_list(comm, transfers, count, dtype, stream, err);
}

tenon_status reduce(tenon_device, tenon_comm comm, const void* src, void* dst, uint64_t count,
                    int32_t dtype, int32_t how, int32_t root, tenon_stream stream, tenon_err* err) {
  return run(comm, stream, call_of(TENON_CALL_REDUCE, src, dst, count, dtype, how, root), err);
}

tenon_status comm_split(tenon_device, tenon_comm comm, int32_t color, int32_t key, tenon_comm* out,
                        tenon_err* err) {
  *out = nullptr;
  RankGroup& group = group_of(comm);
  const int32_t own[2] = {color, key};
  std::vector<int32_t> all;
  if (tenon_status status =
          guarded(err, [&] { all.resize(2 * static_cast<size_t>(group.size())); }))
    return status;
  if (tenon_status status =
          run(comm, nullptr,
              call_of(TENON_CALL_ALL_GATHER, own, all.data(), 2, TENON_DTYPE_I32, 0, 0), err))
    return status;
  return guarded(err, [&] {
    std::vector<std::pair<int32_t, int32_t>> members;  // key, rank
    for (int32_t rank = 0; rank < group.size() && color >= 0; ++rank)
      if (all[2 * static_cast<size_t>(rank)] == color)
        members.push_back({all[2 * static_cast<size_t>(rank) + 1], rank});
    std::sort(members.begin(), members.end());
    std::vector<int32_t> ranks;
    for (const auto& [_, rank] : members) ranks.push_back(rank);
    *out = handle_of(group.part("host", ranks));
  });
}

tenon_status comm_error(tenon_device, tenon_comm comm, tenon_err* err) {
  return guarded(err, [&] {
    Meeting& meeting = group_of(comm).meeting();
    meeting.check();
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < meeting.size(); ++rank) all.push_back(rank);
    if (const int32_t dead = meeting.first_dead(all); dead >= 0)
      throw Error(TENON_UNAVAILABLE, meeting.gone_text(dead));
  });
}

}  // namespace

const tenon_collective_api kHostCollective = {
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

const tenon_exchange_api kHostExchange = {
    .struct_size = sizeof(tenon_exchange_api),
    .reserved = 0,
    .transfer = transfer,
    .reduce = reduce,
    .comm_split = comm_split,
    .comm_error = comm_error,
};

}  // namespace tenon::collectives
