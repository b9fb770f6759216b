// SPDX-License-Identifier: Apache-2.0
#include "root_info.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "device.hpp"

namespace ascend {
namespace {

using Secret = std::array<unsigned char, 16>;
constexpr char kMagic[8] = {'t', 'n', 'h', 'c', 'c', 'l', '0', '1'};
constexpr uint16_t kMaxAddresses = 25;

// What the 128 bytes of an id hold. Addresses and port are in network order.
struct Content {
  char magic[8];
  Secret secret;
  uint16_t port, addresses;
  in_addr_t address[kMaxAddresses];
};
static_assert(sizeof(Content) == sizeof(tenon_comm_id));

class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  ~Socket() {
    if (file_ >= 0) ::close(file_);
  }
  Socket(const Socket&) = delete;
  int get() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }

  void limit_waits(int seconds) const {
    const timeval limit = {.tv_sec = seconds, .tv_usec = 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  bool send_all(const void* data, size_t bytes) const {
    for (size_t done = 0; done < bytes;) {
      const ssize_t n =
          ::send(file_, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }
  bool receive_all(void* data, size_t bytes) const {
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = ::recv(file_, static_cast<char*>(data) + done, bytes - done, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int file_;
};

// Answers on a thread of its own until it is destroyed.
class Server {
 public:
  Server(const hccl::RootInfo& info, const Secret& secret) : info_(info), secret_(secret) {
    const sockaddr_in any = {
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {INADDR_ANY}, .sin_zero = {}};
    sockaddr_in got = {};
    socklen_t length = sizeof got;
    if (!listener_ || !wake_ ||
        bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
        listen(listener_.get(), SOMAXCONN) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&got), &length) != 0)
      throw std::system_error(errno, std::generic_category());
    port_ = got.sin_port;
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    const uint64_t one = 1;
    // A process that was forked has no thread, and its files are those of the other one.
    if (getpid() == process_ && write(wake_.get(), &one, sizeof one) == sizeof one)
      thread_.join();
    else
      thread_.detach();
  }

  const hccl::RootInfo& info() const { return info_; }
  uint16_t port() const { return port_; }

 private:
  void serve() const {
    for (;;) {
      pollfd files[] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      if (poll(files, 2, -1) < 0) continue;
      if (files[1].revents) return;
      const Socket rank(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!rank) continue;
      rank.limit_waits(2);  // who says nothing must not keep the others waiting
      Secret secret;
      if (rank.receive_all(secret.data(), secret.size()) && secret == secret_)
        rank.send_all(&info_, sizeof info_);
    }
  }

  const hccl::RootInfo info_;
  const Secret secret_;
  const Socket listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const Socket wake_{eventfd(0, EFD_CLOEXEC)};
  const pid_t process_ = getpid();
  uint16_t port_ = 0;
  std::thread thread_;
};

std::mutex mutex;
// Outlives every exit handler: a thread may still serve when the process ends.
auto& servers() {
  static auto* const all = new std::map<Secret, std::unique_ptr<Server>>;
  return *all;
}

// Where other machines may reach this one. HCCL's own choice is followed where the user made one.
void list_addresses(Content* content) {
  const char* chosen = secure_getenv("HCCL_IF_IP");
  if (chosen && inet_pton(AF_INET, chosen, &content->address[0]) == 1) {
    content->addresses = 1;
    return;
  }
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* each = all; each && content->addresses < kMaxAddresses;
         each = each->ifa_next) {
      if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
      if (!(each->ifa_flags & IFF_UP) || (each->ifa_flags & IFF_LOOPBACK)) continue;
      content->address[content->addresses++] =
          reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr.s_addr;
    }
    freeifaddrs(all);
  }
  if (content->addresses == 0) content->address[content->addresses++] = htonl(INADDR_LOOPBACK);
}

bool ask(in_addr_t address, const Content& content, hccl::RootInfo* out) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  socket.limit_waits(5);  // also of connect(): an address may lead nowhere
  const sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = content.port, .sin_addr = {address}, .sin_zero = {}};
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
         socket.send_all(content.secret.data(), content.secret.size()) &&
         socket.receive_all(out, sizeof *out);
}

std::string text_of(const Content& content) {
  std::string text;
  for (uint16_t i = 0; i < content.addresses; ++i) {
    char address[INET_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET, &content.address[i], address, sizeof address);
    text += (i ? ", " : "") + std::string(address);
  }
  return text + " at port " + std::to_string(ntohs(content.port));
}

bool read(const tenon_comm_id& id, Content* out) {
  std::memcpy(out, id.bytes, sizeof *out);
  return std::memcmp(out->magic, kMagic, sizeof kMagic) == 0 && out->addresses >= 1 &&
         out->addresses <= kMaxAddresses;
}

}  // namespace

tenon_status publish(const hccl::RootInfo& info, tenon_comm_id* out, tenon_err* err) try {
  Content content = {};
  std::memcpy(content.magic, kMagic, sizeof kMagic);
  if (getrandom(content.secret.data(), content.secret.size(), 0) != sizeof(Secret))
    return tenon::fail(err, TENON_INTERNAL, "ascend: comm_id_create: no random numbers");
  auto server = std::make_unique<Server>(info, content.secret);
  content.port = server->port();
  list_addresses(&content);
  const std::lock_guard lock(mutex);
  servers()[content.secret] = std::move(server);
  std::memcpy(out->bytes, &content, sizeof content);
  return TENON_OK;
} catch (const std::system_error& error) {
  return tenon::fail(err, TENON_INTERNAL,
                     std::string("ascend: comm_id_create: listening on a port: ") + error.what());
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

tenon_status look_up(const tenon_comm_id& id, hccl::RootInfo* out, tenon_err* err) {
  Content content;
  if (!read(id, &content))
    return tenon::fail(
        err, TENON_INVALID_ARGUMENT,
        "ascend: comm_create: expected an id that comm_id_create of this plugin made");
  {
    const std::lock_guard lock(mutex);
    if (const auto found = servers().find(content.secret); found != servers().end()) {
      *out = found->second->info();
      return TENON_OK;
    }
  }
  for (uint16_t i = 0; i < content.addresses; ++i)
    if (ask(content.address[i], content, out)) return TENON_OK;
  return tenon::fail(
      err, TENON_INVALID_ARGUMENT,
      "ascend: comm_create: no process answers for this id on " + text_of(content) +
          "; the process that made it has to run, and to be reached from here, until "
          "every rank has joined, and an id serves one communicator");
}

void withdraw(const tenon_comm_id& id) {
  Content content;
  if (!read(id, &content)) return;
  std::unique_ptr<Server> server;  // its thread is waited for without the lock
  const std::lock_guard lock(mutex);
  const auto found = servers().find(content.secret);
  if (found == servers().end()) return;
  server = std::move(found->second);
  servers().erase(found);
}

void withdraw_all() {
  std::map<Secret, std::unique_ptr<Server>> all;
  const std::lock_guard lock(mutex);
  all.swap(servers());
}

}  // namespace ascend
