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
      : meeting_(meeting), sockets_(ranks.size()), wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
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
    ::close(wakes_);
  }

  size_t try_write(int32_t peer, const void* data, size_t size) override {
    return attempt([&] { return sockets_[static_cast<size_t>(peer)].try_write(data, size); });
  }
  size_t try_read(int32_t peer, void* data, size_t size) override {
    return attempt([&] { return sockets_[static_cast<size_t>(peer)].try_read(data, size); });
  }
  size_t room() const override { return 512 << 10; }
  void tell(int32_t) override {}
  uint32_t look() override { return 0; }
  void sleep(uint32_t, const std::vector<int32_t>& readers, const std::vector<int32_t>& writers,
             uint64_t deadline) override {
    std::vector<pollfd> entries = {{wakes_, POLLIN, 0}};
    for (const int32_t peer : readers)
      entries.push_back({sockets_[static_cast<size_t>(peer)].get(), POLLIN, 0});
    for (const int32_t peer : writers)
      entries.push_back({sockets_[static_cast<size_t>(peer)].get(), POLLOUT, 0});
    if (has_lost_) entries.resize(1);  // an ended connection is always ready
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
  // A connection that has ended moves nothing; what happened to the rank is told by the meeting.
  template <class Try>
  size_t attempt(Try&& attempt_once) {
    try {
      return attempt_once();
    } catch (const Error&) {
      has_lost_ = true;
      return 0;
    }
  }

  Meeting& meeting_;
  std::vector<Socket> sockets_;
  int wakes_;
  bool has_lost_ = false;
};

}  // namespace

std::unique_ptr<Links> make_sockets(Meeting& meeting, const std::string& path,
                                    const std::vector<int32_t>& ranks, int32_t rank) {
  return std::make_unique<Sockets>(meeting, path, ranks, rank);
}

}  // namespace tenon::collectives
