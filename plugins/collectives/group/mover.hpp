// SPDX-License-Identifier: Apache-2.0
// Moves bytes between one rank and the others, all at once, until they are there or cannot be any more.
#pragma once

#include <functional>
#include <vector>

#include "group/links.hpp"

namespace tenon::collectives {

struct Piece {
  int32_t peer;  // in the group
  void* data;
  size_t size;
  // (optional) Called when the piece is whole, before the next one of the same rank is begun; may throw.
  std::function<void()> then = {};
};

// Adds pieces that have come to be moved since, behind those that are there; whether there were any.
using MorePieces = std::function<bool(std::vector<Piece>& sends, std::vector<Piece>& receives)>;

class Mover {
 public:
  // `ranks` are those of the meeting. `links` is NULL for a group of one.
  Mover(Meeting& meeting, std::unique_ptr<Links> links, const std::vector<int32_t>& ranks)
      : meeting_(meeting), links_(std::move(links)), ranks_(ranks) {}

  // Between two ranks, pieces are moved in the order of the lists. `call` is for messages.
  // `may_interrupt`: the thread is one of the program. `more` is asked until all is moved, and after each wake().
  void move(std::vector<Piece> sends, std::vector<Piece> receives, const tenon_group_record& call,
            bool may_interrupt, const MorePieces& more = {});
  // From any thread: one that is inside of move() looks again.
  void wake() {
    if (links_) links_->wake();
  }
  // Of each rank's part of a large sum: so that a piece and the sums of the one before it are on their way at a time.
  size_t piece_bytes() const { return links_ ? links_->room() / 2 : 256 << 10; }
  uint64_t waiting_ns() const { return waiting_ns_; }

 private:
  bool advance(std::vector<Piece>& pieces, bool is_sending);
  [[noreturn]] void fail(int32_t kind, const std::string& text);
  // A rank of the meeting that has left, or died, with what is waited for; or -1.
  int32_t first_gone(const std::vector<int32_t>& readers,
                     const std::vector<int32_t>& writers) const;
  [[noreturn]] void give_up(const std::vector<int32_t>& waited_for, const tenon_group_record& call);

  Meeting& meeting_;
  std::unique_ptr<Links> links_;
  std::vector<int32_t> ranks_;
  std::vector<char> states_;  // of ranks, in one pass
  std::atomic<uint64_t> waiting_ns_ = 0;
};

}  // namespace tenon::collectives
