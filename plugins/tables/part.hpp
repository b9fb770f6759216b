// SPDX-License-Identifier: Apache-2.0
// The rows of one part of a table: an open hash table of ids over records in slabs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::tables {

// Values follow.
struct Record {
  uint64_t id;
  uint64_t version;
  float show;
  float click;
  uint32_t day;
  uint32_t reserved;
  float* values() { return reinterpret_cast<float*>(this + 1); }
  const float* values() const { return reinterpret_cast<const float*>(this + 1); }
};

struct Candidate {
  float show;
  float click;
  uint32_t day;
  uint64_t version;
};

// Not locked by itself: its caller holds `mutex`.
class Part {
 public:
  explicit Part(uint32_t width)
      : record_bytes_((sizeof(Record) + width * sizeof(float) + alignof(Record) - 1) /
                      alignof(Record) * alignof(Record)) {}

  // NULL: the id has no row in memory.
  Record* find(uint64_t id, uint64_t hash);
  // A record for an id that has none; everything but the id is for the caller to set.
  Record* insert(uint64_t id, uint64_t hash);
  void erase(uint64_t id, uint64_t hash);

  uint64_t size() const { return size_; }
  uint64_t bytes() const;
  // Calls function(Record&) for all; it may not insert or erase.
  template <class Function>
  void each(Function&& function) {
    for (uint32_t slot : slots_)
      if (slot) function(*record(slot));
  }

  std::mutex mutex;
  std::unordered_map<uint64_t, Candidate> candidates;
  std::unordered_map<uint64_t, uint64_t>
      removed;  // id to version, since the table was made or loaded

 private:
  static constexpr uint32_t kSlabRecords = 256;

  Record* record(uint32_t slot) const {
    const uint32_t index = slot - 1;
    return reinterpret_cast<Record*>(slabs_[index / kSlabRecords].get() +
                                     index % kSlabRecords * record_bytes_);
  }
  // Where the id is, or the empty place where it would be.
  size_t place(uint64_t id, uint64_t hash) const;
  void grow();

  size_t record_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::vector<uint32_t> free_;   // slots of records that were erased
  std::vector<uint32_t> slots_;  // 0: empty; else the number of a record, from 1
  uint32_t used_ = 0;            // records that were ever given out
  uint64_t size_ = 0;
};

}  // namespace tenon::tables
