// SPDX-License-Identifier: Apache-2.0
// Links between ranks by MPI: to each other rank a stream of messages in a communicator of the group. The library moves
// them as it moves its own, over shared memory or the network of a cluster.
#include <sched.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <tenon/error.hpp>
#include <type_traits>

#include "control/time.hpp"
#include "group/links.hpp"
#include "mpi/library.hpp"

namespace tenon::collectives {
namespace {

constexpr size_t kSlots = 4;  // messages under way, of a pair and direction

// Of a message: smaller for many ranks, as each pair has its own memory, 8 MiB for all of a rank up to 65 ranks.
size_t message_bytes(size_t size) {
  return std::clamp(std::bit_floor((size_t{4} << 20) / (kSlots * (size - 1))), size_t{16} << 10,
                    size_t{256} << 10);
}

struct Message {
  MpiHandle request;
  size_t size = 0;
};

// One direction of a pair: messages from `first` on are under way, in order.
struct Stream {
  std::vector<char> memory;
  std::array<Message, kSlots> messages;
  size_t first = 0, count = 0;

  Message& at(size_t i) { return messages[(first + i) % kSlots]; }
  char* bytes(size_t i) { return memory.data() + (first + i) % kSlots * (memory.size() / kSlots); }
  void drop_first() {
    first = (first + 1) % kSlots;
    --count;
  }
};

struct Pair {
  Stream in, out;
  bool has_come = false;  // the first message of `in`
  size_t taken = 0;       // of its bytes
  size_t started = 0;     // bytes of `out` that the caller is not told of yet
  bool has_ended = false;
};

// What is left of links that were closed here, while other ranks may still write to them. A communicator that was freed
// would be made again with the same number, and get what was meant for the one before.
struct Remains {
  const Mpi* mpi;
  MpiHandle communicator;
  std::vector<Pair> pairs;
  size_t own;

  // Whether nothing can come or go any more.
  bool is_over() {
    bool is_over = true;
    for (size_t peer = 0; peer < pairs.size(); ++peer) {
      if (peer == own) continue;
      Pair& pair = pairs[peer];
      while (pair.out.count > 0 && mpi->test(pair.out.at(0).request, nullptr))
        pair.out.drop_first();
      while (!pair.has_ended && pair.in.count > 0) {
        size_t bytes = 0;
        if (!pair.has_come && !mpi->test(pair.in.at(0).request, &bytes)) break;
        if (!pair.has_come && bytes == 0) pair.has_ended = true;
        pair.has_come = false;
        pair.in.drop_first();
      }
      is_over = is_over && pair.has_ended && pair.out.count == 0;
    }
    return is_over;
  }
  void cancel() {
    for (size_t peer = 0; peer < pairs.size(); ++peer)
      for (Stream& in = pairs[peer].in; in.count > 0; in.drop_first())
        mpi->cancel(in.at(0).request);
  }
  void free() {
    cancel();
    mpi->free_communicator(communicator);
  }
};

std::mutex remains_mutex;
std::vector<Remains>& remains() {
  static std::vector<Remains>& all = *new std::vector<Remains>;  // until the process ends
  return all;
}
void free_what_is_over() {
  std::lock_guard lock(remains_mutex);
  std::erase_if(remains(), [](Remains& one) {
    if (!one.is_over()) return false;
    one.free();
    return true;
  });
}

// Before the library is finalised, which complains of messages that were not received and of memory that it still has. The
// last messages of ranks that end, too, are on their way; finalising would wait for these ranks in any case.
void end_what_is_left() {
  try {
    const uint64_t deadline = deadline_after(kSecond);
    const auto is_over = [](Remains& one) { return one.is_over(); };
    while (!std::all_of(remains().begin(), remains().end(), is_over) && time_left(deadline) > 0) {
      const timespec pause = {0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    for (Remains& one : remains()) one.cancel();
  } catch (const Error&) {
    abandon_mpi();
  }
}

class MpiLinks : public Links {
 public:
  MpiLinks(Meeting& meeting, const std::string& path, const std::vector<int32_t>& ranks,
           int32_t rank)
      : meeting_(meeting),
        mpi_(mpi(meeting.size())),
        own_(static_cast<size_t>(rank)),
        bytes_(message_bytes(ranks.size())),
        pairs_(ranks.size()) {
    [[maybe_unused]] static const bool is_registered = (before_mpi_ends(end_what_is_left), true);
    free_what_is_over();
    meet(path, ranks);
    communicator_ = mpi_.create_communicator(ranks);
    for (size_t peer = 0; peer < pairs_.size(); ++peer) {
      if (peer == own_) continue;
      pairs_[peer].in.memory.resize(kSlots * bytes_);
      pairs_[peer].out.memory.resize(kSlots * bytes_);
      for (size_t i = 0; i < kSlots; ++i) receive(peer);
    }
    meeting_.add_sleeper(this);
  }
  ~MpiLinks() override {
    meeting_.remove_sleeper(this);
    try {
      close();
    } catch (const Error&) {
      abandon_mpi();
    }
  }

  // The bytes count as written once the library has them all: until then it moves them only while it is called, and the
  // rank may not call it again for long.
  size_t try_write(int32_t peer, const void* data, size_t size) override {
    Pair& pair = pairs_[static_cast<size_t>(peer)];
    return watched([&] {
      Stream& out = pair.out;
      while (out.count < kSlots && pair.started < size) {
        const size_t part = std::min(bytes_, size - pair.started);
        memcpy(out.bytes(out.count), static_cast<const char*>(data) + pair.started, part);
        out.at(out.count) = {mpi_.send(out.bytes(out.count), part, peer, communicator_), part};
        ++out.count;
        pair.started += part;
      }
      size_t done = 0;
      while (out.count > 0 && mpi_.test(out.at(0).request, nullptr)) {
        done += out.at(0).size;
        out.drop_first();
      }
      pair.started -= done;
      return done;
    });
  }

  size_t try_read(int32_t peer, void* data, size_t size) override {
    const auto place = static_cast<size_t>(peer);
    Pair& pair = pairs_[place];
    return watched([&] {
      size_t done = 0;
      while (done < size && has_message(pair)) {
        const Message& message = pair.in.at(0);
        const size_t part = std::min(size - done, message.size - pair.taken);
        memcpy(static_cast<char*>(data) + done, pair.in.bytes(0) + pair.taken, part);
        done += part;
        pair.taken += part;
        if (pair.taken < message.size) break;
        pair.in.drop_first();
        pair.has_come = false;
        pair.taken = 0;
        receive(place);
      }
      return done;
    });
  }

  // An empty message is the last one: what was sent before it may come behind the news that the rank has left.
  bool has_ended(int32_t peer) const override {
    return pairs_[static_cast<size_t>(peer)].has_ended;
  }
  size_t room() const override { return kSlots * bytes_; }
  void tell(int32_t) override {}
  uint32_t look() override { return wakes_.load(std::memory_order_acquire); }
  // MPI has no call that waits without spinning, and none that another thread could end. So the rank looks again and
  // again, lets others run in between, and looks less often the longer nothing comes.
  void sleep(uint32_t looked, const std::vector<int32_t>& readers,
             const std::vector<int32_t>& writers, uint64_t deadline) override {
    const uint64_t begin = now_ns();
    watched([&] {
      while (look() == looked && !can_move(readers, writers)) {
        const uint64_t now = now_ns();
        if (now >= deadline) break;
        if (now - begin < kSpinning) {
          sched_yield();
          continue;
        }
        const timespec pause = {0,
                                static_cast<long>(std::clamp((now - begin) / 16, kShort, kLong))};
        nanosleep(&pause, nullptr);
      }
    });
  }
  void wake() override { wakes_.fetch_add(1, std::memory_order_release); }

 private:
  static constexpr uint64_t kSpinning = 200'000, kShort = 20'000, kLong = 1'000'000;  // ns

  // A failure of the library ends the group on all ranks: their streams would miss bytes.
  template <class Work>
  std::invoke_result_t<Work> watched(const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      meeting_.fail(TENON_COLLECTIVE_ABORTED,
                    "rank " + std::to_string(meeting_.rank()) + ": " + error.what());
      meeting_.check();
      throw;
    }
  }

  // With time limits, and the names of who is missing: making a communicator has neither.
  void meet(const std::string& path, const std::vector<int32_t>& ranks) {
    const uint64_t deadline = deadline_after(meeting_.timeout_ns());
    const int32_t first = *std::min_element(ranks.begin(), ranks.end());
    char here = 1;
    if (meeting_.rank() != first)
      return meeting_.connect_data(first, path, deadline).read(&here, 1, deadline);
    std::vector<Socket> sockets;
    for (const int32_t rank : ranks)
      if (rank != first) sockets.push_back(meeting_.await_data(rank, path, deadline));
    for (const Socket& socket : sockets) socket.write(&here, 1, deadline);
  }

  void receive(size_t peer) {
    Stream& in = pairs_[peer].in;
    in.at(in.count) = {
        mpi_.receive(in.bytes(in.count), bytes_, static_cast<int32_t>(peer), communicator_), 0};
    ++in.count;
  }

  bool has_message(Pair& pair) {
    if (pair.has_come || pair.has_ended) return pair.has_come;
    if (!mpi_.test(pair.in.at(0).request, &pair.in.at(0).size)) return false;
    if (pair.in.at(0).size > 0) return pair.has_come = true;
    pair.has_ended = true;
    pair.in.drop_first();
    return false;
  }

  bool can_move(const std::vector<int32_t>& readers, const std::vector<int32_t>& writers) {
    for (const int32_t peer : readers)
      if (has_message(pairs_[static_cast<size_t>(peer)])) return true;
    for (const int32_t peer : writers) {
      Stream& out = pairs_[static_cast<size_t>(peer)].out;
      // A request that is done stays so: try_write finds it.
      if (out.count > 0 && mpi_.test(out.at(0).request, nullptr)) return true;
    }
    return false;
  }

  void close() {
    if (meeting_.is_forked() || meeting_.has_failed()) {
      if (!meeting_.is_forked()) abandon_mpi();
      new std::vector<Pair>(
          std::move(pairs_));  // kept for ever: the library may still use the memory
      return;
    }
    for (size_t peer = 0; peer < pairs_.size(); ++peer) {
      if (peer == own_) continue;
      Stream& out = pairs_[peer].out;
      out.at(out.count) = {
          mpi_.send(out.memory.data(), 0, static_cast<int32_t>(peer), communicator_), 0};
      ++out.count;
    }
    {
      std::lock_guard lock(remains_mutex);
      remains().push_back({&mpi_, communicator_, std::move(pairs_), own_});
    }
    free_what_is_over();
  }

  Meeting& meeting_;
  const Mpi& mpi_;
  size_t own_, bytes_;
  MpiHandle communicator_;
  std::vector<Pair> pairs_;
  std::atomic<uint32_t> wakes_ = 0;
};

}  // namespace

std::unique_ptr<Links> make_mpi(Meeting& meeting, const std::string& path,
                                const std::vector<int32_t>& ranks, int32_t rank) {
  return std::make_unique<MpiLinks>(meeting, path, ranks, rank);
}

}  // namespace tenon::collectives
