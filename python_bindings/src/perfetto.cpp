// SPDX-License-Identifier: Apache-2.0
#include "perfetto.hpp"

#include <tenon/tensor.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace tenon::python {
namespace {

// Field numbers of perfetto_trace.proto.
enum Field : uint32_t {
  kPacket = 1,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInterned = 12,
  kFlags = 13,
  kDescriptor = 60,
};
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;  // of kFlags
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounter = 4;

// The wire format of protocol buffers, as far as traces need it.
class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  Message& append(const Message& fields) {
    bytes_ += fields.bytes_;
    return *this;
  }
  std::string& bytes() { return bytes_; }
  size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

 private:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

std::string device_text(uint32_t id) {
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(id));
  return std::string(kind ? kind : "?") + ":" + std::to_string(TENON_DEVICE_INDEX(id));
}

class Writer {
 public:
  Writer(const CallRecords& calls, const PerfettoOptions& options)
      : calls_(calls), options_(options), growth_(calls.records.size(), kNone) {}

  std::string run() {
    trace_.bytes().reserve(calls_.records.size() * 56 + 4096);
    Message process;
    process.number(1, static_cast<uint64_t>(options_.process)).text(6, "Tenon");
    describe(Message().number(1, kPerfettoProcess).message(3, process));
    packet(Message().number(kSequence, 1).number(kFlags, kStateCleared));
    Message thread;
    thread.number(1, static_cast<uint64_t>(options_.process))
        .number(2, static_cast<uint64_t>(options_.thread))
        .text(5, "host");
    describe(Message().number(1, kPerfettoHost).number(5, kPerfettoProcess).message(4, thread));
    read_memory();
    write_slices();
    write_counters();
    return std::move(trace_.bytes());
  }

 private:
  struct Moment {
    uint64_t time, bytes;
  };

  void packet(const Message& fields) { trace_.message(kPacket, fields); }
  void describe(const Message& track) {
    packet(Message().message(kDescriptor, track).number(kSequence, 1));
  }

  // A record of memory belongs to the call before it.
  void read_memory() {
    std::unordered_map<uint32_t, uint64_t> in_use;
    size_t call = calls_.records.size();
    for (size_t i = 0; i < calls_.records.size(); ++i) {
      const tenon_call_record& record = calls_.records[i];
      if (record.kind != TENON_RECORD_MEMORY) {
        call = i;
        continue;
      }
      counters_[record.what].push_back({record.begin_ns, record.end_ns});
      auto [known, is_first] = in_use.try_emplace(record.what, record.end_ns);
      if (!is_first && call < growth_.size())
        growth_[call] = static_cast<int64_t>(record.end_ns - known->second);
      known->second = record.end_ns;
    }
  }

  void write_slices() {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < calls_.records.size(); ++i)
      if (calls_.records[i].kind != TENON_RECORD_MEMORY) order.push_back(i);
    // Calls end before those that they lie in, so that most of the order is there already, backwards.
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const tenon_call_record &x = calls_.records[a], &y = calls_.records[b];
      return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
    });
    Message end;
    after_time(end, Message().number(9, kSliceEnd).number(11, kPerfettoHost));
    std::vector<uint64_t> open;
    for (uint32_t index : order) {
      const tenon_call_record& record = calls_.records[index];
      while (!open.empty() && open.back() <= record.begin_ns)
        add(open.back(), end), open.pop_back();
      add(record.begin_ns, begin_of(index));
      // Clocks of two readings may overlap by a few nanoseconds.
      open.push_back(open.empty() ? record.end_ns : std::min(record.end_ns, open.back()));
    }
    for (; !open.empty(); open.pop_back()) add(open.back(), end);
  }

  void add(uint64_t time, const Message& rest) {
    scratch_.clear();
    scratch_.number(kTimestamp, time).append(rest);
    packet(scratch_);
  }
  static void after_time(Message& out, const Message& track_event) {
    out.number(kSequence, 1).message(kTrackEvent, track_event).number(kFlags, kNeedsState);
  }

  // The packet without its time. Calls of one operator share it if they have no details.
  const Message& begin_of(uint32_t index) {
    const tenon_call_record& record = calls_.records[index];
    const bool is_plain =
        !record.shapes && !record.stack && !record.flags && growth_[index] == kNone;
    const uint64_t key = uint64_t{record.kind} << 32 | record.what;
    if (is_plain)
      if (auto known = plain_.find(key); known != plain_.end()) return known->second;
    Message interned, event;
    const std::string_view kind = kind_of(record);
    const auto [name, name_is_new] = intern(names_, name_of(record));
    const auto [category, category_is_new] = intern(categories_, std::string(kind));
    if (name_is_new) interned.message(2, Message().number(1, name).text(2, name_of(record)));
    if (category_is_new) interned.message(1, Message().number(1, category).text(2, kind));
    event.number(9, kSliceBegin).number(11, kPerfettoHost).number(10, name).number(3, category);
    if (record.shapes) annotate(event, "shapes", shapes_text(record.shapes - 1));
    if (record.stack)
      if (auto stack = options_.stacks.find(record.stack); stack != options_.stacks.end())
        annotate(event, "stack", stack->second);
    if (growth_[index] != kNone) annotate(event, "memory", std::to_string(growth_[index]));
    if (record.flags & TENON_RECORD_BACKWARD) annotate(event, "backward", "True");
    if (record.flags & TENON_RECORD_FAILED) annotate(event, "failed", "True");
    Message rest;
    after_time(rest, event);
    if (interned.size()) {
      current_ = rest;
      current_.message(kInterned, interned);
      if (is_plain) plain_.emplace(key, std::move(rest));
      return current_;
    }
    if (is_plain) return plain_.emplace(key, std::move(rest)).first->second;
    current_ = std::move(rest);
    return current_;
  }

  static void annotate(Message& event, std::string_view label, std::string_view value) {
    if (value.empty()) return;
    event.message(4, Message().text(10, label).text(6, value));
  }

  std::string_view kind_of(const tenon_call_record& record) const {
    if (record.kind != TENON_RECORD_SCOPE) return "operator";
    return record.what < options_.scopes.size() ? options_.scopes[record.what].first : "scope";
  }
  std::string name_of(const tenon_call_record& record) const {
    if (record.kind == TENON_RECORD_SCOPE)
      return record.what < options_.scopes.size() ? options_.scopes[record.what].second : "?";
    const tenon_op* op = record.what < host->op_count() ? host->op_at(record.what) : nullptr;
    if (!op) return "operator " + std::to_string(record.what);
    const std::string name = host->op_def(op)->name;
    return name.starts_with("tenon::") ? name.substr(7) : name;
  }
  // "float32[4, 5] float32[5, 3]"
  std::string shapes_text(size_t at) const {
    std::string text;
    const std::vector<int64_t>& details = calls_.details;
    while (at + 1 < details.size() && details[at] >= 0) {
      const auto ndim = static_cast<size_t>(details[at + 1]);
      text += (text.empty() ? "" : " ") +
              std::string(host->dtype_name(static_cast<int32_t>(details[at]))) + "[";
      for (size_t i = 0; i < ndim && at + 2 + i < details.size(); ++i)
        text += (i ? ", " : "") + std::to_string(details[at + 2 + i]);
      text += "]";
      at += 2 + ndim;
    }
    return text;
  }

  using Names = std::unordered_map<std::string, uint64_t>;
  static std::pair<uint64_t, bool> intern(Names& known, const std::string& text) {
    const auto [entry, is_new] = known.try_emplace(text, known.size() + 1);
    return {entry->second, is_new};
  }

  void write_counters() {
    uint64_t uuid = kPerfettoHost;
    for (const auto& [device, moments] : counters_) {
      Message track;
      track.number(1, ++uuid)
          .number(5, kPerfettoProcess)
          .text(2, "memory " + device_text(device))
          .text(8, "");
      describe(track);
      for (const Moment& moment : moments) {
        Message rest;
        after_time(rest, Message().number(9, kCounter).number(11, uuid).number(30, moment.bytes));
        add(moment.time, rest);
      }
    }
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  const CallRecords& calls_;
  const PerfettoOptions& options_;
  std::vector<int64_t> growth_;  // by record: bytes since the call before; kNone: not known
  std::map<uint32_t, std::vector<Moment>> counters_;  // by device
  std::unordered_map<uint64_t, Message> plain_;
  Names names_, categories_;
  Message trace_, scratch_, current_;
};

}  // namespace

std::string perfetto_trace(const CallRecords& calls, const PerfettoOptions& options) {
  return Writer(calls, options).run();
}

}  // namespace tenon::python
