// SPDX-License-Identifier: Apache-2.0
// The thread of a meeting: signs of life five times a second, and news of failures. It needs neither the program's
// threads nor its interpreter, so that a rank that computes for long is late and not dead.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <tenon/error.hpp>

#include "control/hello.hpp"
#include "control/meeting.hpp"
#include "control/time.hpp"

namespace tenon::collectives {
namespace {

constexpr uint64_t kBeat = kSecond / 5;

}  // namespace

void Meeting::poke() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(pokes_, &one, sizeof one);
}

void Meeting::watch() {
  uint64_t next_beat = now_ns();
  while (!is_stopping_) {
    std::vector<pollfd> entries = {{pokes_, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::vector<int32_t> ranks = {-1, -1};
    {
      std::lock_guard lock(mutex_);
      if (now_ns() >= next_beat) {
        send_heartbeats();
        next_beat = now_ns() + kBeat;
      }
      for (int32_t rank = 0; rank < options_.size; ++rank) {
        const Peer& peer = peers_[static_cast<size_t>(rank)];
        if (!peer.is_here || !peer.control) continue;
        const short events = peer.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
        entries.push_back({peer.control.get(), events, 0});
        ranks.push_back(rank);
      }
    }
    if (poll(entries.data(), entries.size(), milliseconds_left(next_beat, 200)) <= 0) continue;
    uint64_t pokes;
    if (entries[0].revents) [[maybe_unused]]
      const ssize_t count = read(pokes_, &pokes, sizeof pokes);
    if (entries[1].revents) accept_data();
    std::lock_guard lock(mutex_);
    for (size_t i = 2; i < entries.size(); ++i) {
      if (entries[i].revents & POLLOUT) flush(peers_[static_cast<size_t>(ranks[i])]);
      if (entries[i].revents & ~POLLOUT) read_frames(ranks[i]);
    }
  }
  std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (!peer.is_here || !peer.control) continue;
    try {
      const FrameHead head = {kGoodbye, 0};
      const uint64_t deadline = deadline_after(kSecond / 2);
      peer.control.write(peer.outbox.data(), peer.outbox.size(), deadline);
      peer.control.write(&head, sizeof head, deadline);
    } catch (const Error&) {  // it has left, too, or will see the connection end
    }
  }
}

void Meeting::accept_data() {
  try {
    Socket socket = accept_from(listener_, now_ns());
    if (!socket) return;
    Hello hello;
    socket.read(&hello, sizeof hello, deadline_after(kSecond / 2));
    if (!is_valid(hello, token_, options_.size) || hello.purpose != kData) return;
    std::lock_guard lock(mutex_);
    data_[{hello.from, text_of(hello.group)}] = std::move(socket);
  } catch (const Error&) {  // the other side is no rank
  }
}

void Meeting::send_heartbeats() {
  const tenon_group_record last = records_.last();
  for (Peer& peer : peers_)
    if (peer.is_here && peer.control && peer.outbox.empty())
      queue(peer, kHeartbeat, &last, sizeof last);
}

void Meeting::queue(Peer& peer, uint32_t kind, const void* data, size_t size) {
  const FrameHead head = {kind, static_cast<uint32_t>(size)};
  peer.outbox.append(reinterpret_cast<const char*>(&head), sizeof head);
  peer.outbox.append(static_cast<const char*>(data), size);
  flush(peer);
}

void Meeting::flush(Peer& peer) {
  try {
    peer.outbox.erase(0, peer.control.try_write(peer.outbox.data(), peer.outbox.size()));
  } catch (const Error&) {
    peer.outbox.clear();  // reading tells that the rank is gone, behind what it sent before
  }
}

void Meeting::read_frames(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  try {
    char piece[4096];
    while (const size_t count = peer.control.try_read(piece, sizeof piece))
      peer.inbox.append(piece, count);
  } catch (const Error&) {
    peer.is_here = false;
  }
  FrameHead head;
  while (peer.inbox.size() >= sizeof head) {
    memcpy(&head, peer.inbox.data(), sizeof head);
    if (head.bytes > kMaxFrameBytes) {
      peer.is_here = false;
      peer.inbox.clear();
      break;
    }
    if (peer.inbox.size() < sizeof head + head.bytes) break;
    take_frame(rank, head.kind, peer.inbox.data() + sizeof head, head.bytes);
    peer.inbox.erase(0, sizeof head + head.bytes);
  }
  if (!peer.is_here) lose(rank);
}

void Meeting::take_frame(int32_t rank, uint32_t kind, const char* data, size_t size) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.heard_at = now_ns();
  int32_t failure = 0;
  if (kind == kHeartbeat && size == sizeof peer.last) memcpy(&peer.last, data, size);
  if (kind == kGoodbye) {
    peer.said_goodbye = true;
    peer.is_here = false;
  }
  if (kind == kFailure && size >= sizeof failure) {
    memcpy(&failure, data, sizeof failure);
    record_failure(failure, std::string(data + sizeof failure, size - sizeof failure));
  }
}

void Meeting::lose(int32_t rank) {
  peers_[static_cast<size_t>(rank)].control = Socket();
  wake_all();
}

void Meeting::record_failure(int32_t kind, const std::string& text) {
  if (failure_.kind != TENON_COLLECTIVE_WORKS) return;
  failure_ = {kind, text};
  has_failed_.store(true, std::memory_order_release);
  wake_all();
}

void Meeting::wake_all() {
  for (Sleeper* sleeper : sleepers_) sleeper->wake();
}

void Meeting::fail(int32_t kind, const std::string& text) {
  if (is_forked_) return;
  std::lock_guard lock(mutex_);
  if (failure_.kind != TENON_COLLECTIVE_WORKS) return;
  std::string frame(reinterpret_cast<const char*>(&kind), sizeof kind);
  frame += text.substr(0, kMaxFrameBytes - sizeof kind);
  for (Peer& peer : peers_)
    if (peer.is_here && peer.control) queue(peer, kFailure, frame.data(), frame.size());
  record_failure(kind, text);
  poke();
}

}  // namespace tenon::collectives
