// SPDX-License-Identifier: Apache-2.0
// The shared memory of a communicator: a file in memory that every rank maps, in one process or in
// several, with a barrier, a slot of data for each rank, and a mailbox for each pair of ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace simulated {

// What a unique id holds.
struct MeetingName {
  char magic[8];
  int32_t process, file;
  uint64_t inode;
};

// What a rank is about to do; all of them must say the same.
struct Agreement {
  uint32_t kind, type, reduction, root;
  uint64_t count;
  bool operator==(const Agreement&) const = default;
};

class Meeting {
 public:
  static constexpr int kMaxRanks = 16;
  static constexpr uint64_t kSlotBytes = 256 << 10;
  static constexpr uint64_t kMailBytes = 64 << 10;

  static bool create(MeetingName* out);
  // Returns when all `size` ranks have joined; nullptr: wrong id, size or rank, or aborted.
  static std::shared_ptr<Meeting> join(const MeetingName& name, int rank, int size,
                                       uint64_t limit = 0);
  ~Meeting();

  int rank() const { return rank_; }
  int size() const { return size_; }
  char* slot(int rank) const;

  // What waits returns false from then on, in this process; other ranks go on waiting.
  void abort() { aborted_ = true; }
  bool aborted() const { return aborted_; }
  // What waits longer than so many seconds returns false, too. 0: there is no limit.
  void limit_waits(uint64_t seconds) { limit_ = seconds; }
  // Set while waiting for a rank whose process has ended, by ranks that disagree, and at the limit.
  enum Trouble { kNone, kRemote, kDisagreement, kTimeout };
  Trouble trouble() const { return trouble_; }

  bool barrier();
  // A barrier after which all ranks have said the same; otherwise false.
  bool agree(const Agreement& mine);

  // Without waiting: false if the mailbox is not empty (full).
  bool put_mail(int to, const char* data, uint64_t bytes);
  bool take_mail(int from, char* data, uint64_t bytes);
  bool is_taken(int to) const;  // whether the mailbox is empty
  bool wait_until(const std::function<bool()>& condition);

 private:
  struct Shared;
  struct Mail;
  Meeting() = default;
  Mail& mail(int from, int to) const;

  Shared* shared_ = nullptr;
  int rank_ = 0, size_ = 0;
  std::atomic<bool> aborted_{false};
  std::atomic<uint64_t> limit_{0};
  std::atomic<Trouble> trouble_{kNone};
};

}  // namespace simulated
