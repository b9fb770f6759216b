// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <algorithm>
#include <cstring>

#include "reduce.hpp"

// Of the driver's stand-in.
extern "C" void* simulated_access(const void* memory, size_t bytes);

namespace simulated {
namespace {

// The memory of a collective must be device memory, pinned or managed.
char* at(const void* memory, uint64_t bytes) {
  return static_cast<char*>(simulated_access(memory, bytes));
}

struct Ranges {
  char *src, *dst;
};

Ranges find(const Operation& operation, const Meeting& meeting) {
  const Counts elements = counts(operation, meeting);
  const uint64_t size = type_bytes(operation.type);
  return {elements.src ? at(operation.src, elements.src * size) : nullptr,
          elements.dst ? at(operation.dst, elements.dst * size) : nullptr};
}

// Every rank puts a piece into its slot; then each takes from the slots what it needs.
template <class Take>
bool exchange(Meeting& meeting, const char* src, uint64_t bytes, Take take) {
  if (src) std::memcpy(meeting.slot(meeting.rank()), src, bytes);
  if (!meeting.barrier()) return false;
  take();
  return meeting.barrier();
}

void reduce_slots(const Meeting& meeting, char* dst, uint64_t bytes, const Operation& operation) {
  const void* sources[Meeting::kMaxRanks];
  for (int rank = 0; rank < meeting.size(); ++rank) sources[rank] = meeting.slot(rank);
  reduce(dst, sources, meeting.size(), bytes / type_bytes(operation.type), operation.type,
         operation.reduction);
}

bool run_piece(const Operation& operation, Meeting& meeting, const Ranges& ranges, uint64_t begin,
               uint64_t bytes, uint64_t whole) {
  const int me = meeting.rank();
  switch (operation.kind) {
    case Kind::kAllReduce:
      return exchange(meeting, ranges.src + begin, bytes,
                      [&] { reduce_slots(meeting, ranges.dst + begin, bytes, operation); });
    case Kind::kReduce:
      return exchange(meeting, ranges.src + begin, bytes, [&] {
        if (me == operation.root) reduce_slots(meeting, ranges.dst + begin, bytes, operation);
      });
    case Kind::kAllGather:
      return exchange(meeting, ranges.src + begin, bytes, [&] {
        for (int rank = 0; rank < meeting.size(); ++rank)
          std::memcpy(ranges.dst + static_cast<uint64_t>(rank) * whole + begin, meeting.slot(rank),
                      bytes);
      });
    case Kind::kBroadcast:
      return exchange(meeting, me == operation.root ? ranges.src + begin : nullptr, bytes, [&] {
        std::memcpy(ranges.dst + begin, meeting.slot(operation.root), bytes);
      });
    case Kind::kReduceScatter:
      for (int rank = 0; rank < meeting.size(); ++rank) {
        const char* part = ranges.src + static_cast<uint64_t>(rank) * whole + begin;
        if (!exchange(meeting, part, bytes, [&] {
              if (rank == me) reduce_slots(meeting, ranges.dst + begin, bytes, operation);
            }))
          return false;
      }
      return true;
    default:
      return false;
  }
}

bool run_collective(const Operation& operation, Meeting& meeting) {
  const uint64_t bytes = operation.count * type_bytes(operation.type);
  const Agreement mine = {static_cast<uint32_t>(operation.kind), operation.type,
                          operation.reduction, static_cast<uint32_t>(operation.root),
                          operation.count};
  if (!meeting.agree(mine)) return false;
  // In place, the part of this rank in the source or result may be the other one.
  const Ranges ranges = find(operation, meeting);
  for (uint64_t begin = 0; begin < bytes; begin += Meeting::kSlotBytes)
    if (!run_piece(operation, meeting, ranges, begin, std::min(Meeting::kSlotBytes, bytes - begin),
                   bytes))
      return false;
  return true;
}

// All sends and receives of a group make progress together, in whatever order the peers do theirs.
bool run_mail(const Operation* first, const Operation* last, Meeting& meeting) {
  struct Progress {
    const Operation* operation;
    char* memory;
    uint64_t bytes, done = 0;
  };
  std::vector<Progress> all;
  for (const Operation* each = first; each != last; ++each) {
    const uint64_t bytes = each->count * type_bytes(each->type);
    if (bytes == 0) continue;
    const bool is_send = each->kind == Kind::kSend;
    all.push_back({each, at(is_send ? each->src : each->dst, bytes), bytes});
  }
  return meeting.wait_until([&] {
    bool left = false;
    // Between two ranks, messages keep their order: only the first that is not done moves.
    uint32_t busy[2] = {};
    for (Progress& each : all) {
      if (each.done == each.bytes) continue;
      const bool is_send = each.operation->kind == Kind::kSend;
      const int peer = each.operation->root;
      left = true;
      if (busy[is_send] >> peer & 1) continue;
      busy[is_send] |= 1u << peer;
      const uint64_t piece = std::min(Meeting::kMailBytes, each.bytes - each.done);
      char* memory = each.memory + each.done;
      if (is_send ? meeting.put_mail(peer, memory, piece) : meeting.take_mail(peer, memory, piece))
        each.done += piece;
    }
    if (!left) return true;
    return std::all_of(all.begin(), all.end(),
                       [](const Progress& each) { return each.done == each.bytes; });
  });
}

}  // namespace

Counts counts(const Operation& operation, const Meeting& meeting) {
  const auto ranks = static_cast<uint64_t>(meeting.size());
  const bool is_root = operation.root == meeting.rank();
  const uint64_t count = operation.count;
  switch (operation.kind) {
    case Kind::kAllGather:
      return {count, count * ranks};
    case Kind::kReduceScatter:
      return {count * ranks, count};
    case Kind::kBroadcast:
      return {is_root ? count : 0, count};
    case Kind::kReduce:
      return {count, is_root ? count : 0};
    case Kind::kSend:
      return {count, 0};
    case Kind::kReceive:
      return {0, count};
    default:
      return {count, count};
  }
}

bool run(const std::vector<Operation>& operations, Meeting& meeting) {
  const Operation* end = operations.data() + operations.size();
  for (const Operation* each = operations.data(); each != end;) {
    const Operation* next = each + 1;
    bool done;
    if (each->is_point_to_point()) {
      while (next != end && next->is_point_to_point()) ++next;
      done = run_mail(each, next, meeting);
    } else {
      done = run_collective(*each, meeting);
    }
    if (!done) return false;
    each = next;
  }
  return true;
}

}  // namespace simulated
