// SPDX-License-Identifier: Apache-2.0
// The group `exchange`. A device may do without it at any level.
#include <chrono>

#include "checks/ranks.hpp"

namespace tenon::kit {
namespace {

// Larger than what implementations move in one piece.
constexpr uint64_t kCount = 100'000;

void need_exchange(Plugin& plugin) { plugin.need_group<tenon_exchange_api>(TENON_GROUP_EXCHANGE); }

// How many elements rank `from` sends to rank `to`: none, few, or many.
uint64_t count_between(int32_t from, int32_t to) {
  return from == to ? 3 : static_cast<uint64_t>((from + 2 * to) % 3) * kCount;
}
unsigned char value_between(int32_t from, int32_t to) {
  return static_cast<unsigned char>(16 * from + to + 1);
}

void transfer(Session& session) {
  Plugin plugin(session);
  need_exchange(plugin);
  Ranks ranks(plugin);
  ranks.each("every rank sends to every rank, itself included, another number of elements",
             [](Rank& rank) {
               std::vector<Buffer> buffers;
               std::vector<tenon_transfer> transfers;
               const auto add = [&](uint32_t kind, int32_t peer, const Bytes& bytes) {
                 buffers.push_back(rank.device->alloc(std::max<uint64_t>(bytes.size(), 1)));
                 if (!bytes.empty())
                   rank.device->put(buffers.back(), 0, bytes.data(), bytes.size());
                 transfers.push_back({kind, peer, buffers.back().memory(), bytes.size()});
               };
               for (int32_t peer = 0; peer < rank.size; ++peer)
                 add(TENON_TRANSFER_SEND, peer,
                     Bytes(count_between(rank.rank, peer), value_between(rank.rank, peer)));
               for (int32_t peer = rank.size; peer-- > 0;)  // another order than that of the sends
                 add(TENON_TRANSFER_RECV, peer, Bytes(count_between(peer, rank.rank), 0));
               Error error;
               const tenon_status status = rank.exchange->transfer(
                   rank.device->handle(), rank.comm, transfers.data(),
                   static_cast<uint32_t>(transfers.size()), TENON_DTYPE_U8, nullptr, error);
               if (!rank.ok(status, error, "transfer")) return;
               rank.device->sync();
               for (size_t i = static_cast<size_t>(rank.size); i < transfers.size(); ++i) {
                 Bytes got(transfers[i].count);
                 if (!got.empty()) rank.device->get(got.data(), buffers[i], 0, got.size());
                 const int32_t peer = transfers[i].peer;
                 const Bytes want(got.size(), value_between(peer, rank.rank));
                 rank.expect(got == want,
                             text("from rank ", peer, ": ", first_difference(want, got)));
               }
             });
  ranks.each("two messages between the same ranks keep their order", [](Rank& rank) {
    const int32_t next = (rank.rank + 1) % rank.size;
    const int32_t before = (rank.rank + rank.size - 1) % rank.size;
    Buffer out = rank.device->alloc(2 * kCount), in = rank.device->alloc(2 * kCount);
    Bytes mine(2 * kCount, 1);
    std::fill(mine.begin() + kCount, mine.end(), static_cast<unsigned char>(2));
    rank.device->put(out, 0, mine.data(), mine.size());
    const auto half = [](Buffer& buffer, uint64_t i) {
      return static_cast<char*>(buffer.memory()) + i * kCount;
    };
    const tenon_transfer transfers[] = {{TENON_TRANSFER_SEND, next, half(out, 0), kCount},
                                        {TENON_TRANSFER_SEND, next, half(out, 1), kCount},
                                        {TENON_TRANSFER_RECV, before, half(in, 0), kCount},
                                        {TENON_TRANSFER_RECV, before, half(in, 1), kCount}};
    Error error;
    if (!rank.ok(rank.exchange->transfer(rank.device->handle(), rank.comm, transfers, 4,
                                         TENON_DTYPE_U8, nullptr, error),
                 error, "transfer"))
      return;
    rank.device->sync();
    Bytes got(2 * kCount);
    rank.device->get(got.data(), in, 0, got.size());
    rank.expect(got == mine, first_difference(mine, got));
  });
}

void reduce(Session& session) {
  Plugin plugin(session);
  need_exchange(plugin);
  Ranks ranks(plugin);
  for (int32_t each = 0; each < 2 * ranks.size(); ++each) {
    const int32_t root = each / 2;
    const bool in_place = each % 2 == 1;  // on the root, whose result takes the place of its source
    const std::string what = text("the sum goes to rank ", root, " alone");
    ranks.each(what + (in_place ? ", in place" : ""), [&](Rank& rank) {
      const std::vector<float> mine(kCount, static_cast<float>(rank.rank + 1));
      const std::vector<float> untouched(kCount, -1);
      const uint64_t bytes = kCount * sizeof(float);
      Buffer src = rank.device->alloc(bytes), dst = rank.device->alloc(bytes);
      rank.device->put(src, 0, mine.data(), bytes);
      rank.device->put(dst, 0, untouched.data(), bytes);
      Buffer& result = in_place && rank.rank == root ? src : dst;
      Error error;
      if (!rank.ok(rank.exchange->reduce(rank.device->handle(), rank.comm, src.memory(),
                                         result.memory(), kCount, TENON_DTYPE_F32, TENON_REDUCE_SUM,
                                         root, nullptr, error),
                   error, "reduce"))
        return;
      rank.device->sync();
      std::vector<float> got(kCount);
      rank.device->get(got.data(), result, 0, bytes);
      const float want =
          rank.rank == root ? static_cast<float>(rank.size * (rank.size + 1) / 2) : -1;
      for (float value : got) rank.expect(value == want, text("expected ", want, ", got ", value));
    });
  }
}

// The sum of the ranks' numbers in `comm`.
double sum_in(Rank& rank, tenon_comm comm) {
  const auto mine = static_cast<float>(rank.rank + 1);
  Buffer buffer = rank.device->alloc(sizeof mine);
  rank.device->put(buffer, 0, &mine, sizeof mine);
  Error error;
  if (!rank.ok(rank.api->all_reduce(rank.device->handle(), comm, buffer.memory(), buffer.memory(),
                                    1, TENON_DTYPE_F32, TENON_REDUCE_SUM, nullptr, error),
               error, "all_reduce"))
    return 0;
  rank.device->sync();
  float got = 0;
  rank.device->get(&got, buffer, 0, sizeof got);
  return double(got);
}

// With few ranks all are in one part, so that the part has an order.
int32_t part_of(const Rank& rank, int32_t which) { return rank.size < 4 ? 0 : which % 2; }

void split(Session& session) {
  Plugin plugin(session);
  need_exchange(plugin);
  Ranks ranks(plugin);
  ranks.each("parts in reversed order; the old communicator still works", [](Rank& rank) {
    Error error;
    tenon_comm part = nullptr;
    if (!rank.ok(rank.exchange->comm_split(rank.device->handle(), rank.comm,
                                           part_of(rank, rank.rank), -rank.rank, &part, error),
                 error, "comm_split"))
      return;
    double want = 0, all = 0;
    int32_t last = 0;  // which is the first of the part
    for (int32_t other = 0; other < rank.size; ++other) {
      all += other + 1;
      if (part_of(rank, other) != part_of(rank, rank.rank)) continue;
      want += other + 1;
      last = other;
    }
    double got = sum_in(rank, part);
    rank.expect(got == want, text("the part's sum: expected ", want, ", got ", got));
    // Rank 0 of the part is the one with the smallest key.
    auto first = static_cast<float>(rank.rank);
    Buffer buffer = rank.device->alloc(sizeof first);
    rank.device->put(buffer, 0, &first, sizeof first);
    if (!rank.ok(rank.api->broadcast(rank.device->handle(), part, buffer.memory(), 1,
                                     TENON_DTYPE_F32, 0, nullptr, error),
                 error, "broadcast"))
      return;
    rank.device->sync();
    rank.device->get(&first, buffer, 0, sizeof first);
    rank.expect(first == static_cast<float>(last),
                text("rank 0 of the part: expected rank ", last, ", got ", first));
    rank.api->comm_destroy(rank.device->handle(), part);
    got = sum_in(rank, rank.comm);
    rank.expect(got == all, text("the whole's sum: expected ", all, ", got ", got));
  });
  ranks.each("a negative color takes part in none", [](Rank& rank) {
    Error error;
    auto* const unset = reinterpret_cast<tenon_comm>(1);
    tenon_comm part = unset;
    const int32_t color = rank.rank == 0 ? -1 : 5;
    if (!rank.ok(
            rank.exchange->comm_split(rank.device->handle(), rank.comm, color, 0, &part, error),
            error, "comm_split"))
      return;
    rank.expect(part != unset, "`out` was not written");
    rank.expect((part == nullptr) == (color < 0), "a communicator exactly if color >= 0");
    if (part) rank.api->comm_destroy(rank.device->handle(), part);
  });
}

void error(Session& session) {
  Plugin plugin(session);
  need_exchange(plugin);
  Ranks ranks(plugin);
  ranks.each("OK before, ABORTED after comm_abort", [](Rank& rank) {
    Error error;
    rank.ok(rank.exchange->comm_error(rank.device->handle(), rank.comm, error), error,
            "comm_error");
    // Every rank has asked, and has left the sum, before one of them aborts.
    if (sum_in(rank, rank.comm) == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rank.api->comm_abort(rank.device->handle(), rank.comm);
    const tenon_status status = rank.exchange->comm_error(rank.device->handle(), rank.comm, error);
    rank.expect(status == TENON_ABORTED,
                "expected code 10 (ABORTED), got " + describe(status, error));
  });
}

}  // namespace

const Checks& exchange_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_grid collective.reduce collective.broadcast";
  static const Checks checks = {
      {"exchange.transfer", "Transfers of one call make progress together.",
       "abi.h section 5, tenon_exchange_api.transfer",
       "start all of them before waiting for one; with NCCL, between ncclGroupStart and "
       "ncclGroupEnd",
       kNeeds, transfer},
      {"exchange.reduce", "reduce writes the root's result and no other.",
       "abi.h section 5, tenon_exchange_api.reduce", "", kNeeds, reduce},
      {"exchange.split", "comm_split makes communicators by color, in the order of keys.",
       "abi.h section 5, comm_split", "", kNeeds, split},
      {"exchange.error", "comm_error tells of an abort without waiting.",
       "abi.h section 5, comm_error", "", kNeeds, error},
  };
  return checks;
}

}  // namespace tenon::kit
