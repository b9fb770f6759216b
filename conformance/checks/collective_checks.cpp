// SPDX-License-Identifier: Apache-2.0
// The group `collective`.
#include <chrono>
#include <cmath>
#include <cstring>

#include "checks/ranks.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kCount = 1000;

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

// src == dst, as the host's own callers do it; more elements than one piece of an implementation
// has.
void in_place(Session& session) {
  constexpr uint64_t kMany = 70'001;
  Plugin plugin(session);
  Ranks ranks(plugin);
  ranks.each("all_reduce with src == dst", [](Rank& rank) {
    std::vector<float> mine(kMany);
    for (uint64_t i = 0; i < kMany; ++i) mine[i] = static_cast<float>(input(rank.rank, i));
    Buffer buffer = upload(*rank.device, mine);
    Error error;
    const tenon_status status =
        rank.api->all_reduce(rank.device->handle(), rank.comm, buffer.memory(), buffer.memory(),
                             kMany, TENON_DTYPE_F32, TENON_REDUCE_SUM, nullptr, error);
    if (!rank.ok(status, error, "all_reduce")) return;
    const std::vector<float> got = download<float>(*rank.device, buffer);
    for (uint64_t i = 0; i < kMany; ++i) {
      const double want = reduced(TENON_REDUCE_SUM, rank.size, i);
      rank.expect(double(got[i]) == want,
                  text("element ", i, ": expected ", want, ", got ", double(got[i])));
    }
  });
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
      {"collective.in_place", "all_reduce takes the same memory for source and result.",
       "docs/vendors.md, questions", "", "lifecycle.sync memory.copy_grid collective.reduce",
       in_place},
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
