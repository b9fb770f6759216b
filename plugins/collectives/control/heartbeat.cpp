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
  bool can_accept = true;
  while (!is_stopping_) {
    std::vector<pollfd> entries = {{pokes_, POLLIN, 0}};
    std::vector<int32_t> ranks;
    size_t first = 0;  // entry of a peer
    {
      std::lock_guard lock(mutex_);
      if (now_ns() >= next_beat) {
        send_heartbeats();
        next_beat = now_ns() + kBeat;
        can_accept = true;
      }
      if (can_accept) entries.push_back({listener_.get(), POLLIN, 0});
      arrivals_.add_to(entries);
      first = entries.size();
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
    std::lock_guard lock(mutex_);
    // Who waits at the listener and gets no descriptor would wake this thread without end: not before the next beat.
    if (can_accept && entries[1].revents) can_accept = accept_data();
    read_arrivals();
    for (size_t i = first; i < entries.size(); ++i) {
      const int32_t rank = ranks[i - first];
      if (entries[i].revents & POLLOUT) flush(peers_[static_cast<size_t>(rank)]);
      if (entries[i].revents & ~POLLOUT) read_frames(rank);
    }
  }
  // With the last call, which those who wait for this rank are told.
  const tenon_group_record last = records_.last();
  std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (!peer.is_here || !peer.control) continue;
    try {
      append(peer, kHeartbeat, &last, sizeof last);
      append(peer, kGoodbye, "", 0);
      peer.control.write(peer.outbox.data(), peer.outbox.size(), deadline_after(kSecond / 2));
    } catch (const Error&) {  // it has left, too, or will see the connection end
    }
  }
}

bool Meeting::accept_data() {
  try {
    arrivals_.accept(listener_);
    return true;
  } catch (const Error&) {  // out of descriptors
    return false;
  }
}

void Meeting::read_arrivals() {
  arrivals_.read(token_, options_.size, [this](const Hello& hello, Socket socket) {
    if (hello.purpose == kData) data_[{hello.from, text_of(hello.group)}] = std::move(socket);
  });
}

void Meeting::send_heartbeats() {
  const tenon_group_record last = records_.last();
  for (Peer& peer : peers_)
    if (peer.is_here && peer.control && peer.outbox.empty())
      queue(peer, kHeartbeat, &last, sizeof last);
}

void Meeting::append(Peer& peer, uint32_t kind, const void* data, size_t size) {
  const FrameHead head = {kind, static_cast<uint32_t>(size)};
  peer.outbox.append(reinterpret_cast<const char*>(&head), sizeof head);
  peer.outbox.append(static_cast<const char*>(data), size);
}

void Meeting::queue(Peer& peer, uint32_t kind, const void* data, size_t size) {
  append(peer, kind, data, size);
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
  if (kind == kHeartbeat && size == sizeof peer.last) {
    memcpy(&peer.last, data, size);
    make_readable(peer.last);
    const bool is_call = peer.last.kind >= 0 && peer.last.kind < TENON_CALL_COUNT &&
                         peer.last.dtype >= 0 && peer.last.dtype < TENON_DTYPE_COUNT;
    if (!is_call) peer.last = {};
  }
  if (kind == kGoodbye) {
    peer.said_goodbye = true;
    peer.is_here = false;
  }
  if (kind == kFailure && size >= sizeof failure) {
    memcpy(&failure, data, sizeof failure);
    if (failure > TENON_COLLECTIVE_WORKS && failure <= TENON_COLLECTIVE_TIMEOUT)
      record_failure(failure, readable({data + sizeof failure, size - sizeof failure}));
    else
      peer.is_here = false;  // no rank says that
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
