// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group: calls, in order, on the caller's thread or on one of the group's own.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/meeting.hpp"
#include "group/header.hpp"
#include "group/mover.hpp"

namespace tenon::collectives {

// A call that was started.
class Work {
 public:
  // Whether the process was made by fork since: the thread that carries it out is in the parent, and what the two
  // share stays as it is, because destroying or locking it would wait for threads that are not there.
  bool is_forked() const { return getpid() != process_; }
  // False: it goes on for longer than that. Throws if is_forked().
  bool wait(uint64_t timeout_ns);
  bool is_completed();
  // After it is completed: what it returned.
  tenon_status status() const { return status_; }
  const std::string& text() const { return text_; }
  void complete(tenon_status status, const std::string& text);

 private:
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_completed_ = false;
  tenon_status status_ = TENON_OK;
  std::string text_;
};

struct Outcome {
  tenon_status status;
  std::string text;
};
// How a call ended, which would have thrown.
Outcome outcome_of(const std::function<void()>& call);

class RankGroup {
 public:
  // `ranks` are those of the meeting, `rank` is this one's place among them; `path` names the group on all of them.
  RankGroup(std::shared_ptr<Meeting> meeting, const std::string& name, const std::string& path,
            const std::vector<int32_t>& ranks, int32_t rank);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;

  Meeting& meeting() { return *meeting_; }
  int32_t rank() const { return rank_; }
  int32_t size() const { return static_cast<int32_t>(ranks_.size()); }
  tenon_group_counters counters() const;

  // NULL: this rank is not in the list.
  std::unique_ptr<RankGroup> part(const std::string& name, const std::vector<int32_t>& ranks);
  void run(const tenon_group_call& call);
  std::shared_ptr<Work> start(const tenon_group_call& call);

 private:
  struct Job {
    tenon_group_call call;
    std::vector<tenon_transfer> transfers;
    std::string site;
    std::shared_ptr<Work> work;
    // With the pointers of the call into this.
    const tenon_group_call& own_call() {
      call.transfers = transfers.data();
      call.site = site.c_str();
      return call;
    }
  };
  // What the group's own thread and the program's share.
  struct Queue {
    std::mutex mutex;  // of the rest
    std::condition_variable changed;
    std::deque<Job> jobs;  // the first one is under way
    bool is_closing = false;
    std::thread thread;  // from the first call that is started
  };
  // A call of messages under way.
  struct Exchange {
    std::vector<CallHeader> said, heard;
    size_t pieces = 0;  // that are not whole yet
    std::function<void()> done;
  };
  void carry_out(const tenon_group_call& call, bool may_interrupt);
  uint64_t begin_record(const tenon_group_call& call);
  void dispatch(const tenon_group_call& call);
  void serve();

  // calls.cpp
  void validate(const tenon_group_call& call) const;
  void validate_transfers(const tenon_group_call& call) const;
  void validate_memory(const tenon_group_call& call, uint64_t bytes) const;
  void meet(const tenon_group_call& call, std::vector<Piece> sends, std::vector<Piece> receives);
  void reduce(const tenon_group_call& call);
  void reduce_small(const tenon_group_call& call);
  void reduce_large(const tenon_group_call& call);
  void gather(const tenon_group_call& call);
  void broadcast(const tenon_group_call& call);
  void exchange_all(const tenon_group_call& call);
  void copy_to_self(const tenon_group_call& call) const;
  CallHeader header_of(const tenon_group_call& call, uint64_t count) const;
  void compare(const CallHeader& own, const std::vector<CallHeader>& expected,
               const std::vector<CallHeader>& heard);
  void move(std::vector<Piece> sends, std::vector<Piece> receives);

  // exchange.cpp
  void exchange_messages(const tenon_group_call& call);
  void serve_exchanges();
  void begin_exchange(const tenon_group_call& call, Exchange& exchange, std::vector<Piece>& sends,
                      std::vector<Piece>& receives);

  std::shared_ptr<Meeting> meeting_;
  std::string name_, path_;
  std::vector<int32_t> ranks_;
  int32_t rank_;
  Mover mover_;
  uint64_t sequence_ = 0;
  uint64_t parts_ = 0;
  bool may_interrupt_ = true;
  tenon_group_record record_ = {};  // of the call under way
  std::vector<char> scratch_;
  std::atomic<uint64_t> calls_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
  std::unique_ptr<Queue> queue_ = std::make_unique<Queue>();
};

}  // namespace tenon::collectives
