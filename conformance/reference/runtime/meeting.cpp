// SPDX-License-Identifier: Apache-2.0
#include "meeting.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

namespace reference {

// Lock-free atomics are the one means of synchronisation that works between processes, needs
// nothing to be set up, and survives a rank that dies while it holds it.
struct Meeting::Shared {
  std::atomic<int32_t> size;  // 0: no rank has joined yet
  std::atomic<uint64_t> present;
  std::atomic<uint32_t> arrived, generation, aborted;
};
struct Meeting::Letter {
  std::atomic<uint32_t> full;
  uint64_t total;
  char data[Meeting::kSlotBytes];
};

namespace {

constexpr uint64_t kHeadBytes = 4096;
constexpr uint64_t kLetterBytes = 64 + Meeting::kSlotBytes;
constexpr uint64_t kFileBytes = kHeadBytes + Meeting::kMaxRanks * Meeting::kSlotBytes +
                                Meeting::kMaxRanks * Meeting::kMaxRanks * kLetterBytes;  // sparse
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Files of ids that were made here and whose ranks are not all there yet.
struct OpenFiles {
  std::mutex mutex;
  std::set<int> descriptors;
  ~OpenFiles() {
    for (int descriptor : descriptors) close(descriptor);
  }
} open_files;

void close_if_ours(const MemoryFile& file) {
  if (file.process != getpid()) return;
  std::lock_guard lock(open_files.mutex);
  if (open_files.descriptors.erase(file.descriptor)) close(file.descriptor);
}

}  // namespace

bool Meeting::create(MemoryFile* out) {
  const int file = memfd_create("tenon-reference-meeting", MFD_CLOEXEC);
  if (file < 0) return false;
  if (ftruncate(file, kFileBytes) != 0 || !name_memory_file(file, out)) {
    close(file);
    return false;
  }
  std::lock_guard lock(open_files.mutex);
  open_files.descriptors.insert(file);
  return true;
}

void Meeting::drop(const MemoryFile& file) { close_if_ours(file); }

std::shared_ptr<Meeting> Meeting::join(const MemoryFile& name, int32_t rank, int32_t size,
                                       const char** why) {
  *why = "expected an id from comm_id_create whose communicator is not complete yet";
  uint64_t bytes = 0;
  const int file = open_memory_file(name, &bytes);
  if (file < 0) return nullptr;
  void* memory = bytes == kFileBytes ? mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_NORESERVE, file, 0)
                                     : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  std::shared_ptr<Meeting> meeting(new Meeting);
  meeting->shared_ = static_cast<Shared*>(memory);  // zeros are a meeting that no rank has joined
  meeting->rank_ = rank;
  meeting->size_ = size;
  Shared& shared = *meeting->shared_;
  int32_t agreed = 0;
  if (!shared.size.compare_exchange_strong(agreed, size) && agreed != size) {
    *why = "expected the same size on every rank";
    return nullptr;
  }
  const uint64_t bit = uint64_t{1} << rank;
  if (shared.present.fetch_or(bit) & bit) {
    *why = "expected every rank once; this one is taken";
    return nullptr;
  }
  *why = "the communicator was aborted";
  const uint64_t all_ranks = size == kMaxRanks ? ~uint64_t{0} : (uint64_t{1} << size) - 1;
  if (!meeting->wait_until([&] { return shared.present.load() == all_ranks; })) return nullptr;
  close_if_ours(name);
  return meeting;
}

Meeting::~Meeting() { munmap(shared_, kFileBytes); }

void Meeting::abort() { shared_->aborted = 1; }

bool Meeting::is_aborted() const { return shared_->aborted != 0; }

// Short waits spin, long ones sleep: ranks are often threads of one machine with few processors.
void Meeting::pause(int turn) {
  if (turn < 64)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 1000 ? 20 : 500));
}

bool Meeting::barrier() {
  const uint32_t generation = shared_->generation;
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(size_)) {
    shared_->arrived = 0;
    shared_->generation.fetch_add(1);
    return !shared_->aborted;
  }
  return wait_until([&] { return shared_->generation != generation; });
}

char* Meeting::slot(int32_t rank) const {
  return reinterpret_cast<char*>(shared_) + kHeadBytes + static_cast<uint64_t>(rank) * kSlotBytes;
}

Meeting::Letter& Meeting::letter(int32_t from, int32_t to) const {
  static_assert(sizeof(Letter) <= kLetterBytes);
  char* letters = slot(kMaxRanks);
  return *reinterpret_cast<Letter*>(letters +
                                    static_cast<uint64_t>(from * kMaxRanks + to) * kLetterBytes);
}

bool Meeting::put_letter(int32_t to, const char* data, uint64_t bytes, uint64_t total) {
  return wait_until([&] { return try_put_letter(to, data, bytes, total); });
}

bool Meeting::try_put_letter(int32_t to, const char* data, uint64_t bytes, uint64_t total) {
  Letter& box = letter(rank_, to);
  if (box.full != 0) return false;
  box.total = total;
  std::memcpy(box.data, data, bytes);
  box.full = 1;
  return true;
}

bool Meeting::take_letter(int32_t from, char* data, uint64_t bytes, uint64_t* theirs) {
  return wait_until([&] { return try_take_letter(from, data, bytes, theirs); });
}

bool Meeting::try_take_letter(int32_t from, char* data, uint64_t bytes, uint64_t* theirs) {
  Letter& box = letter(from, rank_);
  if (box.full != 1) return false;
  *theirs = box.total;
  std::memcpy(data, box.data, bytes);
  box.full = 0;
  return true;
}

}  // namespace reference
