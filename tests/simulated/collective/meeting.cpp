// SPDX-License-Identifier: Apache-2.0
#include "meeting.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace simulated {

struct Meeting::Shared {
  std::atomic<int32_t> size;  // 0: no rank has joined yet
  std::atomic<uint32_t> present, arrived, generation;
  std::atomic<int32_t> process[kMaxRanks];
  Agreement agreements[kMaxRanks];
};

struct Meeting::Mail {
  std::atomic<uint32_t> full;
  char data[kMailBytes];
};

namespace {

constexpr char kMagic[8] = {'s', 'i', 'm', 'c', 'o', 'm', 'm', '1'};
constexpr uint64_t kHeadBytes = 4096;
constexpr uint64_t kMailStride = Meeting::kMailBytes + 64;
constexpr uint64_t kFileBytes = kHeadBytes + Meeting::kMaxRanks * Meeting::kSlotBytes +
                                Meeting::kMaxRanks * Meeting::kMaxRanks * kMailStride;  // sparse

}  // namespace

bool Meeting::create(MeetingName* out) {
  // Open as long as the process lives, so that ranks may join at any time.
  const int file = memfd_create("simulated-comm", MFD_CLOEXEC);
  struct stat about;
  if (file < 0 || ftruncate(file, kFileBytes) != 0 || fstat(file, &about) != 0) return false;
  std::memcpy(out->magic, kMagic, sizeof kMagic);
  out->process = getpid();
  out->file = file;
  out->inode = about.st_ino;
  return true;
}

std::shared_ptr<Meeting> Meeting::join(const MeetingName& name, int rank, int size,
                                       uint64_t limit) {
  static_assert(sizeof(Shared) <= kHeadBytes && sizeof(Mail) <= kMailStride);
  if (std::memcmp(name.magic, kMagic, sizeof kMagic) != 0) return nullptr;
  if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  char target[64] = {};
  if (readlink(path.c_str(), target, sizeof target - 1) < 0 ||
      !std::string_view(target).starts_with("/memfd:simulated-comm"))
    return nullptr;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat about;
  if (file < 0) return nullptr;
  const bool same = fstat(file, &about) == 0 && about.st_ino == name.inode;
  void* memory =
      same ? mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0)
           : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  std::shared_ptr<Meeting> meeting(new Meeting);
  meeting->shared_ = static_cast<Shared*>(memory);
  meeting->rank_ = rank;
  meeting->size_ = size;
  meeting->limit_ = limit;
  Shared& shared = *meeting->shared_;
  int32_t agreed = 0;
  if (!shared.size.compare_exchange_strong(agreed, size) && agreed != size) return nullptr;
  shared.process[rank] = getpid();
  const uint32_t bit = 1u << rank;
  if (shared.present.fetch_or(bit) & bit) return nullptr;  // the rank is taken
  const uint32_t all = (1u << size) - 1;
  return meeting->wait_until([&] { return shared.present == all; }) ? meeting : nullptr;
}

Meeting::~Meeting() { munmap(shared_, kFileBytes); }

char* Meeting::slot(int rank) const {
  return reinterpret_cast<char*>(shared_) + kHeadBytes + static_cast<uint64_t>(rank) * kSlotBytes;
}

Meeting::Mail& Meeting::mail(int from, int to) const {
  return *reinterpret_cast<Mail*>(slot(kMaxRanks) +
                                  static_cast<uint64_t>(from * kMaxRanks + to) * kMailStride);
}

// Ranks are often threads of one machine with few processors: short waits yield, long ones sleep.
bool Meeting::wait_until(const std::function<bool()>& condition) {
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; !aborted_; ++turn) {
    if (condition()) return true;
    if (turn < 50) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 1000 ? 20 : 500));
    if (limit_ && std::chrono::steady_clock::now() - begin > std::chrono::seconds(limit_)) {
      trouble_ = kTimeout;
      return false;
    }
    if (turn % 500 != 0) continue;
    for (int rank = 0; rank < size_; ++rank) {
      const int32_t process = shared_->process[rank];
      if (process && kill(process, 0) != 0 && errno == ESRCH) trouble_ = kRemote;
    }
  }
  return false;
}

bool Meeting::barrier() {
  const uint32_t generation = shared_->generation;
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(size_)) {
    shared_->arrived = 0;
    shared_->generation.fetch_add(1);
    return !aborted_;
  }
  return wait_until([&] { return shared_->generation != generation; });
}

bool Meeting::agree(const Agreement& mine) {
  shared_->agreements[rank_] = mine;
  if (!barrier()) return false;
  bool same = true;
  for (int rank = 0; rank < size_; ++rank) same &= shared_->agreements[rank] == mine;
  if (!barrier()) return false;
  if (same) return true;
  std::fprintf(
      stderr,
      "simulated: rank %d: the ranks call different collectives, or with different counts, "
      "types or roots\n",
      rank_);
  trouble_ = kDisagreement;
  return false;
}

bool Meeting::put_mail(int to, const char* data, uint64_t bytes) {
  Mail& box = mail(rank_, to);
  if (box.full) return false;
  std::memcpy(box.data, data, bytes);
  box.full = 1;
  return true;
}

bool Meeting::take_mail(int from, char* data, uint64_t bytes) {
  Mail& box = mail(from, rank_);
  if (!box.full) return false;
  std::memcpy(data, box.data, bytes);
  box.full = 0;
  return true;
}

bool Meeting::is_taken(int to) const { return !mail(rank_, to).full; }

}  // namespace simulated
