// SPDX-License-Identifier: Apache-2.0
// Messages between single ranks. Each says what it is; who receives it compares that before the data.
//
// Those that were started one behind the other are on their way together: every rank of a ring may start to send, and
// then receive, however little fits between two ranks.
#include <tenon/error.hpp>

#include "group/rank_group.hpp"

namespace tenon::collectives {

// Puts the pieces of a call behind those that are there. `exchange` stays in its place until its pieces are whole.
void RankGroup::begin_exchange(const tenon_group_call& call, Exchange& exchange,
                               std::vector<Piece>& sends, std::vector<Piece>& receives) {
  const size_t item = host->dtype_size(call.dtype);
  exchange.said.resize(call.transfer_count);
  exchange.heard.resize(call.transfer_count);
  const auto is_whole = [&exchange] {
    if (--exchange.pieces == 0 && exchange.done) exchange.done();
  };
  const auto add = [&](std::vector<Piece>& pieces, Piece piece) {
    if (piece.size == 0) return;
    ++exchange.pieces;
    pieces.push_back(std::move(piece));
  };
  for (uint32_t i = 0; i < call.transfer_count; ++i) {
    const tenon_transfer& transfer = call.transfers[i];
    if (transfer.peer == rank_) continue;
    const size_t bytes = transfer.count * item;
    exchange.said[i] = header_of(call, transfer.count);
    if (transfer.kind == TENON_TRANSFER_SEND) {
      add(sends, {transfer.peer, &exchange.said[i], sizeof(CallHeader), is_whole});
      add(sends, {transfer.peer, transfer.memory, bytes, is_whole});
      bytes_sent_ += bytes;
      continue;
    }
    const auto compare_one = [this, is_whole, &own = exchange.said[i], &other = exchange.heard[i],
                              peer = transfer.peer] {
      if (is_same_call(own, other)) return is_whole();
      meeting_->fail(
          TENON_COLLECTIVE_MISMATCH,
          "rank " + std::to_string(rank_) + " expected a message of " + call_text(own) +
              " by rank " + std::to_string(peer) + " of " + name_ + ", got " + call_text(other) +
              "; both sides have to name as many elements of one dtype, in the same order; the "
              "communicator was aborted");
      meeting_->check();
    };
    add(receives, {transfer.peer, &exchange.heard[i], sizeof(CallHeader), compare_one});
    add(receives, {transfer.peer, transfer.memory, bytes, is_whole});
    bytes_received_ += bytes;
  }
  copy_to_self(call);
}

void RankGroup::exchange_messages(const tenon_group_call& call) {
  Exchange exchange;
  std::vector<Piece> sends, receives;
  begin_exchange(call, exchange, sends, receives);
  move(std::move(sends), std::move(receives));
}

// On the group's own thread: the messages at the front of the queue, and those that join them meanwhile.
void RankGroup::serve_exchanges() {
  struct Begun {
    Exchange exchange;
    std::shared_ptr<Work> work;
    uint64_t record = 0;
    bool is_done = false;
  };
  std::deque<Begun> begun;  // the jobs at the front of the queue
  const auto complete = [this](Begun& one, const Outcome& outcome) {
    meeting_->records().finish(one.record, outcome.status);
    one.is_done = true;
    one.work->complete(outcome.status, outcome.text);
  };
  const MorePieces more = [&](std::vector<Piece>& sends, std::vector<Piece>& receives) {
    std::lock_guard lock(queue_->mutex);
    auto& jobs = queue_->jobs;
    // The queue is empty only when this thread is out of here: run() then moves by itself.
    while (begun.size() > 1 && begun.front().is_done) {
      begun.pop_front();
      jobs.pop_front();
    }
    const size_t before = begun.size();
    while (begun.size() < jobs.size() && jobs[begun.size()].call.kind == TENON_CALL_EXCHANGE) {
      Job& job = jobs[begun.size()];
      Begun& one = begun.emplace_back();
      one.work = job.work;
      one.exchange.done = [&one, &complete] { complete(one, {TENON_OK, ""}); };
      one.record = begin_record(job.own_call());
      begin_exchange(job.call, one.exchange, sends, receives);
      if (one.exchange.pieces == 0) one.exchange.done();
    }
    return begun.size() > before;
  };
  may_interrupt_ = false;
  const Outcome outcome = outcome_of([&] {
    meeting_->check();
    mover_.move({}, {}, record_, false, more);
  });
  std::lock_guard lock(queue_->mutex);
  for (Begun& one : begun) {
    if (!one.is_done) complete(one, outcome);
    queue_->jobs.pop_front();
  }
  if (begun.empty() && outcome.status != TENON_OK) {  // before the first was begun
    queue_->jobs.front().work->complete(outcome.status, outcome.text);
    queue_->jobs.pop_front();
  }
}

}  // namespace tenon::collectives
