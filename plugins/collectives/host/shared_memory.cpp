// SPDX-License-Identifier: Apache-2.0
// Links between ranks of one machine: a ring of bytes for each pair and direction, and a doorbell for each rank.
//
// The memory has a name only until all ranks have mapped it. It begins as zeros, which is the state of an empty ring
// and of a doorbell that has not been rung, so that no rank has to initialise it.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <tenon/error.hpp>

#include "group/links.hpp"
#include "host/futex.hpp"

namespace tenon::collectives {
namespace {

struct Place {  // of a rank
  alignas(64) Doorbell bell;
  std::atomic<uint32_t> has_come;
};

struct Ring {
  alignas(64) std::atomic<uint64_t> written;  // bytes, ever; of the rank that writes
  alignas(64) std::atomic<uint64_t> read;     // of the rank that reads
  std::atomic<uint32_t> writer_sleeps;        // until there is room
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Smaller for many ranks, as there is a ring for each pair and direction: 16 MiB for all of them up to 32 ranks.
size_t ring_bytes(size_t size) {
  return std::clamp(std::bit_floor((size_t{16} << 20) / (size * (size - 1))), size_t{16} << 10,
                    size_t{1} << 20);
}

class SharedMemory : public Links {
 public:
  SharedMemory(Meeting& meeting, const std::string& path, const std::vector<int32_t>& ranks,
               int32_t rank)
      : meeting_(meeting),
        ranks_(ranks),
        rank_(static_cast<size_t>(rank)),
        size_(ranks.size()),
        room_(ring_bytes(size_)),
        name_("/tenon-" + meeting.token() + "-" + path) {
    map();
    meeting_.add_sleeper(this);
    try {
      meet();
    } catch (...) {
      close();
      throw;
    }
    shm_unlink(name_.c_str());
  }
  ~SharedMemory() override { close(); }

  size_t try_write(int32_t peer, const void* data, size_t size) override {
    Ring& ring = this->ring(rank_, static_cast<size_t>(peer));
    const uint64_t written = ring.written.load(std::memory_order_relaxed);
    uint64_t room = room_ - held(written, ring.read.load(std::memory_order_acquire));
    if (room == 0) {
      ring.writer_sleeps.store(1, std::memory_order_seq_cst);
      room = room_ - held(written, ring.read.load(std::memory_order_seq_cst));
      if (room == 0) return 0;
    }
    const size_t count = std::min<uint64_t>(room, size), start = written % room_;
    const size_t first = std::min(count, room_ - start);
    char* bytes = this->bytes(ring);
    memcpy(bytes + start, data, first);
    memcpy(bytes, static_cast<const char*>(data) + first, count - first);
    ring.written.store(written + count, std::memory_order_release);
    return count;
  }

  size_t try_read(int32_t peer, void* data, size_t size) override {
    Ring& ring = this->ring(static_cast<size_t>(peer), rank_);
    const uint64_t read = ring.read.load(std::memory_order_relaxed);
    const uint64_t there = held(ring.written.load(std::memory_order_acquire), read);
    const size_t count = std::min<uint64_t>(there, size), start = read % room_;
    if (count == 0) return 0;
    const size_t first = std::min(count, room_ - start);
    const char* bytes = this->bytes(ring);
    memcpy(data, bytes + start, first);
    memcpy(static_cast<char*>(data) + first, bytes, count - first);
    ring.read.store(read + count, std::memory_order_seq_cst);
    if (ring.writer_sleeps.load(std::memory_order_seq_cst)) {
      ring.writer_sleeps.store(0, std::memory_order_relaxed);
      place(static_cast<size_t>(peer)).bell.ring();
    }
    return count;
  }

  bool has_ended(int32_t) const override { return true; }  // memory does not arrive late
  size_t room() const override { return room_; }
  void tell(int32_t peer) override { place(static_cast<size_t>(peer)).bell.ring(); }
  uint32_t look() override { return place(rank_).bell.look(); }
  void sleep(uint32_t looked, const std::vector<int32_t>&, const std::vector<int32_t>&,
             uint64_t deadline) override {
    place(rank_).bell.sleep(looked, deadline);
  }
  void wake() override { place(rank_).bell.ring(); }

 private:
  Place& place(size_t rank) { return reinterpret_cast<Place*>(memory_)[rank]; }
  Ring& ring(size_t from, size_t to) {
    return *reinterpret_cast<Ring*>(memory_ + size_ * sizeof(Place) +
                                    (from * (size_ - 1) + (to < from ? to : to - 1)) *
                                        (sizeof(Ring) + room_));
  }
  // Bytes that were written and not read. The other side may have gone mad: its count is not believed.
  uint64_t held(uint64_t written, uint64_t read) const {
    if (written - read > room_)
      throw Error(TENON_DATA_LOSS, "the memory that ranks of this machine share was overwritten");
    return written - read;
  }
  static char* bytes(Ring& ring) { return reinterpret_cast<char*>(&ring + 1); }

  void map() {
    bytes_ = size_ * sizeof(Place) + size_ * (size_ - 1) * (sizeof(Ring) + room_);
    const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    // Every rank sets the same size. Room is taken now: a write into a full file system would be a signal later.
    int error = file < 0 ? errno : 0;
    if (!error && ftruncate(file, static_cast<off_t>(bytes_)) != 0) error = errno;
    if (!error) error = posix_fallocate(file, 0, static_cast<off_t>(bytes_));
    void* memory = MAP_FAILED;
    if (!error) memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!error && memory == MAP_FAILED) error = errno;
    if (file >= 0) ::close(file);
    if (error) {
      shm_unlink(name_.c_str());
      throw Error(TENON_OUT_OF_MEMORY,
                  "cannot share " + std::to_string(bytes_ >> 20) +
                      " MiB of memory (/dev/shm) with the other ranks: " + strerror(error));
    }
    memory_ = static_cast<char*>(memory);
  }

  void meet() {
    place(rank_).has_come.store(1, std::memory_order_seq_cst);
    for (size_t rank = 0; rank < size_; ++rank)
      if (rank != rank_) place(rank).bell.ring();
    const uint64_t deadline = deadline_after(meeting_.timeout_ns());
    for (size_t rank = 0; rank < size_; ++rank)
      for (;;) {
        const uint32_t looked = look();
        if (place(rank).has_come.load(std::memory_order_seq_cst)) break;
        meeting_.check();
        meeting_.check_interrupt();
        if (!meeting_.is_here(ranks_[rank]))
          throw Error(TENON_UNAVAILABLE,
                      meeting_.gone_text(ranks_[rank]) + "; a group with it was to be made");
        if (time_left(deadline) == 0)
          throw Error(TENON_DEADLINE_EXCEEDED, "waited " + seconds_text(meeting_.timeout_ns()) +
                                                   " for a rank to make the same group: " +
                                                   meeting_.state_text(ranks_[rank]));
        place(rank_).bell.sleep(looked, std::min(deadline, deadline_after(kSecond / 4)));
      }
  }

  void close() {
    meeting_.remove_sleeper(this);
    shm_unlink(name_.c_str());
    munmap(memory_, bytes_);
  }

  Meeting& meeting_;
  std::vector<int32_t> ranks_;
  size_t rank_, size_, room_;
  std::string name_;
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Links> make_shared_memory(Meeting& meeting, const std::string& path,
                                          const std::vector<int32_t>& ranks, int32_t rank) {
  return std::make_unique<SharedMemory>(meeting, path, ranks, rank);
}

}  // namespace tenon::collectives
