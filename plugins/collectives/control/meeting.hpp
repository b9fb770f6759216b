// SPDX-License-Identifier: Apache-2.0
// Ranks that have met: connections between all of them that carry signs of life, and the news that one of them has
// failed. Groups, and groups made of groups, share one meeting; a failure ends them all.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/arrivals.hpp"
#include "control/record.hpp"
#include "control/socket.hpp"
#include "control/store.hpp"

namespace tenon::collectives {

struct Failure {
  int32_t kind = TENON_COLLECTIVE_WORKS;
  std::string text;
};

// A thread that waits for other ranks, and is woken when something happened to one.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual void wake() = 0;
};

struct Peer {
  Socket control;
  std::string inbox, outbox;  // parts of frames
  std::string machine;
  std::string address;
  uint32_t port = 0;
  bool is_here = true;
  bool said_goodbye = false;
  uint64_t heard_at = 0;
  tenon_group_record last = {};
};

struct MeetingOptions {
  std::string name;
  int32_t rank = 0, size = 1;
  uint64_t timeout_ns = 0;
  std::string mpi;  // the library that moves data: "Open MPI v4.1.4"; or "": none does
  int32_t (*is_interrupted)(void*) = nullptr;
  void* user = nullptr;
};

class Meeting {
 public:
  // Returns when all ranks have come.
  Meeting(Store& store, const MeetingOptions& options);
  ~Meeting();
  Meeting(const Meeting&) = delete;

  int32_t rank() const { return options_.rank; }
  int32_t size() const { return options_.size; }
  uint64_t timeout_ns() const { return options_.timeout_ns; }
  const std::string& token() const { return token_; }
  RecordRing& records() { return records_; }
  bool uses_mpi() const { return !options_.mpi.empty(); }
  // Throws if another rank uses no MPI where this one does, or another library.
  void check_same_transport() const;
  // Whether these ranks share the memory of one machine.
  bool is_one_machine(const std::vector<int32_t>& ranks) const;

  // The first failure counts. All ranks are told.
  void fail(int32_t kind, const std::string& text);
  bool is_forked() const { return is_forked_; }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  Failure failure() const;
  // Throws what has ended the meeting; does nothing while it goes on.
  void check() const;
  // Whether the rank is neither dead nor has left.
  bool is_here(int32_t rank) const;
  // The lowest of these ranks that is dead, or -1.
  int32_t first_dead(const std::vector<int32_t>& ranks) const;
  // "rank 1 is gone: ..."
  std::string gone_text(int32_t rank) const;
  // "rank 1 was last heard of 3 s ago, in call 3 of dp, ..."
  std::string state_text(int32_t rank) const;
  uint32_t copy_peers(tenon_group_peer* out, uint32_t capacity) const;
  // Throws CANCELLED if the program wants its thread back.
  void check_interrupt() const;

  void add_sleeper(Sleeper* sleeper);
  void remove_sleeper(Sleeper* sleeper);

  // Connections for data between two ranks; both name the group.
  Socket connect_data(int32_t rank, const std::string& group, uint64_t deadline);
  Socket await_data(int32_t rank, const std::string& group, uint64_t deadline);

 private:
  void agree_on_token(Store& store, uint64_t deadline);
  void publish(Store& store, uint64_t deadline);
  void call_lower_ranks(uint64_t deadline);
  void await_higher_ranks(uint64_t deadline);
  [[noreturn]] void never_came(const std::vector<int32_t>& missing) const;
  std::string get_patiently(Store& store, const std::string& key, int32_t from, uint64_t deadline);

  void watch();  // the thread
  bool accept_data();
  void read_arrivals();
  void send_heartbeats();
  void append(Peer& peer, uint32_t kind, const void* data, size_t size);
  void queue(Peer& peer, uint32_t kind, const void* data, size_t size);
  void flush(Peer& peer);
  void read_frames(int32_t rank);
  void take_frame(int32_t rank, uint32_t kind, const char* data, size_t size);
  void lose(int32_t rank);
  void record_failure(int32_t kind, const std::string& text);
  void wake_all();
  void poke();
  static void hold_for_fork();
  static void go_on_in_parent();
  static void go_on_in_child();

  MeetingOptions options_;
  std::string token_, machine_;
  Socket listener_;
  int pokes_ = -1;  // an eventfd that the thread waits for
  RecordRing records_;
  mutable std::mutex mutex_;  // of everything below
  Arrivals arrivals_;
  std::vector<Peer> peers_;  // the one of this rank stays empty
  Failure failure_;
  std::set<Sleeper*> sleepers_;
  std::map<std::pair<int32_t, std::string>, Socket> data_;  // accepted, not yet taken
  std::atomic<bool> has_failed_ = false, is_forked_ = false, is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tenon::collectives
