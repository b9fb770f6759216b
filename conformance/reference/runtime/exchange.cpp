// SPDX-License-Identifier: Apache-2.0
// The group `exchange`: transfers go through the letter boxes of each pair of ranks, a reduction
// through the slots, and a split makes a meeting for each color.
#include <cstring>
#include <vector>

#include "collective.hpp"

namespace reference {
namespace {

struct Progress {
  tenon_transfer transfer;
  uint64_t bytes, done = 0;

  bool is_send() const { return transfer.kind == TENON_TRANSFER_SEND; }
  bool is_over() const { return done == bytes; }
};

// Moves the next piece, if the other rank is ready for it.
void advance(Progress& each, Meeting& meeting) {
  const uint64_t piece = std::min(Meeting::kSlotBytes, each.bytes - each.done);
  char* memory = bytes_of(each.transfer.memory) + each.done;
  uint64_t theirs = each.bytes;
  const bool moved = each.is_send()
                         ? meeting.try_put_letter(each.transfer.peer, memory, piece, each.bytes)
                         : meeting.try_take_letter(each.transfer.peer, memory, piece, &theirs);
  if (theirs != each.bytes) meeting.abort();  // the ranks disagree about how much is sent
  if (moved) each.done += piece;
}

bool run_transfers(std::vector<Progress> all, Meeting& meeting) {
  return meeting.wait_until([&] {
    uint64_t busy[2] = {};  // peers whose turn it is to send or receive an earlier message
    bool is_over = true;
    for (Progress& each : all) {
      if (each.is_over()) continue;
      is_over = false;
      uint64_t& peers = busy[each.is_send()];
      const uint64_t bit = uint64_t{1} << each.transfer.peer;
      if (!(peers & bit)) advance(each, meeting);
      peers |= bit;
    }
    return is_over;
  });
}

tenon_status transfer(tenon_device device, tenon_comm comm, const tenon_transfer* transfers,
                      uint32_t ntransfers, int32_t dtype, tenon_stream stream, tenon_err* err) {
  const uint64_t size = tenon::host->dtype_size(dtype);
  if (size == 0)
    return tenon::fail(err, TENON_INVALID_ARGUMENT, "reference: transfer: unknown dtype");
  std::vector<Progress> all;
  for (uint32_t i = 0; i < ntransfers; ++i) {
    if (transfers[i].kind > TENON_TRANSFER_RECV)
      return tenon::fail(
          err, TENON_INVALID_ARGUMENT,
          "reference: transfer: expected kind 0 or 1, got " + std::to_string(transfers[i].kind));
    if (tenon_status status = check_rank(comm, "transfer", transfers[i].peer, err)) return status;
    all.push_back({transfers[i], transfers[i].count * size});
  }
  return enqueue(device, stream,
                 {TENON_PROFILE_KERNEL, "transfer", 0,
                  [all = std::move(all), meeting = comm->meeting] {
                    return run_transfers(all, *meeting) ? Result{} : aborted("transfer");
                  }},
                 err);
}

tenon_status reduce(tenon_device device, tenon_comm comm, const void* src, void* dst,
                    uint64_t count, int32_t dtype, int32_t how, int32_t root, tenon_stream stream,
                    tenon_err* err) {
  if (tenon_status status = check_reduction("reduce", dtype, how, err)) return status;
  if (tenon_status status = check_rank(comm, "reduce", root, err)) return status;
  const uint64_t size = tenon::host->dtype_size(dtype);
  return collective(device, comm, "reduce", count, dtype, stream, err,
                    [=](Meeting& meeting, uint64_t begin, uint64_t bytes) {
                      std::memcpy(meeting.slot(meeting.rank()), bytes_of(src) + begin, bytes);
                      if (!meeting.barrier()) return false;
                      if (meeting.rank() == root)
                        reduce_slots(meeting, bytes_of(dst) + begin, bytes / size, dtype, how);
                      return meeting.barrier();
                    });
}

// What a rank says to the others when a communicator is split.
struct Wish {
  int32_t color, key;
  MemoryFile file;  // of the meeting, should this rank be the first of its color
};

// False: aborted.
bool tell_wishes(Meeting& meeting, const Wish& mine, std::vector<Wish>& wishes) {
  std::memcpy(meeting.slot(meeting.rank()), &mine, sizeof mine);
  if (!meeting.barrier()) return false;
  for (int32_t rank = 0; rank < meeting.size(); ++rank)
    std::memcpy(&wishes.emplace_back(), meeting.slot(rank), sizeof mine);
  return meeting.barrier();
}

tenon_status comm_split(tenon_device device, tenon_comm comm, int32_t color, int32_t key,
                        tenon_comm* out, tenon_err* err) {
  // Queued collectives use the slots that the wishes go through.
  if (tenon_status status = kDevice.sync(device, nullptr, err)) return status;
  Meeting& meeting = *comm->meeting;
  Wish mine = {color, key, {}};
  if (color >= 0 && !Meeting::create(&mine.file))
    return tenon::fail(err, TENON_UNAVAILABLE, "reference: comm_split: no shared memory left");
  std::vector<Wish> wishes;
  if (!tell_wishes(meeting, mine, wishes)) return report(aborted("comm_split"), err);
  tenon_comm made = nullptr;
  std::vector<int32_t> members;
  for (int32_t rank = 0; rank < meeting.size(); ++rank)
    if (wishes[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  std::stable_sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
    return wishes[static_cast<size_t>(a)].key < wishes[static_cast<size_t>(b)].key;
  });
  if (color >= 0) {
    const auto place = std::find(members.begin(), members.end(), meeting.rank()) - members.begin();
    const char* why;
    auto joined =
        Meeting::join(wishes[static_cast<size_t>(members[0])].file, static_cast<int32_t>(place),
                      static_cast<int32_t>(members.size()), &why);
    if (!joined)
      return tenon::fail(err, TENON_UNAVAILABLE, std::string("reference: comm_split: ") + why);
    if (place != 0) Meeting::drop(mine.file);
    made = new tenon_comm_s{std::move(joined)};
  }
  *out = made;
  return TENON_OK;
}

tenon_status comm_error(tenon_device, tenon_comm comm, tenon_err* err) {
  return comm->meeting->is_aborted() ? report(aborted("comm_error"), err) : TENON_OK;
}

}  // namespace

const tenon_exchange_api kExchange = {
    .struct_size = sizeof(tenon_exchange_api),
    .transfer = transfer,
    .reduce = reduce,
    .comm_split = comm_split,
    .comm_error = comm_error,
};

}  // namespace reference
