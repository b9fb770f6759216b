// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a communicator meet: a memory file that each of them maps, in one process or
// in several, with a barrier, a slot of data for each rank and a letter box for each pair.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "memory_file.hpp"

namespace reference {

class Meeting {
 public:
  static constexpr int32_t kMaxRanks = 64;
  static constexpr uint64_t kSlotBytes = 64 << 10;

  // A new meeting, and the comm id that names it. The file stays open until every rank has joined.
  static bool create(MemoryFile* out);
  // Gives up a meeting of ours that no rank will join.
  static void drop(const MemoryFile& file);
  // nullptr: `*why` says it. Returns when `size` ranks have joined.
  static std::shared_ptr<Meeting> join(const MemoryFile& file, int32_t rank, int32_t size,
                                       const char** why);
  ~Meeting();

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  void abort();
  // These wait for other ranks; false: aborted.
  bool barrier();
  bool put_letter(int32_t to, const char* data, uint64_t bytes, uint64_t total);
  // `total` that the sender gave must be ours; if not, `*theirs` differs.
  bool take_letter(int32_t from, char* data, uint64_t bytes, uint64_t* theirs);
  // Without waiting; false: the box is not free, or empty.
  bool try_put_letter(int32_t to, const char* data, uint64_t bytes, uint64_t total);
  bool try_take_letter(int32_t from, char* data, uint64_t bytes, uint64_t* theirs);
  // Calls `condition` until it holds; false: aborted.
  template <class Condition>
  bool wait_until(Condition condition) const {
    for (int turn = 0; !is_aborted(); ++turn) {
      if (condition()) return true;
      pause(turn);
    }
    return false;
  }
  bool is_aborted() const;

  char* slot(int32_t rank) const;

 private:
  struct Shared;
  struct Letter;
  Meeting() = default;
  static void pause(int turn);
  Letter& letter(int32_t from, int32_t to) const;

  Shared* shared_ = nullptr;
  int32_t rank_ = 0, size_ = 0;
};

}  // namespace reference
