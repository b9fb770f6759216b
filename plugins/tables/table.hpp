// SPDX-License-Identifier: Apache-2.0
// A table: its parts, the rules by which ids get rows, and what happens to rows that are not used.
#pragma once

#include <tenon/services/tables.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cold_rows.hpp"
#include "part.hpp"

namespace tenon::tables {

class Table {
 public:
  explicit Table(const tenon_table_options& options);

  void pull(const int64_t* ids, uint64_t count, float* rows);
  uint64_t push_begin(const int64_t* ids, const float* shows, const float* clicks, uint64_t count,
                      int64_t* indices, float* values);
  void push_end(const int64_t* ids, const float* values, uint64_t count);
  void assign(const int64_t* ids, const float* rows, uint64_t count);
  void contains(const int64_t* ids, uint64_t count, uint8_t* out);
  void day_end() { ++day_; }
  uint64_t shrink(uint32_t unseen_days, float score);
  void scan(uint32_t part, uint64_t since, tenon_table_row_fn function, void* user);
  void restore(const tenon_table_row* rows, uint64_t count);
  void set_version(uint64_t version, uint64_t day);
  tenon_table_counters counters();

 private:
  uint32_t width() const { return options_.dim + options_.state_width; }
  size_t record_bytes() const { return sizeof(Record) + width() * sizeof(float); }
  Part& part(uint64_t hash) { return *parts_[hash & (TENON_TABLE_PARTS - 1)]; }

  // Of a row in memory, or of one that was cold and is brought back; NULL: there is none.
  Record* find_hot(Part& part, uint64_t id, uint64_t hash);
  // A row as it begins, today.
  Record* begin_row(Part& part, uint64_t id, uint64_t hash);
  void begin_values(uint64_t id, float* embedding) const;
  bool lets_in(Part& part, uint64_t id, float show, float click);
  float decayed(float number, uint32_t day) const;
  float score(float show, float click, uint32_t day) const;
  // Rows that were written longest ago leave memory, where there are too many.
  void spill(Part& part);

  tenon_table_options options_;
  std::array<std::unique_ptr<Part>, TENON_TABLE_PARTS> parts_;
  std::unique_ptr<ColdRows> cold_;
  std::atomic<uint64_t> cold_count_{0};
  std::atomic<uint64_t> version_{0};
  std::atomic<uint64_t> day_{0};
};

}  // namespace tenon::tables
