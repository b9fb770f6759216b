// SPDX-License-Identifier: Apache-2.0
#include "group/mover.hpp"

#include <algorithm>
#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

bool is_done(const std::vector<Piece>& pieces) {
  return std::all_of(pieces.begin(), pieces.end(),
                     [](const Piece& piece) { return piece.size == 0; });
}

std::vector<int32_t> peers_of(const std::vector<Piece>& pieces) {
  std::vector<int32_t> peers;
  for (const Piece& piece : pieces)
    if (piece.size > 0 && std::find(peers.begin(), peers.end(), piece.peer) == peers.end())
      peers.push_back(piece.peer);
  return peers;
}

std::string text_of(const tenon_group_record& call) {
  return number_text(call) + ", " + call_text(call);
}

}  // namespace

bool Mover::advance(std::vector<Piece>& pieces, bool is_sending) {
  constexpr char kBlocked = 1, kMoved = 2;
  states_.assign(ranks_.size(), 0);
  bool has_moved = false;
  for (Piece& piece : pieces) {
    char& state = states_[static_cast<size_t>(piece.peer)];
    if (piece.size == 0 || state & kBlocked) continue;
    const size_t count = is_sending ? links_->try_write(piece.peer, piece.data, piece.size)
                                    : links_->try_read(piece.peer, piece.data, piece.size);
    piece.data = static_cast<char*>(piece.data) + count;
    piece.size -= count;
    if (count > 0) {
      has_moved = true;
      state |= kMoved;
      if (piece.size == 0 && piece.then) piece.then();
    }
    if (piece.size > 0) state |= kBlocked;
  }
  for (size_t peer = 0; is_sending && peer < states_.size(); ++peer)
    if (states_[peer] & kMoved) links_->tell(static_cast<int32_t>(peer));
  return has_moved;
}

void Mover::move(std::vector<Piece> sends, std::vector<Piece> receives,
                 const tenon_group_record& call, bool may_interrupt, const MorePieces& more) {
  uint64_t deadline = deadline_after(meeting_.timeout_ns());
  bool is_last_chance = false;
  for (;;) {
    const uint32_t looked = links_ ? links_->look() : 0;
    if (more && more(sends, receives)) {
      std::erase_if(sends, [](const Piece& piece) { return piece.size == 0; });
      std::erase_if(receives, [](const Piece& piece) { return piece.size == 0; });
    }
    if (is_done(sends) && is_done(receives)) return;
    const bool has_sent = advance(sends, true), has_received = advance(receives, false);
    if (has_sent || has_received) {
      deadline = deadline_after(meeting_.timeout_ns());
      is_last_chance = false;
      continue;
    }
    const std::vector<int32_t> readers = peers_of(receives), writers = peers_of(sends);
    std::vector<int32_t> waited_for;
    for (const auto* peers : {&readers, &writers})
      for (const int32_t peer : *peers) waited_for.push_back(ranks_[static_cast<size_t>(peer)]);
    // What a rank sent before it went away may have come since the look above.
    const int32_t gone = first_gone(readers, writers);
    if (is_last_chance) {
      meeting_.check();
      if (gone >= 0)
        fail(TENON_COLLECTIVE_PEER_FAILED, meeting_.gone_text(gone) + "; rank " +
                                               std::to_string(meeting_.rank()) + " was in " +
                                               text_of(call));
    }
    is_last_chance = meeting_.has_failed() || gone >= 0;
    if (is_last_chance) continue;
    if (may_interrupt) {
      try {
        meeting_.check_interrupt();
      } catch (const Error&) {
        meeting_.fail(TENON_COLLECTIVE_ABORTED, "rank " + std::to_string(meeting_.rank()) +
                                                    " was interrupted in " + text_of(call));
        throw;
      }
    }
    if (time_left(deadline) == 0) give_up(waited_for, call);
    const uint64_t asleep_at = now_ns();
    links_->sleep(looked, readers, writers, std::min(deadline, deadline_after(kSecond / 4)));
    waiting_ns_.fetch_add(now_ns() - asleep_at, std::memory_order_relaxed);
  }
}

void Mover::fail(int32_t kind, const std::string& text) {
  meeting_.fail(kind, text);
  meeting_.check();
  throw Error(TENON_INTERNAL, text);
}

int32_t Mover::first_gone(const std::vector<int32_t>& readers,
                          const std::vector<int32_t>& writers) const {
  const int32_t dead = meeting_.first_dead(ranks_);
  if (dead >= 0) return dead;
  const auto has_left = [&](int32_t peer) {
    return !meeting_.is_here(ranks_[static_cast<size_t>(peer)]);
  };
  for (const int32_t peer : readers)
    if (has_left(peer) && links_->has_ended(peer)) return ranks_[static_cast<size_t>(peer)];
  for (const int32_t peer : writers)
    if (has_left(peer)) return ranks_[static_cast<size_t>(peer)];
  return -1;
}

void Mover::give_up(const std::vector<int32_t>& waited_for, const tenon_group_record& call) {
  std::string text = "rank " + std::to_string(meeting_.rank()) + " waited " +
                     seconds_text(meeting_.timeout_ns()) + " in " + text_of(call);
  std::vector<int32_t> ranks = waited_for;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (const int32_t rank : ranks) text += "; " + meeting_.state_text(rank);
  fail(TENON_COLLECTIVE_TIMEOUT, text);
}

}  // namespace tenon::collectives
