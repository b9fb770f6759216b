// SPDX-License-Identifier: Apache-2.0
// TCP sockets that close themselves. Failures are thrown as Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tenon::collectives {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  // From any thread: every call that waits on the socket returns.
  void shut_down() const;
  // The other side reads to the end of what was written, and then that this was the end.
  void end_writing() const;
  void set_blocking(bool is_blocking) const;

  // All bytes, or a failure: UNAVAILABLE if the other side is gone, DEADLINE_EXCEEDED.
  void write(const void* data, size_t size, uint64_t deadline) const;
  void read(void* data, size_t size, uint64_t deadline) const;
  // As many as can be moved at once; 0: none.
  size_t try_write(const void* data, size_t size) const;
  size_t try_read(void* data, size_t size) const;

  // The address that this machine has on the connection.
  std::string local_address() const;
  uint32_t local_port() const;

 private:
  int descriptor_ = -1;
};

// Listens on a port, 0: one that the system chooses.
Socket listen_on(const char* address, uint32_t port);
// Without a connection until the deadline: an empty socket.
Socket accept_from(const Socket& listener, uint64_t deadline);
// Tries until the deadline, because the other side may come later.
Socket connect_to(const std::string& address, uint32_t port, uint64_t deadline);

}  // namespace tenon::collectives
