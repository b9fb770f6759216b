// SPDX-License-Identifier: Apache-2.0
// Small values under names: where ranks meet before they are connected. Failures are thrown as Error.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "control/socket.hpp"

namespace tenon::collectives {

using Secret = std::array<uint8_t, 16>;

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there.
  virtual std::string get(const std::string& key, uint64_t deadline) = 0;
  virtual int64_t add(const std::string& key, int64_t delta) = 0;
  // Sets the key if its value is `expected` (absent: ""); the value that it has then.
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& value) = 0;
  // Whether it was there.
  virtual bool erase(const std::string& key) = 0;
  // Under which address other ranks of this store reach this machine.
  virtual std::string address() const { return "127.0.0.1"; }
};

// Of one process, for its threads.
class LocalStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, uint64_t deadline) override;
  int64_t add(const std::string& key, int64_t delta) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& value) override;
  bool erase(const std::string& key) override;
  // Every get that waits fails, now and later.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  bool is_closed_ = false;
};

// A file for each key in a folder that only this user may enter.
class FileStore : public Store {
 public:
  explicit FileStore(const std::string& folder);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, uint64_t deadline) override;
  int64_t add(const std::string& key, int64_t delta) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& value) override;
  bool erase(const std::string& key) override;

 private:
  std::string path(const std::string& key) const;
  bool read(const std::string& key, std::string& value) const;
  std::string folder_;
};

// At a server, see store_server.hpp.
class TcpStore : public Store {
 public:
  TcpStore(const std::string& address, uint32_t port, const Secret& secret, uint64_t timeout_ns);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, uint64_t deadline) override;
  int64_t add(const std::string& key, int64_t delta) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& value) override;
  bool erase(const std::string& key) override;
  std::string address() const override { return socket_.local_address(); }

 private:
  std::string ask(uint32_t operation, const std::string& key, const std::string& value,
                  uint64_t wait_ns);
  std::mutex mutex_;
  Socket socket_;
  uint64_t timeout_ns_;
};

// The number that a value is; INVALID_ARGUMENT names the key of one that is none.
int64_t number_of(const std::string& key, const std::string& value);
// A deadline has passed before a rank set the key.
[[noreturn]] void never_set(const std::string& key);

}  // namespace tenon::collectives
