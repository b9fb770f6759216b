// SPDX-License-Identifier: Apache-2.0
// Links between ranks of several machines: a TCP connection for each pair.
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <tenon/error.hpp>

#include "control/time.hpp"
#include "group/links.hpp"

namespace tenon::collectives {
namespace {

class Sockets : public Links {
 public:
  Sockets(Meeting& meeting, const std::string& path, const std::vector<int32_t>& ranks,
          int32_t rank)
      : meeting_(meeting),
        sockets_(ranks.size()),
        has_ended_(ranks.size()),
        is_broken_(ranks.size()),
        wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wakes_ < 0) throw Error(TENON_UNAVAILABLE, "the system has no descriptor left");
    try {
      const uint64_t deadline = deadline_after(meeting.timeout_ns());
      // Who comes later in the meeting calls: it knows the addresses of those before it.
      for (size_t peer = 0; peer < ranks.size(); ++peer)
        if (ranks[peer] < ranks[static_cast<size_t>(rank)])
          sockets_[peer] = meeting.connect_data(ranks[peer], path, deadline);
      for (size_t peer = 0; peer < ranks.size(); ++peer)
        if (ranks[peer] > ranks[static_cast<size_t>(rank)])
          sockets_[peer] = meeting.await_data(ranks[peer], path, deadline);
    } catch (...) {
      ::close(wakes_);
      throw;
    }
    meeting_.add_sleeper(this);
  }
  ~Sockets() override {
    meeting_.remove_sleeper(this);
    // A process that was made by fork may hold a copy: the others see the end all the same.
    for (const Socket& socket : sockets_)
      if (!meeting_.is_forked()) socket.end_writing();
    ::close(wakes_);
  }

  // A connection that has ended moves nothing; what happened to the rank is told by the meeting.
  size_t try_write(int32_t peer, const void* data, size_t size) override {
    const auto place = static_cast<size_t>(peer);
    try {
      return sockets_[place].try_write(data, size);
    } catch (const Error&) {
      is_broken_[place] = true;
      return 0;
    }
  }
  size_t try_read(int32_t peer, void* data, size_t size) override {
    const auto place = static_cast<size_t>(peer);
    try {
      return sockets_[place].try_read(data, size);
    } catch (const Error&) {
      has_ended_[place] = true;
      return 0;
    }
  }
  // What a rank sent before it left may come behind the news that it did: on another connection.
  bool has_ended(int32_t peer) const override { return has_ended_[static_cast<size_t>(peer)]; }
  size_t room() const override { return 512 << 10; }
  void tell(int32_t) override {}
  uint32_t look() override { return 0; }
  void sleep(uint32_t, const std::vector<int32_t>& readers, const std::vector<int32_t>& writers,
             uint64_t deadline) override {
    std::vector<pollfd> entries = {{wakes_, POLLIN, 0}};
    const auto add = [&](int32_t peer, const std::vector<bool>& is_over, short events) {
      const auto place = static_cast<size_t>(peer);
      if (!is_over[place]) entries.push_back({sockets_[place].get(), events, 0});
    };
    for (const int32_t peer : readers) add(peer, has_ended_, POLLIN);
    for (const int32_t peer : writers) add(peer, is_broken_, POLLOUT);
    poll(entries.data(), entries.size(), milliseconds_left(deadline, 60'000));
    uint64_t count;
    if (entries[0].revents) [[maybe_unused]]
      const ssize_t taken = read(wakes_, &count, sizeof count);
  }
  void wake() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wakes_, &one, sizeof one);
  }

 private:
  Meeting& meeting_;
  std::vector<Socket> sockets_;
  std::vector<bool> has_ended_, is_broken_;  // by rank: nothing is read, or written, any more
  int wakes_;
};

}  // namespace

std::unique_ptr<Links> make_sockets(Meeting& meeting, const std::string& path,
                                    const std::vector<int32_t>& ranks, int32_t rank) {
  return std::make_unique<Sockets>(meeting, path, ranks, rank);
}

}  // namespace tenon::collectives
