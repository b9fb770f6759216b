// SPDX-License-Identifier: Apache-2.0
#include "control/record.hpp"

#include <string.h>

#include <algorithm>
#include <tenon/tensor.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

constexpr const char* kCalls[TENON_CALL_COUNT] = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
    "all_to_all", "gather",     "scatter",        "barrier",   "exchange"};
constexpr const char* kReductions[] = {"sum", "prod", "min", "max", "mean"};

std::string text_of(const char* text, size_t room) {
  return std::string(text, strnlen(text, room));
}

bool has_reduction(int32_t kind) {
  return kind == TENON_CALL_ALL_REDUCE || kind == TENON_CALL_REDUCE_SCATTER ||
         kind == TENON_CALL_REDUCE;
}

bool has_root(int32_t kind) {
  return kind == TENON_CALL_BROADCAST || kind == TENON_CALL_REDUCE || kind == TENON_CALL_GATHER ||
         kind == TENON_CALL_SCATTER;
}

}  // namespace

std::string call_text(const tenon_group_record& record) {
  if (record.kind < 0 || record.kind >= TENON_CALL_COUNT) return "data instead of a call";
  std::string text = std::string(kCalls[record.kind]) + "(";
  if (record.kind != TENON_CALL_BARRIER) {
    const bool is_known = record.dtype >= 0 && record.dtype < TENON_DTYPE_COUNT;
    const char* name = is_known ? host->dtype_name(record.dtype) : "?";
    text += std::string(name ? name : "?") + "[" + std::to_string(record.count) + "]";
  }
  if (has_reduction(record.kind) && record.reduce >= 0 && record.reduce <= TENON_REDUCE_MEAN)
    text += std::string(", ") + kReductions[record.reduce];
  if (has_root(record.kind)) text += ", root=" + std::to_string(record.root);
  text += ")";
  if (record.site[0]) text += " at " + text_of(record.site, sizeof record.site);
  return text;
}

void make_readable(tenon_group_record& record) {
  copy_text(record.group, readable(text_of(record.group, sizeof record.group)));
  copy_text(record.site, readable(text_of(record.site, sizeof record.site)));
}

std::string number_text(const tenon_group_record& record) {
  return "call " + std::to_string(record.sequence) + " of " +
         text_of(record.group, sizeof record.group);
}

uint64_t RecordRing::begin(const tenon_group_record& record) {
  std::lock_guard lock(mutex_);
  if (records_.size() < kCapacity)
    records_.push_back(record);
  else
    records_[count_ % kCapacity] = record;
  return count_++;
}

void RecordRing::finish(uint64_t number, int32_t status) {
  std::lock_guard lock(mutex_);
  if (count_ - number > kCapacity) return;  // others came since
  tenon_group_record& record = records_[number % kCapacity];
  record.end_ns = now_ns();
  record.status = status;
}

tenon_group_record RecordRing::last() const {
  std::lock_guard lock(mutex_);
  return count_ ? records_[(count_ - 1) % kCapacity] : tenon_group_record{};
}

uint32_t RecordRing::copy(tenon_group_record* out, uint32_t capacity) const {
  std::lock_guard lock(mutex_);
  const uint64_t held = std::min<uint64_t>(count_, kCapacity);
  const uint64_t taken = std::min<uint64_t>(held, capacity);
  for (uint64_t i = 0; i < taken; ++i) out[i] = records_[(count_ - taken + i) % kCapacity];
  return static_cast<uint32_t>(held);
}

}  // namespace tenon::collectives
