// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tenon/error.hpp>

#include "hash.hpp"

namespace tenon::tables {
namespace {

using Lock = std::lock_guard<std::mutex>;

uint64_t unsigned_id(int64_t id) { return static_cast<uint64_t>(id); }

}  // namespace

Table::Table(const tenon_table_options& options) : options_(options) {
  if (options.dim == 0 || options.dim > 1u << 20 || options.state_width > 1u << 20)
    throw Error(TENON_INVALID_ARGUMENT, "a table: expected 1 to 1048576 floats in a row");
  if (options.entry < TENON_TABLE_ENTRY_ALL || options.entry > TENON_TABLE_ENTRY_SCORE)
    throw Error(TENON_UNSUPPORTED, "a table: this rule of entry is not known");
  if (options.hot_rows != 0 && !options.cold_folder)
    throw Error(TENON_INVALID_ARGUMENT,
                "a table: expected a folder for cold rows where hot_rows limits those in memory");
  for (auto& part : parts_) part = std::make_unique<Part>(width());
  if (options.cold_folder && options.hot_rows != 0) cold_ = open_cold_rows(options.cold_folder);
  options_.cold_folder = nullptr;  // the caller's
}

void Table::begin_values(uint64_t id, float* embedding) const {
  const float range = options_.initial_range;
  for (uint32_t d = 0; d < options_.dim; ++d)
    embedding[d] = (draw(options_.seed, id, d) * 2.0f - 1.0f) * range;
}

Record* Table::find_hot(Part& part, uint64_t id, uint64_t hash) {
  if (Record* record = part.find(id, hash)) return record;
  if (!cold_ || cold_count_ == 0) return nullptr;
  std::vector<std::byte> bytes;
  if (!cold_->read(id, bytes)) return nullptr;
  if (bytes.size() != record_bytes())
    throw Error(TENON_INTERNAL, "a table: a cold row has another size than it was written with");
  cold_->erase(id);  // first: if it fails, the row is not there twice
  --cold_count_;
  Record* record = part.insert(id, hash);
  memcpy(record, bytes.data(), bytes.size());
  return record;
}

Record* Table::begin_row(Part& part, uint64_t id, uint64_t hash) {
  Record* record = part.insert(id, hash);
  record->version = version_;
  record->show = record->click = 0;
  record->day = static_cast<uint32_t>(day_);
  begin_values(id, record->values());
  std::fill_n(record->values() + options_.dim, options_.state_width, options_.initial_state);
  part.removed.erase(id);
  return record;
}

void Table::pull(const int64_t* ids, uint64_t count, float* rows) {
  std::vector<std::byte> bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = unsigned_id(ids[i]), hash = mix(id);
    float* to = rows + i * options_.dim;
    Part& in = part(hash);
    Lock lock(in.mutex);
    if (const Record* record = in.find(id, hash)) {
      std::copy_n(record->values(), options_.dim, to);
    } else if (cold_ && cold_count_ != 0 && cold_->read(id, bytes)) {
      memcpy(to, bytes.data() + sizeof(Record), options_.dim * sizeof(float));
    } else if (options_.entry == TENON_TABLE_ENTRY_ALL) {
      begin_values(id, to);
    } else {
      std::fill_n(to, options_.dim, 0.0f);
    }
  }
}

float Table::decayed(float number, uint32_t day) const {
  if (options_.decay == 1.0f) return number;
  for (uint64_t d = day; d < day_ && number != 0; ++d) number *= options_.decay;
  return number;
}
float Table::score(float show, float click, uint32_t day) const {
  return options_.show_weight * decayed(show, day) + options_.click_weight * decayed(click, day);
}

bool Table::lets_in(Part& part, uint64_t id, float show, float click) {
  if (options_.entry == TENON_TABLE_ENTRY_ALL) return true;
  if (options_.entry == TENON_TABLE_ENTRY_PROBABILITY)
    return draw(~options_.seed, id, version_) < options_.threshold;
  const auto today = static_cast<uint32_t>(day_);
  part.removed.erase(id);  // else a scan would give it as a candidate, and then as removed
  Candidate& candidate = part.candidates[id];
  candidate.show = decayed(candidate.show, candidate.day) + show;
  candidate.click = decayed(candidate.click, candidate.day) + click;
  candidate.day = today;
  candidate.version = version_;
  return score(candidate.show, candidate.click, today) >= options_.threshold;
}

uint64_t Table::push_begin(const int64_t* ids, const float* shows, const float* clicks,
                           uint64_t count, int64_t* indices, float* values) {
  ++version_;
  uint64_t rows = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = unsigned_id(ids[i]), hash = mix(id);
    Part& in = part(hash);
    Lock lock(in.mutex);
    Record* record = find_hot(in, id, hash);
    // What an id without a row read were zeros, so that the gradient that lets it in is of those.
    bool is_updated = record || options_.entry == TENON_TABLE_ENTRY_ALL;
    float show = shows[i], click = clicks[i];
    if (!record) {
      if (!lets_in(in, id, show, click)) continue;
      const auto candidate = in.candidates.find(id);
      if (candidate != in.candidates.end()) {
        show = candidate->second.show;
        click = candidate->second.click;
        in.candidates.erase(candidate);
      }
      record = begin_row(in, id, hash);
    }
    record->show = decayed(record->show, record->day) + show;
    record->click = decayed(record->click, record->day) + click;
    record->day = static_cast<uint32_t>(day_);
    record->version = version_;
    if (!is_updated) continue;
    indices[rows] = static_cast<int64_t>(i);
    std::copy_n(record->values(), width(), values + rows * width());
    ++rows;
  }
  return rows;
}

void Table::push_end(const int64_t* ids, const float* values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = unsigned_id(ids[i]), hash = mix(id);
    Part& in = part(hash);
    Lock lock(in.mutex);
    Record* record = find_hot(in, id, hash);
    if (!record)
      throw Error(TENON_INVALID_ARGUMENT, "a table: a push ends for an id without a row");
    std::copy_n(values + i * width(), width(), record->values());
  }
  if (!cold_) return;
  for (auto& in : parts_) {
    Lock lock(in->mutex);
    spill(*in);
  }
}

void Table::spill(Part& part) {
  const uint64_t limit = std::max<uint64_t>(options_.hot_rows / TENON_TABLE_PARTS, 1);
  if (part.size() <= limit) return;
  std::vector<const Record*> records;
  records.reserve(part.size());
  part.each([&](Record& record) { records.push_back(&record); });
  // A quarter more than has to leave, so that this is seldom.
  const size_t leave = std::min<size_t>(records.size() - limit + limit / 4, records.size());
  const auto older = [](const Record* a, const Record* b) {
    return a->version != b->version ? a->version < b->version : a->id < b->id;
  };
  std::nth_element(records.begin(), records.begin() + static_cast<ptrdiff_t>(leave) - 1,
                   records.end(), older);
  for (size_t i = 0; i < leave; ++i) {
    const uint64_t id = records[i]->id;
    cold_->write(*records[i], record_bytes());
    ++cold_count_;
    part.erase(id, mix(id));
  }
}

void Table::assign(const int64_t* ids, const float* rows, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = unsigned_id(ids[i]), hash = mix(id);
    Part& in = part(hash);
    Lock lock(in.mutex);
    Record* record = find_hot(in, id, hash);
    if (!record) record = begin_row(in, id, hash);
    std::copy_n(rows + i * options_.dim, options_.dim, record->values());
  }
}

void Table::contains(const int64_t* ids, uint64_t count, uint8_t* out) {
  std::vector<std::byte> bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = unsigned_id(ids[i]), hash = mix(id);
    Part& in = part(hash);
    Lock lock(in.mutex);
    out[i] = in.find(id, hash) || (cold_ && cold_count_ != 0 && cold_->read(id, bytes));
  }
}

uint64_t Table::shrink(uint32_t unseen_days, float least) {
  ++version_;
  uint64_t count = 0;
  const auto is_left = [&](float show, float click, uint32_t day) {
    return day_ - day > unseen_days || score(show, click, day) < least;
  };
  for (uint32_t p = 0; p < TENON_TABLE_PARTS; ++p) {
    Part& in = *parts_[p];
    Lock lock(in.mutex);
    std::vector<uint64_t> hot, cold;
    in.each([&](Record& record) {
      if (is_left(record.show, record.click, record.day)) hot.push_back(record.id);
    });
    if (cold_)
      cold_->each(p, [&](const Record& record) {
        if (is_left(record.show, record.click, record.day)) cold.push_back(record.id);
      });
    for (uint64_t id : hot) in.erase(id, mix(id));
    for (uint64_t id : cold) cold_->erase(id);
    cold_count_ -= cold.size();
    for (const auto* ids : {&hot, &cold})
      for (uint64_t id : *ids) in.removed[id] = version_;
    count += hot.size() + cold.size();
    for (auto at = in.candidates.begin(); at != in.candidates.end();) {
      const Candidate& candidate = at->second;
      if (is_left(candidate.show, candidate.click, candidate.day)) {
        in.removed[at->first] = version_;
        at = in.candidates.erase(at);
        ++count;
      } else {
        ++at;
      }
    }
  }
  return count;
}

void Table::scan(uint32_t number, uint64_t since, tenon_table_row_fn function, void* user) {
  if (number >= TENON_TABLE_PARTS)
    throw Error(TENON_INVALID_ARGUMENT, "a table: expected the number of a part below 64");
  Part& in = *parts_[number];
  Lock lock(in.mutex);
  bool goes_on = true;
  const auto give = [&](const tenon_table_row& row) {
    if (goes_on && row.version > since) goes_on = function(user, &row) == 0;
  };
  const auto give_record = [&](const Record& record) {
    give({record.id, record.version, record.show, record.click, record.day, TENON_TABLE_ROW,
          const_cast<float*>(record.values())});
  };
  in.each(give_record);
  if (cold_) cold_->each(number, give_record);
  for (const auto& [id, candidate] : in.candidates)
    give({id, candidate.version, candidate.show, candidate.click, candidate.day,
          TENON_TABLE_CANDIDATE, nullptr});
  for (const auto& [id, version] : in.removed)
    give({id, version, 0, 0, 0, TENON_TABLE_REMOVED, nullptr});
}

void Table::restore(const tenon_table_row* rows, uint64_t count) {
  for (const tenon_table_row* row = rows; row != rows + count; ++row) {
    if (row->kind < TENON_TABLE_ROW || row->kind > TENON_TABLE_REMOVED)
      throw Error(TENON_INVALID_ARGUMENT,
                  "a table: expected a row, a candidate or a removed id, got "
                  "kind " +
                      std::to_string(row->kind));
    const uint64_t hash = mix(row->id);
    Part& in = part(hash);
    Lock lock(in.mutex);
    Record* record = find_hot(in, row->id, hash);
    if (row->kind == TENON_TABLE_ROW) {
      if (!record) record = begin_row(in, row->id, hash);
      in.candidates.erase(row->id);
      record->version = row->version;
      record->show = row->show;
      record->click = row->click;
      record->day = row->day;
      std::copy_n(row->values, width(), record->values());
      if (cold_) spill(in);
      continue;
    }
    if (record) in.erase(row->id, hash);
    if (row->kind == TENON_TABLE_CANDIDATE) {
      in.candidates[row->id] = {row->show, row->click, row->day, row->version};
      in.removed.erase(row->id);
    } else {
      in.candidates.erase(row->id);
      in.removed[row->id] = row->version;
    }
  }
}

void Table::set_version(uint64_t version, uint64_t day) {
  version_ = version;
  day_ = day;
}

tenon_table_counters Table::counters() {
  tenon_table_counters counters = {};
  for (auto& in : parts_) {
    Lock lock(in->mutex);
    counters.rows += in->size();
    counters.candidates += in->candidates.size();
    counters.bytes += in->bytes();
  }
  counters.cold_rows = cold_count_;
  counters.version = version_;
  counters.day = day_;
  return counters;
}

}  // namespace tenon::tables
