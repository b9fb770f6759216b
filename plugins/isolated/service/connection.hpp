// SPDX-License-Identifier: Apache-2.0
// Requests to one isolated process, from any thread; and the end of it, as an error.
#pragma once

#include <memory>

#include "service/process.hpp"
#include "wire/message.hpp"

namespace tenon::isolated {

class Connection {
 public:
  Connection(std::shared_ptr<Process> process, uint64_t deadline_ns)
      : process_(std::move(process)), deadline_ns_(deadline_ns) {}

  Process& process() { return *process_; }
  // How messages call it: "plugin acme 1.4.2", or "/path/libtenon_acme.so" while that is not known.
  void set_name(std::string name) { name_ = std::move(name); }
  std::string origin() const;  // "plugin acme 1.4.2 (isolated process 4711)"
  bool is_usable() const;
  tenon_status fail_gone(tenon_err* err) const;

 private:
  friend class Request;
  // A lane serves one request at a time; with all of them busy, callers queue.
  uint32_t take_lane();
  void give_lane(uint32_t index);

  std::shared_ptr<Process> process_;
  uint64_t deadline_ns_;
  std::string name_;
  std::mutex mutex_;
  std::condition_variable lane_is_free_;
  uint32_t free_lanes_ = (1u << kLanes) - 1;
  uint32_t numbers_[kLanes] = {};  // of the last request on each lane
};

// Use of one lane, for one request or for several that belong together.
class Request {
 public:
  explicit Request(Connection& connection);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Write what belongs to the command here; new for each request.
  Writer& message() { return message_; }
  unsigned char* staging(uint32_t half) { return lane_.staging[half]; }

  tenon_status run(Command command, tenon_err* err) {
    const tenon_status status = post(command, err);
    return status == TENON_OK ? wait(err) : status;
  }
  // The two halves of run(). Each post that succeeded is followed by one wait.
  tenon_status post(Command command, tenon_err* err);
  tenon_status wait(tenon_err* err);
  // What came back with TENON_OK, until the next post.
  Reader answer() const { return Reader(lane_.message, answer_bytes_); }
  // What came back makes no sense.
  tenon_status fail_answer(tenon_err* err) const;

 private:
  Connection& connection_;
  const uint32_t index_;
  Lane& lane_;
  Writer message_;
  uint32_t answer_bytes_ = 0;
};

// This process is the child of a fork: the isolated one serves its parent.
bool is_forked_child();
void watch_forks();

}  // namespace tenon::isolated
