// SPDX-License-Identifier: Apache-2.0
#include "group/rank_group.hpp"

#include <signal.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

std::unique_ptr<Links> make_links(Meeting& meeting, const std::string& path,
                                  const std::vector<int32_t>& ranks, int32_t rank) {
  if (ranks.size() == 1) return nullptr;
  if (meeting.uses_mpi()) return make_mpi(meeting, path, ranks, rank);
  return meeting.is_one_machine(ranks) ? make_shared_memory(meeting, path, ranks, rank)
                                       : make_sockets(meeting, path, ranks, rank);
}

// Paths of parts of parts grow without end, and what carries them does not: the name of shared memory, the first words
// on a connection. FNV-1a; only groups of one meeting must differ.
std::string shortened(const std::string& path) {
  if (path.size() < 48) return path;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : path) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  char text[20];
  snprintf(text, sizeof text, "h%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

bool Work::wait(uint64_t timeout_ns) {
  if (is_forked())
    throw Error(TENON_FAILED_PRECONDITION,
                "this process was made by fork, and the call goes on in its parent; wait there");
  std::unique_lock lock(mutex_);
  const auto limit = std::chrono::nanoseconds(std::min(timeout_ns, 365 * 24 * 3600 * kSecond));
  return changed_.wait_for(lock, limit, [&] { return is_completed_; });
}

bool Work::is_completed() {
  if (is_forked()) return true;  // waiting has an end
  std::lock_guard lock(mutex_);
  return is_completed_;
}

Outcome outcome_of(const std::function<void()>& call) {
  try {
    call();
    return {TENON_OK, ""};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {TENON_OUT_OF_MEMORY, "out of host memory"};
  } catch (const std::exception& error) {
    return {TENON_UNKNOWN, error.what()};
  }
}

void Work::complete(tenon_status status, const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    status_ = status;
    text_ = text;
    is_completed_ = true;
  }
  changed_.notify_all();
}

RankGroup::RankGroup(std::shared_ptr<Meeting> meeting, const std::string& name,
                     const std::string& path, const std::vector<int32_t>& ranks, int32_t rank)
    : meeting_(std::move(meeting)),
      name_(name),
      path_(path),
      ranks_(ranks),
      rank_(rank),
      mover_(*meeting_, make_links(*meeting_, path, ranks, rank), ranks) {}

RankGroup::~RankGroup() {
  if (meeting_->is_forked()) {
    queue_.release();  // kept for ever: the thread that waits at it is in the parent
    return;
  }
  {
    std::lock_guard lock(queue_->mutex);
    queue_->is_closing = true;
  }
  queue_->changed.notify_all();
  if (queue_->thread.joinable()) queue_->thread.join();
}

tenon_group_counters RankGroup::counters() const {
  return {calls_, bytes_sent_, bytes_received_, mover_.waiting_ns()};
}

std::unique_ptr<RankGroup> RankGroup::part(const std::string& name,
                                           const std::vector<int32_t>& ranks) {
  std::vector<int32_t> members;
  int32_t place = -1;
  for (const int32_t rank : ranks) {
    if (rank < 0 || rank >= size() || std::count(ranks.begin(), ranks.end(), rank) != 1)
      throw Error(TENON_INVALID_ARGUMENT, "expected each rank from 0 to " +
                                              std::to_string(size() - 1) + " once at most, got " +
                                              std::to_string(rank));
    if (rank == rank_) place = static_cast<int32_t>(members.size());
    members.push_back(ranks_[static_cast<size_t>(rank)]);
  }
  const uint64_t number = parts_++;
  if (place < 0) return nullptr;
  meeting_->check();
  // Parts that are made at the same time have no rank in common.
  const std::string path =
      shortened(path_ + "." + std::to_string(number) + "-" + std::to_string(members[0]));
  return std::make_unique<RankGroup>(meeting_, name, path, members, place);
}

void RankGroup::run(const tenon_group_call& call) {
  meeting_->check();  // before the lock, which a thread of the parent may hold after fork
  {
    std::unique_lock lock(queue_->mutex);
    if (queue_->jobs.empty()) {
      lock.unlock();
      return carry_out(call, true);
    }
  }
  const std::shared_ptr<Work> work = start(call);
  while (!work->wait(kSecond / 4)) {
    try {
      meeting_->check_interrupt();
    } catch (const Error&) {
      // The caller frees the memory that the call uses: it has to end first, and those before it.
      meeting_->fail(TENON_COLLECTIVE_ABORTED,
                     "rank " + std::to_string(meeting_->rank()) + " was interrupted in " +
                         call_text(header_of(call, call.count)) + " of " + name_ +
                         ", behind calls that were started before it");
      work->wait(kForever);
      throw;
    }
  }
  if (work->status() != TENON_OK) throw Error(work->status(), work->text());
}

std::shared_ptr<Work> RankGroup::start(const tenon_group_call& call) {
  validate(call);
  meeting_->check();
  Job job = {call,
             {call.transfers, call.transfers + call.transfer_count},
             call.site ? call.site : "",
             std::make_shared<Work>()};
  const std::shared_ptr<Work> work = job.work;
  {
    std::lock_guard lock(queue_->mutex);
    if (!queue_->thread.joinable()) {
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        queue_->thread = std::thread([this] { serve(); });
      } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    queue_->jobs.push_back(std::move(job));
  }
  queue_->changed.notify_all();
  if (call.kind == TENON_CALL_EXCHANGE) mover_.wake();
  return work;
}

void RankGroup::serve() {
  std::unique_lock lock(queue_->mutex);
  for (;;) {
    queue_->changed.wait(lock, [&] { return queue_->is_closing || !queue_->jobs.empty(); });
    if (queue_->jobs.empty()) return;
    Job& job = queue_->jobs.front();  // a deque: later ones do not move it
    lock.unlock();
    if (job.call.kind == TENON_CALL_EXCHANGE) {
      serve_exchanges();
      lock.lock();
      continue;
    }
    const auto [status, text] = outcome_of([&] { carry_out(job.own_call(), false); });
    const std::shared_ptr<Work> work = job.work;
    lock.lock();
    queue_->jobs.pop_front();
    work->complete(status, text);
  }
}

uint64_t RankGroup::begin_record(const tenon_group_call& call) {
  if (call.kind != TENON_CALL_EXCHANGE) ++sequence_;
  ++calls_;
  record_ = {};
  record_.sequence = sequence_;
  record_.begin_ns = now_ns();
  record_.count = call.count;
  record_.kind = call.kind;
  record_.dtype = call.dtype;
  record_.reduce = call.reduce;
  record_.root = call.root;
  copy_text(record_.group, name_);
  copy_text(record_.site, call.site ? call.site : "");
  return meeting_->records().begin(record_);
}

void RankGroup::carry_out(const tenon_group_call& call, bool may_interrupt) {
  validate(call);
  meeting_->check();
  may_interrupt_ = may_interrupt;
  const uint64_t number = begin_record(call);
  try {
    dispatch(call);
  } catch (const Error& error) {
    meeting_->records().finish(number, error.code());
    throw;
  } catch (...) {
    meeting_->records().finish(number, TENON_UNKNOWN);
    throw;
  }
  meeting_->records().finish(number, TENON_OK);
}

void RankGroup::dispatch(const tenon_group_call& call) {
  switch (call.kind) {
    case TENON_CALL_ALL_REDUCE:
    case TENON_CALL_REDUCE_SCATTER:
    case TENON_CALL_REDUCE:
      return reduce(call);
    case TENON_CALL_ALL_GATHER:
      return gather(call);
    case TENON_CALL_BROADCAST:
      return broadcast(call);
    case TENON_CALL_BARRIER:
      return meet(call, {}, {});
    case TENON_CALL_EXCHANGE:
      return exchange_messages(call);
    default:
      return exchange_all(call);
  }
}

}  // namespace tenon::collectives
