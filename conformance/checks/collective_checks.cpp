// SPDX-License-Identifier: Apache-2.0
// Several ranks in one process, each on a thread with a device of its own. With one device on the
// machine, two ranks share it if the plugin allows that; otherwise one rank talks to itself.
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "subject/device.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kCount = 1000;

struct Rank {
  int32_t rank = 0, size = 1;
  Device* device = nullptr;
  const tenon_collective_api* api = nullptr;
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

double input(int32_t rank, uint64_t i) {
  return double((i + 3 * static_cast<uint64_t>(rank)) % 7) + 1;
}

double reduced(int32_t how, int32_t size, uint64_t i) {
  double result = input(0, i);
  for (int32_t rank = 1; rank < size; ++rank) {
    double value = input(rank, i);
    if (how == TENON_REDUCE_PROD) result *= value;
    if (how == TENON_REDUCE_MIN) result = std::min(result, value);
    if (how == TENON_REDUCE_MAX) result = std::max(result, value);
    if (how == TENON_REDUCE_SUM || how == TENON_REDUCE_MEAN) result += value;
  }
  return how == TENON_REDUCE_MEAN ? result / size : result;
}

const char* const kReductions[] = {"sum", "prod", "min", "max", "mean"};

template <class Value>
void reduce_as(Ranks& ranks, int32_t dtype, const char* name, bool is_required) {
  for (int32_t how = TENON_REDUCE_SUM; how <= TENON_REDUCE_MEAN; ++how) {
    if (how == TENON_REDUCE_MEAN && std::is_integral_v<Value>) continue;
    for (bool scatter : {false, true})
      ranks.each(
          text(scatter ? "reduce_scatter" : "all_reduce", " of ", name, ", ", kReductions[how]),
          [&](Rank& rank) {
            uint64_t parts = scatter ? static_cast<uint64_t>(rank.size) : 1;
            std::vector<Value> mine(kCount * parts);
            for (uint64_t i = 0; i < mine.size(); ++i)
              mine[i] = static_cast<Value>(input(rank.rank, i));
            Buffer src = upload(*rank.device, mine);
            Buffer dst = rank.device->alloc(kCount * sizeof(Value));
            auto call = scatter ? rank.api->reduce_scatter : rank.api->all_reduce;
            Error error;
            tenon_status status = call(rank.device->handle(), rank.comm, src.memory(), dst.memory(),
                                       kCount, dtype, how, nullptr, error);
            if (status == TENON_UNSUPPORTED && !is_required) return;
            if (!rank.ok(status, error, "the call")) return;
            std::vector<Value> got = download<Value>(*rank.device, dst);
            uint64_t first = scatter ? kCount * static_cast<uint64_t>(rank.rank) : 0;
            for (uint64_t i = 0; i < kCount; ++i) {
              double want = reduced(how, rank.size, first + i);
              rank.expect(std::abs(double(got[i]) - want) <= 1e-5 * std::abs(want),
                          text("element ", i, ": expected ", want, ", got ", double(got[i])));
            }
            std::vector<Value> kept = download<Value>(*rank.device, src);
            rank.expect(kept == mine, "the source was changed");
          });
  }
}

void reduce(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  reduce_as<float>(ranks, TENON_DTYPE_F32, "float32", true);
  reduce_as<int32_t>(ranks, TENON_DTYPE_I32, "int32", true);
  reduce_as<int64_t>(ranks, TENON_DTYPE_I64, "int64", true);
  reduce_as<double>(ranks, TENON_DTYPE_F64, "float64", false);
}

void gather_scatter(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  ranks.each("all_gather of uint8", [](Rank& rank) {
    std::vector<unsigned char> mine = pattern(kCount, static_cast<uint32_t>(rank.rank));
    Buffer src = upload(*rank.device, mine);
    Buffer dst = rank.device->alloc(kCount * static_cast<uint64_t>(rank.size));
    Error error;
    tenon_status status =
        rank.api->all_gather(rank.device->handle(), rank.comm, src.memory(), dst.memory(), kCount,
                             TENON_DTYPE_U8, nullptr, error);
    if (!rank.ok(status, error, "all_gather")) return;
    Bytes got = download<unsigned char>(*rank.device, dst), want;
    for (int32_t other = 0; other < rank.size; ++other) {
      Bytes part = pattern(kCount, static_cast<uint32_t>(other));
      want.insert(want.end(), part.begin(), part.end());
    }
    rank.expect(got == want, first_difference(want, got));
  });
}

void broadcast(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  for (int32_t root = 0; root < ranks.size(); ++root)
    ranks.each(text("broadcast from rank ", root), [&](Rank& rank) {
      std::vector<float> mine(kCount, static_cast<float>(rank.rank + 1));
      Buffer buffer = upload(*rank.device, mine);
      Error error;
      tenon_status status = rank.api->broadcast(rank.device->handle(), rank.comm, buffer.memory(),
                                                kCount, TENON_DTYPE_F32, root, nullptr, error);
      if (!rank.ok(status, error, "broadcast")) return;
      for (float value : download<float>(*rank.device, buffer))
        rank.expect(value == static_cast<float>(root + 1),
                    text("expected ", root + 1, ", got ", value));
    });
}

void send_recv(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  if (ranks.size() < 2) session.absent("a single rank has no other rank to send to");
  ranks.each("send to the next rank, recv from the one before", [](Rank& rank) {
    int32_t next = (rank.rank + 1) % rank.size, before = (rank.rank + rank.size - 1) % rank.size;
    Bytes mine = pattern(kCount, static_cast<uint32_t>(rank.rank));
    Buffer out = upload(*rank.device, mine), in = rank.device->alloc(kCount);
    Error error;
    auto send = [&] {
      return rank.ok(rank.api->send(rank.device->handle(), rank.comm, out.memory(), kCount,
                                    TENON_DTYPE_U8, next, nullptr, error),
                     error, "send");
    };
    auto recv = [&] {
      return rank.ok(rank.api->recv(rank.device->handle(), rank.comm, in.memory(), kCount,
                                    TENON_DTYPE_U8, before, nullptr, error),
                     error, "recv");
    };
    // Either may wait for the other side: rank 0 starts the round.
    if (!(rank.rank == 0 ? send() && recv() : recv() && send())) return;
    Bytes got = download<unsigned char>(*rank.device, in);
    Bytes want = pattern(kCount, static_cast<uint32_t>(before));
    rank.expect(got == want, first_difference(want, got));
  });
}

void abort(Session& session) {
  Plugin plugin(session);
  Ranks ranks(plugin);
  if (ranks.size() < 2) session.absent("a single rank has no other rank to wait for");
  ranks.each("comm_abort while a rank waits in recv: ABORTED", [](Rank& rank) {
    if (rank.rank != 0) {  // no rank sends; the communicators of the other ranks end, too
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      rank.api->comm_abort(rank.device->handle(), rank.comm);
      return;
    }
    Buffer in = rank.device->alloc(kCount);
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      rank.api->comm_abort(rank.device->handle(), rank.comm);
    });
    Error error;
    tenon_status status = rank.api->recv(rank.device->handle(), rank.comm, in.memory(), kCount,
                                         TENON_DTYPE_U8, 1, nullptr, error);
    if (status == TENON_OK) status = rank.device->api().sync(rank.device->handle(), nullptr, error);
    aborter.join();
    rank.expect(status == TENON_ABORTED,
                "expected code 10 (ABORTED), got " + describe(status, error));
  });
}

}  // namespace

const Checks& collective_checks() {
  static const char kNeeds[] = "lifecycle.sync memory.copy_grid async.null_stream";
  static const Checks checks = {
      {"collective.reduce", "all_reduce and reduce_scatter compute what their names say.",
       "abi.h section 5, tenon_collective_api", "", kNeeds, reduce},
      {"collective.gather_scatter", "all_gather puts parts in the order of ranks.",
       "abi.h section 5, all_gather", "", kNeeds, gather_scatter},
      {"collective.broadcast", "broadcast spreads the root's values.", "abi.h section 5, broadcast",
       "", kNeeds, broadcast},
      {"collective.send_recv", "What one rank sends another receives.", "abi.h section 5, send", "",
       kNeeds, send_recv},
      {"collective.abort", "comm_abort ends calls that wait.", "abi.h section 5, comm_abort",
       "let everything that waits look for an abort", kNeeds, abort},
  };
  return checks;
}

}  // namespace tenon::kit
