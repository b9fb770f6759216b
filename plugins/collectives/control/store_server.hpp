// SPDX-License-Identifier: Apache-2.0
// A store that other processes ask over TCP. A program that knows the secret may ask; nothing is encrypted.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "control/store.hpp"

namespace tenon::collectives {

// What a client sends. Sizes are checked: 64 KiB of key, 64 MiB of value.
struct StoreHello {
  char magic[8];
  Secret secret;
};
struct StoreRequest {
  uint32_t operation;  // StoreOperation
  uint32_t key_bytes;
  uint64_t value_bytes;
  uint64_t wait_ns;  // get; add: the number; compare_set: the bytes of what is expected
};
struct StoreAnswer {
  int32_t status;
  uint32_t reserved;
  uint64_t bytes;  // of the value, or of the text of a failure
};
enum StoreOperation : uint32_t { kSet, kGet, kAdd, kCompareSet, kErase };
inline constexpr char kStoreMagic[8] = {'T', 'N', 'S', 'T', 'O', 'R', 'E', '1'};
inline constexpr uint64_t kMaxKeyBytes = 64 << 10;
inline constexpr uint64_t kMaxValueBytes = 64 << 20;

class StoreServer {
 public:
  StoreServer(const char* address, uint32_t port, const Secret& secret);
  ~StoreServer();
  uint32_t port() const { return port_; }

 private:
  struct Client {
    Socket socket;
    std::thread thread;
    bool is_done = false;  // guarded by mutex_
  };
  void accept_all();
  void serve(Client& client);
  void answer(Client& client);
  void forget_finished();

  Secret secret_;
  Socket listener_;
  uint32_t port_;
  LocalStore values_;
  std::mutex mutex_;
  bool is_stopping_ = false;
  std::list<Client> clients_;
  std::thread acceptor_;
};

}  // namespace tenon::collectives
