// SPDX-License-Identifier: Apache-2.0
// What the calls move. Every call begins with a meeting of all its ranks, in which they compare what they call; little
// data ride along. Sums need no order of arrival: each rank has all numbers of its part before it adds them.
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <tenon/error.hpp>

#include "control/time.hpp"
#include "group/rank_group.hpp"
#include "group/reduce.hpp"

namespace tenon::collectives {
namespace {

// To each rank, with what describes the call: fits into the smallest of rings twice.
constexpr size_t kRidesAlong = 4 << 10;

char* at(const void* memory, uint64_t bytes) {
  return static_cast<char*>(const_cast<void*>(memory)) + bytes;
}

// Which of `count` elements are part `rank` of `size`; no product that could overflow.
uint64_t part_begin(uint64_t count, uint64_t rank, uint64_t size) {
  return count / size * rank + count % size * rank / size;
}

size_t largest(const std::vector<Piece>& pieces) {
  size_t size = 0;
  for (const Piece& piece : pieces) size = std::max(size, piece.size);
  return size;
}

uint64_t bytes_of(const std::vector<Piece>& pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.size;
  return bytes;
}

// Calls in which ranks may send each other different numbers of elements.
bool is_list(int32_t kind) {
  return kind == TENON_CALL_ALL_TO_ALL || kind == TENON_CALL_GATHER || kind == TENON_CALL_SCATTER;
}

// What a call reads or writes.
struct Span {
  const char* begin;
  uint64_t bytes;
  int32_t peer;
  bool overlaps(const Span& other) const {
    return bytes > 0 && other.bytes > 0 && std::less<>()(begin, other.begin + other.bytes) &&
           std::less<>()(other.begin, begin + bytes);
  }
};

[[noreturn]] void refuse_overlap(const char* what, const Span& first, const Span& second) {
  throw Error(TENON_INVALID_ARGUMENT,
              std::string("collectives: expected ") + what + ", got one of " +
                  std::to_string(first.bytes) + " bytes that begins " +
                  std::to_string(std::abs(first.begin - second.begin)) + " bytes " +
                  (std::less<>()(first.begin, second.begin) ? "before" : "behind") + " one of " +
                  std::to_string(second.bytes) + "; pass a copy of one of them");
}

}  // namespace

void RankGroup::validate(const tenon_group_call& call) const {
  if (call.kind < 0 || call.kind >= TENON_CALL_COUNT)
    throw Error(TENON_UNSUPPORTED,
                "collectives: call " + std::to_string(call.kind) + " is not known");
  if (call.kind == TENON_CALL_BARRIER) return;
  if (call.dtype < 0 || call.dtype >= TENON_DTYPE_COUNT)
    throw Error(TENON_TYPE_MISMATCH,
                "collectives: dtype " + std::to_string(call.dtype) + " is not known");
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(call.count, uint64_t{host->dtype_size(call.dtype)}, &bytes) ||
      __builtin_mul_overflow(bytes, uint64_t{static_cast<uint32_t>(size())}, &bytes))
    throw Error(TENON_INVALID_ARGUMENT, "collectives: the number of elements is too large");
  const bool is_reduction = call.kind == TENON_CALL_ALL_REDUCE || call.kind == TENON_CALL_REDUCE ||
                            call.kind == TENON_CALL_REDUCE_SCATTER;
  if (is_reduction) check_reduction(call.dtype, call.reduce);
  const bool has_root = call.kind == TENON_CALL_REDUCE || call.kind == TENON_CALL_BROADCAST ||
                        call.kind == TENON_CALL_GATHER || call.kind == TENON_CALL_SCATTER;
  if (has_root && (call.root < 0 || call.root >= size()))
    throw Error(TENON_INVALID_ARGUMENT, "expected a root from 0 to " + std::to_string(size() - 1) +
                                            ", got " + std::to_string(call.root));
  if (call.transfer_count > 0)
    validate_transfers(call);
  else
    validate_memory(call, call.count * host->dtype_size(call.dtype));
}

// Bytes that a rank still reads, for itself or for others, are not written by what arrives.
void RankGroup::validate_memory(const tenon_group_call& call, uint64_t bytes) const {
  if (!call.src || !call.dst) return;
  const uint64_t all = bytes * ranks_.size(), own = bytes * static_cast<uint64_t>(rank_);
  Span in = {static_cast<const char*>(call.src), bytes, rank_},
       out = {static_cast<const char*>(call.dst), bytes, rank_};
  const char* allowed = out.begin;  // where the input may begin though the two overlap
  if (call.kind == TENON_CALL_ALL_GATHER) {
    out.bytes = all;
    allowed += own;
  } else if (call.kind == TENON_CALL_REDUCE_SCATTER) {
    in.bytes = all;
    allowed -= own;
  } else if (call.kind == TENON_CALL_REDUCE ? rank_ != call.root
                                            : call.kind != TENON_CALL_ALL_REDUCE) {
    return;  // one of the two is not used
  }
  if (in.begin != allowed && in.overlaps(out))
    refuse_overlap(call.kind == TENON_CALL_ALL_GATHER || call.kind == TENON_CALL_REDUCE_SCATTER
                       ? "an input and an output that share no memory but this rank's own part"
                       : "an input and an output that share no memory or are the same",
                   in, out);
}

void RankGroup::validate_transfers(const tenon_group_call& call) const {
  std::vector<Span> sends, receives;
  std::vector<uint64_t> given, taken;  // numbers of elements, by this rank to itself
  uint64_t sum = 0;
  for (uint32_t i = 0; i < call.transfer_count; ++i) {
    const tenon_transfer& transfer = call.transfers[i];
    if (transfer.peer < 0 || transfer.peer >= size())
      throw Error(TENON_INVALID_ARGUMENT, "expected ranks from 0 to " + std::to_string(size() - 1) +
                                              ", got " + std::to_string(transfer.peer));
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(transfer.count, uint64_t{host->dtype_size(call.dtype)}, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum))
      throw Error(TENON_INVALID_ARGUMENT, "collectives: the number of elements is too large");
    const bool is_send = transfer.kind == TENON_TRANSFER_SEND;
    if (transfer.peer == rank_) (is_send ? given : taken).push_back(transfer.count);
    if (bytes > 0)
      (is_send ? sends : receives)
          .push_back({static_cast<const char*>(transfer.memory), bytes, transfer.peer});
  }
  if (given != taken)
    throw Error(TENON_INVALID_ARGUMENT,
                "rank " + std::to_string(rank_) +
                    " sends itself other numbers of elements than it receives");
  const auto is_before = [](const Span& a, const Span& b) {
    return std::less<>()(a.begin, b.begin);
  };
  std::sort(receives.begin(), receives.end(), is_before);
  for (size_t i = 1; i < receives.size(); ++i)
    if (receives[i - 1].overlaps(receives[i]))
      refuse_overlap("tensors to receive into that share no memory", receives[i], receives[i - 1]);
  for (const Span& send : sends) {
    // Receives are disjoint by now: the last one that begins before the end of what is sent is the one to look at.
    const Span end = {send.begin + send.bytes, 0, 0};
    auto found = std::lower_bound(receives.begin(), receives.end(), end, is_before);
    if (found == receives.begin() || !send.overlaps(*--found)) continue;
    const bool is_to_self = send.peer == rank_ && found->peer == rank_;
    if (!is_to_self || send.begin != found->begin || send.bytes != found->bytes)
      refuse_overlap("tensors to send and to receive into that share no memory", *found, send);
  }
}

CallHeader RankGroup::header_of(const tenon_group_call& call, uint64_t count) const {
  CallHeader header = {};
  header.magic = kCallMagic;
  header.kind = call.kind;
  header.count = count;
  const bool has_data = call.kind != TENON_CALL_BARRIER;
  const bool is_reduction = call.kind == TENON_CALL_ALL_REDUCE || call.kind == TENON_CALL_REDUCE ||
                            call.kind == TENON_CALL_REDUCE_SCATTER;
  header.dtype = has_data ? call.dtype : 0;
  header.reduce = is_reduction ? call.reduce : 0;
  header.root = call.kind == TENON_CALL_REDUCE || call.kind == TENON_CALL_BROADCAST ||
                        call.kind == TENON_CALL_GATHER || call.kind == TENON_CALL_SCATTER
                    ? call.root
                    : 0;
  copy_text(header.site, call.site ? call.site : "");
  return header;
}

void RankGroup::move(std::vector<Piece> sends, std::vector<Piece> receives) {
  mover_.move(std::move(sends), std::move(receives), record_, may_interrupt_);
}

// All ranks tell all others what they call. Then the data move: with what describes the call if they are small.
void RankGroup::meet(const tenon_group_call& call, std::vector<Piece> sends,
                     std::vector<Piece> receives) {
  const size_t size = ranks_.size(),
               item = call.kind == TENON_CALL_BARRIER ? 1 : host->dtype_size(call.dtype);
  std::vector<CallHeader> own(size, header_of(call, call.count)), expected = own, heard(size);
  if (is_list(call.kind)) {
    for (CallHeader& header : own) header.count = 0;
    for (CallHeader& header : expected) header.count = 0;
    for (const Piece& piece : sends)
      own[static_cast<size_t>(piece.peer)].count += piece.size / item;
    for (const Piece& piece : receives)
      expected[static_cast<size_t>(piece.peer)].count += piece.size / item;
  }
  bytes_sent_ += bytes_of(sends);
  bytes_received_ += bytes_of(receives);
  const bool rides_along = largest(sends) <= kRidesAlong && sends.size() <= 2 * size;
  std::vector<Piece> first, heads;
  for (size_t peer = 0; peer < size; ++peer) {
    const auto rank = static_cast<int32_t>(peer);
    if (rank == rank_) continue;
    first.push_back({rank, &own[peer], sizeof(CallHeader)});
    heads.push_back({rank, &heard[peer], sizeof(CallHeader)});
    for (const Piece& piece : sends)
      if (rides_along && piece.peer == rank) first.push_back(piece);
  }
  move(std::move(first), std::move(heads));
  compare(header_of(call, call.count), expected, heard);
  if (rides_along) sends.clear();
  move(std::move(sends), std::move(receives));
}

void RankGroup::compare(const CallHeader& own, const std::vector<CallHeader>& expected,
                        const std::vector<CallHeader>& heard) {
  const size_t mine = static_cast<size_t>(rank_);
  bool is_equal = true;
  for (size_t peer = 0; peer < ranks_.size(); ++peer)
    is_equal = is_equal && (peer == mine || is_same_call(expected[peer], heard[peer]));
  if (is_equal) return;
  // Ranks that say the same are named together. Where only numbers of elements between two ranks differ, both say so.
  std::string text =
      "expected all ranks to make the same call, with as many elements of one dtype, got " +
      number_text(record_) + ":";
  std::vector<std::string> calls(ranks_.size());
  for (size_t peer = 0; peer < ranks_.size(); ++peer) {
    CallHeader said = peer == mine ? own : heard[peer];
    calls[peer] = call_text(said);
    if (peer != mine && is_list(record_.kind) && said.count != expected[peer].count)
      calls[peer] += " (expected " + std::to_string(expected[peer].count) + " elements by rank " +
                     std::to_string(rank_) + ")";
  }
  const char* separator = " ";
  for (size_t first = 0; first < calls.size(); ++first) {
    if (std::find(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(first), calls[first]) !=
        calls.begin() + static_cast<ptrdiff_t>(first))
      continue;
    text += separator;
    std::string list;
    for (size_t peer = first; peer < calls.size(); ++peer)
      if (calls[peer] == calls[first]) list += (list.empty() ? "" : ", ") + std::to_string(peer);
    text += (list.find(',') == std::string::npos ? "rank " : "ranks ") + list + " " + calls[first];
    separator = "; ";
  }
  meeting_->fail(TENON_COLLECTIVE_MISMATCH, text + "; the communicator was aborted");
  meeting_->check();
}

void RankGroup::gather(const tenon_group_call& call) {
  const size_t bytes = call.count * host->dtype_size(call.dtype);
  std::vector<Piece> sends, receives;
  for (int32_t peer = 0; peer < size(); ++peer) {
    char* slot = at(call.dst, bytes * static_cast<uint64_t>(peer));
    if (peer == rank_) continue;
    sends.push_back({peer, at(call.src, 0), bytes});
    receives.push_back({peer, slot, bytes});
  }
  meet(call, std::move(sends), std::move(receives));
  char* own = at(call.dst, bytes * static_cast<uint64_t>(rank_));
  if (own != call.src && bytes > 0) memmove(own, call.src, bytes);
}

void RankGroup::broadcast(const tenon_group_call& call) {
  const size_t bytes = call.count * host->dtype_size(call.dtype);
  std::vector<Piece> sends, receives;
  if (rank_ != call.root) receives.push_back({call.root, call.dst, bytes});
  for (int32_t peer = 0; peer < size() && rank_ == call.root; ++peer)
    if (peer != rank_) sends.push_back({peer, call.dst, bytes});
  meet(call, std::move(sends), std::move(receives));
}

void RankGroup::reduce(const tenon_group_call& call) {
  const size_t bytes = call.count * host->dtype_size(call.dtype);
  if (bytes <= kRidesAlong || size() == 1)
    reduce_small(call);
  else
    reduce_large(call);
}

// Every rank that needs a sum gets all of its numbers, and adds them itself.
void RankGroup::reduce_small(const tenon_group_call& call) {
  const size_t bytes = call.count * host->dtype_size(call.dtype);
  const bool is_scatter = call.kind == TENON_CALL_REDUCE_SCATTER;
  const bool wants = call.kind != TENON_CALL_REDUCE || rank_ == call.root;
  scratch_.resize(std::max(bytes * ranks_.size(), scratch_.size()));
  std::vector<Piece> sends, receives;
  std::vector<const void*> parts(ranks_.size());
  for (int32_t peer = 0; peer < size(); ++peer) {
    const auto place = static_cast<size_t>(peer);
    const bool peer_wants = call.kind != TENON_CALL_REDUCE || peer == call.root;
    parts[place] = scratch_.data() + place * bytes;
    if (peer == rank_)
      parts[place] = at(call.src, is_scatter ? bytes * place : 0);
    else if (wants)
      receives.push_back({peer, scratch_.data() + place * bytes, bytes});
    if (peer != rank_ && peer_wants)
      sends.push_back({peer, at(call.src, is_scatter ? bytes * place : 0), bytes});
  }
  meet(call, std::move(sends), std::move(receives));
  if (wants) reduce_parts(parts, call.dst, call.count, call.dtype, call.reduce);
}

// Each rank adds one part of the elements, piece by piece: while a piece is moved to who adds it, the sums of the piece
// before are moved to who needs them.
void RankGroup::reduce_large(const tenon_group_call& call) {
  meet(call, {}, {});
  const uint64_t ranks = ranks_.size(), item = host->dtype_size(call.dtype);
  const uint64_t mine = static_cast<uint64_t>(rank_),
                 piece = std::max<uint64_t>(mover_.piece_bytes() / item, 1);
  const bool is_scatter = call.kind == TENON_CALL_REDUCE_SCATTER;
  const uint64_t whole = is_scatter ? call.count * ranks : call.count;
  struct Range {
    uint64_t begin, count;
  };
  const auto range = [&](uint64_t rank, uint64_t step) {
    const uint64_t begin =
        std::min(part_begin(whole, rank, ranks) + step * piece, part_begin(whole, rank + 1, ranks));
    return Range{begin, std::min(piece, part_begin(whole, rank + 1, ranks) - begin)};
  };
  const uint64_t steps = ((whole + ranks - 1) / ranks + piece - 1) / piece;
  scratch_.resize(std::max<size_t>(piece * item * (ranks + 1), scratch_.size()));
  char* sums = scratch_.data() + piece * item * ranks;  // where this rank does not keep them
  const bool keeps = call.kind != TENON_CALL_REDUCE || rank_ == call.root;
  const auto sum_of = [&](Range part) {
    if (!keeps) return sums;
    return at(call.dst, is_scatter ? (part.begin - part_begin(whole, mine, ranks)) * item
                                   : part.begin * item);
  };
  for (uint64_t step = 0; step <= steps; ++step) {
    std::vector<Piece> sends, receives;
    for (int32_t peer = 0; peer < size(); ++peer) {
      const auto other = static_cast<uint64_t>(peer);
      if (peer == rank_) continue;
      if (step > 0 && !is_scatter) {
        const Range done = range(mine, step - 1), theirs = range(other, step - 1);
        if (call.kind == TENON_CALL_ALL_REDUCE || peer == call.root)
          sends.push_back({peer, sum_of(done), done.count * item});
        if (keeps)
          receives.push_back({peer, at(call.dst, theirs.begin * item), theirs.count * item});
      }
      if (step < steps) {
        const Range given = range(other, step), taken = range(mine, step);
        sends.push_back({peer, at(call.src, given.begin * item), given.count * item});
        receives.push_back({peer, scratch_.data() + other * piece * item, taken.count * item});
      }
    }
    bytes_sent_ += bytes_of(sends);
    bytes_received_ += bytes_of(receives);
    move(std::move(sends), std::move(receives));
    if (step == steps) break;
    const Range own = range(mine, step);
    std::vector<const void*> parts(ranks_.size());
    for (uint64_t rank = 0; rank < ranks; ++rank)
      parts[rank] =
          rank == mine ? at(call.src, own.begin * item) : scratch_.data() + rank * piece * item;
    reduce_parts(parts, sum_of(own), own.count, call.dtype, call.reduce);
  }
}

void RankGroup::copy_to_self(const tenon_group_call& call) const {
  std::vector<const tenon_transfer*> out, in;
  for (uint32_t i = 0; i < call.transfer_count; ++i)
    if (call.transfers[i].peer == rank_)
      (call.transfers[i].kind == TENON_TRANSFER_SEND ? out : in).push_back(&call.transfers[i]);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i]->count > 0)
      memmove(in[i]->memory, out[i]->memory, out[i]->count * host->dtype_size(call.dtype));
}

void RankGroup::exchange_all(const tenon_group_call& call) {
  const size_t item = host->dtype_size(call.dtype);
  std::vector<Piece> sends, receives;
  for (uint32_t i = 0; i < call.transfer_count; ++i) {
    const tenon_transfer& transfer = call.transfers[i];
    if (transfer.peer == rank_) continue;
    (transfer.kind == TENON_TRANSFER_SEND ? sends : receives)
        .push_back({transfer.peer, transfer.memory, transfer.count * item});
  }
  copy_to_self(call);
  meet(call, std::move(sends), std::move(receives));
}

}  // namespace tenon::collectives
