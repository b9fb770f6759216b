// SPDX-License-Identifier: Apache-2.0
#include "control/socket.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

[[noreturn]] void lost(int error) {
  throw Error(TENON_UNAVAILABLE, std::string("the connection is lost: ") +
                                     (error ? strerror(error) : "it was closed"));
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// False: the deadline has passed.
bool wait_until(int descriptor, short events, uint64_t deadline) {
  for (;;) {
    pollfd entry = {descriptor, events, 0};
    const int ready = poll(&entry, 1, milliseconds_left(deadline, 60'000));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) lost(errno);
    if (time_left(deadline) == 0) return false;
  }
}

void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const char* address, uint32_t port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(address, std::to_string(port).c_str(), &hints, &list);
  if (error)
    throw Error(TENON_INVALID_ARGUMENT,
                std::string("expected the name or address of a machine, got \"") +
                    (address ? address : "") + "\": " + gai_strerror(error));
  return Addresses(list);
}

// A port that the system gives out may be the one that is called: the socket then meets itself.
bool is_own_end(const Socket& socket) {
  sockaddr_storage own = {}, other = {};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr*>(&other), &other_size) == 0 &&
         own_size == other_size && memcmp(&own, &other, own_size) == 0;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::shut_down() const {
  if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
}

void Socket::end_writing() const {
  if (descriptor_ >= 0) shutdown(descriptor_, SHUT_WR);
}

void Socket::set_blocking(bool is_blocking) const {
  const int flags = fcntl(descriptor_, F_GETFL);
  fcntl(descriptor_, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

size_t Socket::try_write(const void* data, size_t size) const {
  const ssize_t moved = send(descriptor_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (moved >= 0) return static_cast<size_t>(moved);
  if (!would_block(errno)) lost(errno);
  return 0;
}

size_t Socket::try_read(void* data, size_t size) const {
  const ssize_t moved = recv(descriptor_, data, size, MSG_DONTWAIT);
  if (moved > 0) return static_cast<size_t>(moved);
  if (moved == 0 && size > 0) lost(0);
  if (moved < 0 && !would_block(errno)) lost(errno);
  return 0;
}

void Socket::write(const void* data, size_t size, uint64_t deadline) const {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const size_t moved = try_write(next, size);
    next += moved;
    size -= moved;
    if (moved == 0 && !wait_until(descriptor_, POLLOUT, deadline))
      throw Error(TENON_DEADLINE_EXCEEDED, "the other side of a connection did not listen in time");
  }
}

void Socket::read(void* data, size_t size, uint64_t deadline) const {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const size_t moved = try_read(next, size);
    next += moved;
    size -= moved;
    if (moved == 0 && !wait_until(descriptor_, POLLIN, deadline))
      throw Error(TENON_DEADLINE_EXCEEDED, "the other side of a connection did not answer in time");
  }
}

std::string Socket::local_address() const {
  sockaddr_storage address;
  socklen_t size = sizeof address;
  char text[NI_MAXHOST];
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "127.0.0.1";
  return text;
}

uint32_t Socket::local_port() const {
  sockaddr_storage address;
  socklen_t size = sizeof address;
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0) lost(errno);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Socket listen_on(const char* address, uint32_t port) {
  const Addresses list = resolve(address, port, AI_PASSIVE);
  int error = 0;
  for (const addrinfo* item = list.get(); item; item = item->ai_next) {
    Socket listener(socket(item->ai_family, item->ai_socktype | SOCK_CLOEXEC, item->ai_protocol));
    const int on = 1;
    if (listener) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener && bind(listener.get(), item->ai_addr, item->ai_addrlen) == 0 &&
        listen(listener.get(), 1024) == 0) {
      listener.set_blocking(false);
      return listener;
    }
    error = errno;
  }
  throw Error(TENON_UNAVAILABLE, "cannot listen on port " + std::to_string(port) + " of " +
                                     (address ? address : "this machine") + ": " + strerror(error));
}

Socket accept_from(const Socket& listener, uint64_t deadline) {
  for (;;) {
    Socket peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer) {
      send_at_once(peer.get());
      return peer;
    }
    if (!would_block(errno) && errno != ECONNABORTED) lost(errno);
    if (!wait_until(listener.get(), POLLIN, deadline)) return {};
  }
}

Socket connect_to(const std::string& address, uint32_t port, uint64_t deadline) {
  const Addresses list = resolve(address.c_str(), port, 0);
  int error = 0;
  for (;;) {
    for (const addrinfo* item = list.get(); item; item = item->ai_next) {
      Socket peer(socket(item->ai_family, item->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         item->ai_protocol));
      if (!peer) continue;
      error = connect(peer.get(), item->ai_addr, item->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS && wait_until(peer.get(), POLLOUT, deadline)) {
        socklen_t size = sizeof error;
        getsockopt(peer.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (error == 0 && is_own_end(peer)) error = ECONNREFUSED;
      if (error == 0) {
        send_at_once(peer.get());
        return peer;
      }
    }
    if (time_left(deadline) == 0)
      throw Error(TENON_DEADLINE_EXCEEDED, "no server answered at " + address + " port " +
                                               std::to_string(port) +
                                               " in time: " + strerror(error));
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace tenon::collectives
