// SPDX-License-Identifier: Apache-2.0
#include "control/store_server.hpp"

#include <string.h>

#include <system_error>
#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

// How long it takes does not tell how many bytes are right.
bool is_equal(const Secret& a, const Secret& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

void write_answer(const Socket& socket, int32_t status, const std::string& bytes) {
  const StoreAnswer answer = {status, 0, bytes.size()};
  const uint64_t deadline = deadline_after(60 * kSecond);
  socket.write(&answer, sizeof answer, deadline);
  socket.write(bytes.data(), bytes.size(), deadline);
}

std::string carry_out(LocalStore& values, const StoreRequest& request, const std::string& key,
                      const std::string& value) {
  switch (request.operation) {
    case kSet:
      values.set(key, value);
      return {};
    case kGet:
      return values.get(key, deadline_after(request.wait_ns));
    case kAdd:
      return std::to_string(values.add(key, static_cast<int64_t>(request.wait_ns)));
    case kCompareSet:
      if (request.wait_ns > value.size())
        throw Error(TENON_INVALID_ARGUMENT, "store: a request contradicts itself");
      return values.compare_set(key, value.substr(0, request.wait_ns),
                                value.substr(request.wait_ns));
    case kErase:
      return values.erase(key) ? "1" : "0";
    default:
      throw Error(TENON_UNSUPPORTED,
                  "store: the server does not know this request; it is of another "
                  "version of Tenon");
  }
}

}  // namespace

StoreServer::StoreServer(const char* address, uint32_t port, const Secret& secret)
    : secret_(secret), listener_(listen_on(address, port)), port_(listener_.local_port()) {
  acceptor_ = std::thread([this] { accept_all(); });
}

StoreServer::~StoreServer() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  values_.close();
  listener_.shut_down();
  acceptor_.join();
  {
    std::lock_guard lock(mutex_);
    for (Client& client : clients_) client.socket.shut_down();
  }
  for (Client& client : clients_) client.thread.join();
}

void StoreServer::accept_all() {
  for (;;) {
    Socket socket;
    try {
      socket = accept_from(listener_, deadline_after(kSecond));
    } catch (const Error&) {  // shut down, or out of descriptors
      const timespec pause = {0, 50'000'000};
      nanosleep(&pause, nullptr);
    }
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    forget_finished();
    if (!socket) continue;
    Client& client = clients_.emplace_back();
    client.socket = std::move(socket);
    try {
      client.thread = std::thread([this, &client] { serve(client); });
    } catch (
        const std::
            system_error&) {  // no thread is left; the client is told by the end of its connection
      clients_.pop_back();
    }
  }
}

void StoreServer::forget_finished() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!client->is_done) {
      ++client;
      continue;
    }
    client->thread.join();
    client = clients_.erase(client);
  }
}

void StoreServer::serve(Client& client) {
  try {
    StoreHello hello;
    client.socket.read(&hello, sizeof hello, deadline_after(10 * kSecond));
    const bool is_known = memcmp(hello.magic, kStoreMagic, sizeof kStoreMagic) == 0 &&
                          is_equal(hello.secret, secret_);
    write_answer(client.socket, is_known ? TENON_OK : TENON_UNAUTHENTICATED, "");
    while (is_known) answer(client);
  } catch (...) {  // the client has left, or says what no client says
  }
  std::lock_guard lock(mutex_);
  client.socket.shut_down();
  client.is_done = true;
}

void StoreServer::answer(Client& client) {
  StoreRequest request;
  client.socket.read(&request, sizeof request, kForever);
  if (request.key_bytes > kMaxKeyBytes || request.value_bytes > kMaxValueBytes)
    throw Error(TENON_INVALID_ARGUMENT, "store: a request is too large");
  std::string key(request.key_bytes, '\0'), value(request.value_bytes, '\0');
  const uint64_t deadline = deadline_after(60 * kSecond);
  client.socket.read(key.data(), key.size(), deadline);
  client.socket.read(value.data(), value.size(), deadline);
  std::string bytes;
  int32_t status = TENON_OK;
  try {
    bytes = carry_out(values_, request, key, value);
  } catch (const Error& error) {
    status = error.code();
    bytes = error.what();
  }
  write_answer(client.socket, status, bytes);
}

// -- the other side

TcpStore::TcpStore(const std::string& address, uint32_t port, const Secret& secret,
                   uint64_t timeout_ns)
    : timeout_ns_(timeout_ns) {
  const uint64_t deadline = deadline_after(timeout_ns);
  socket_ = connect_to(address, port, deadline);
  StoreHello hello;
  memcpy(hello.magic, kStoreMagic, sizeof hello.magic);
  hello.secret = secret;
  socket_.write(&hello, sizeof hello, deadline);
  StoreAnswer answer;
  socket_.read(&answer, sizeof answer, deadline);
  if (answer.status != TENON_OK)
    throw Error(TENON_UNAUTHENTICATED,
                "store: the server at " + address + " port " + std::to_string(port) +
                    " expects another secret; ranks of one job have the same "
                    "TENON_JOB_SECRET");
}

std::string TcpStore::ask(uint32_t operation, const std::string& key, const std::string& value,
                          uint64_t wait_ns) {
  if (key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes)
    throw Error(TENON_INVALID_ARGUMENT,
                "store: expected 64 KiB of key and 64 MiB of value at most");
  std::lock_guard lock(mutex_);
  if (!socket_) throw Error(TENON_UNAVAILABLE, "store: the connection to the server was lost");
  // A get waits at the server; it answers when its time is over.
  const uint64_t patience = operation == kGet ? wait_ns : 0;
  const uint64_t deadline =
      deadline_after(patience > kForever - timeout_ns_ ? kForever : patience + timeout_ns_);
  const StoreRequest request = {operation, static_cast<uint32_t>(key.size()), value.size(),
                                wait_ns};
  StoreAnswer answer;
  std::string bytes;
  try {
    socket_.write(&request, sizeof request, deadline);
    socket_.write(key.data(), key.size(), deadline);
    socket_.write(value.data(), value.size(), deadline);
    socket_.read(&answer, sizeof answer, deadline);
    if (answer.bytes > kMaxValueBytes)
      throw Error(TENON_DATA_LOSS, "store: the answer is too large");
    bytes.resize(answer.bytes);
    socket_.read(bytes.data(), bytes.size(), deadline);
  } catch (const Error& error) {
    socket_ = Socket();  // what comes next on it would be taken for the answer to another question
    throw Error(error.code(), std::string("store: ") + error.what());
  }
  if (answer.status != TENON_OK) throw Error(answer.status, bytes);
  return bytes;
}

void TcpStore::set(const std::string& key, const std::string& value) { ask(kSet, key, value, 0); }
std::string TcpStore::get(const std::string& key, uint64_t deadline) {
  return ask(kGet, key, "", time_left(deadline));
}
int64_t TcpStore::add(const std::string& key, int64_t delta) {
  return number_of(key, ask(kAdd, key, "", static_cast<uint64_t>(delta)));
}
std::string TcpStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& value) {
  return ask(kCompareSet, key, expected + value, expected.size());
}
bool TcpStore::erase(const std::string& key) { return ask(kErase, key, "", 0) == "1"; }

}  // namespace tenon::collectives
