// SPDX-License-Identifier: Apache-2.0
// Several ranks in one process, each on a thread with a device of its own. With one device on the
// machine, two ranks share it if the plugin allows that; otherwise one rank talks to itself.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "subject/device.hpp"

namespace tenon::kit {

struct Rank {
  int32_t rank = 0, size = 1;
  Device* device = nullptr;
  const tenon_collective_api* api = nullptr;
  const tenon_exchange_api* exchange = nullptr;  // NULL: the device lacks the group
  tenon_comm comm = nullptr;
  std::string problem;  // told by the main thread: a session is not for many

  bool ok(tenon_status status, const Error& error, const char* call) {
    if (status != TENON_OK && problem.empty())
      problem = text("rank ", rank, ": ", call, ": ", describe(status, error));
    return status == TENON_OK;
  }
  void expect(bool holds, const std::string& what) {
    if (!holds && problem.empty()) problem = text("rank ", rank, ": ", what);
  }
};

class Ranks {
 public:
  explicit Ranks(Plugin& plugin)
      : plugin_(plugin), api_(plugin.need_group<tenon_collective_api>(TENON_GROUP_COLLECTIVE)) {
    size_t count = Device::enumerate(plugin).size();
    if (connect(static_cast<int32_t>(std::min<size_t>(std::max<size_t>(count, 2), 4)), count))
      return;
    if (count < 2 && connect(1, count)) {
      plugin.session().note("one device, and no two ranks on it: one rank talked to itself");
      return;
    }
    plugin.session().require(false, "comm_create succeeds on every rank", problem_);
  }
  ~Ranks() {
    for (Rank& rank : ranks_)
      if (rank.comm) api_.comm_destroy(rank.device->handle(), rank.comm);
  }
  int32_t size() const { return static_cast<int32_t>(ranks_.size()); }

  // On all ranks at once; the first problem is told. False: there was one.
  bool each(const std::string& what, const std::function<void(Rank&)>& body) {
    plugin_.session().step(what);
    run(body);
    for (Rank& rank : ranks_)
      if (!rank.problem.empty()) {
        plugin_.session().fail(what, rank.problem);
        for (Rank& other : ranks_) other.problem.clear();
        return false;
      }
    return true;
  }

 private:
  bool connect(int32_t size, size_t device_count) {
    ranks_.clear();
    devices_.clear();
    for (int32_t i = 0; i < size; ++i) {
      devices_.push_back(
          std::make_unique<Device>(plugin_, static_cast<uint32_t>(i) % device_count));
      Rank rank;
      rank.rank = i;
      rank.size = size;
      rank.device = devices_.back().get();
      rank.api = &api_;
      rank.exchange = plugin_.group<tenon_exchange_api>(TENON_GROUP_EXCHANGE);
      ranks_.push_back(rank);
    }
    tenon_comm_id id{};
    Error error;
    devices_[0]->check(api_.comm_id_create(devices_[0]->handle(), &id, error), error,
                       "comm_id_create");
    plugin_.session().step(text("comm_create of ", size, " ranks"));
    run([&](Rank& rank) {
      Error error;
      rank.ok(api_.comm_create(rank.device->handle(), &id, rank.rank, rank.size, &rank.comm, error),
              error, "comm_create");
    });
    problem_.clear();
    for (Rank& rank : ranks_)
      if (problem_.empty()) problem_ = std::exchange(rank.problem, "");
    return problem_.empty();
  }
  void run(const std::function<void(Rank&)>& body) {
    std::vector<std::thread> threads;
    for (Rank& rank : ranks_)
      threads.emplace_back([&] {
        try {
          body(rank);
        } catch (const Stop&) {
          rank.expect(false, "a call failed, see the failures before");
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

  Plugin& plugin_;
  const tenon_collective_api& api_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Rank> ranks_;
  std::string problem_;
};

template <class Value>
Buffer upload(Device& device, const std::vector<Value>& values) {
  Buffer buffer = device.alloc(values.size() * sizeof(Value));
  device.put(buffer, 0, values.data(), buffer.bytes());
  return buffer;
}
template <class Value>
std::vector<Value> download(Device& device, const Buffer& buffer) {
  std::vector<Value> values(buffer.bytes() / sizeof(Value));
  device.sync();
  device.get(values.data(), buffer, 0, buffer.bytes());
  return values;
}

}  // namespace tenon::kit
