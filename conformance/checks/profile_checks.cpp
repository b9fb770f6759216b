// SPDX-License-Identifier: Apache-2.0
// What ran when.
#include <time.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "subject/device.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kBytes = 256 << 10;

// A record with something behind it, as a later revision's would be.
struct LongRecord {
  tenon_profile_record record;
  uint64_t canary;
};
constexpr uint64_t kCanary = 0x5ca1ab1e5ca1ab1e;

std::vector<tenon_profile_record> drain(Device& device, const tenon_profile_api& api) {
  std::vector<tenon_profile_record> records;
  while (true) {
    LongRecord few[3];
    std::memset(few, 0, sizeof few);
    for (LongRecord& entry : few) entry.canary = kCanary;
    uint32_t count = 0;
    Error error;
    device.check(
        api.profile_drain(device.handle(), &few[0].record, sizeof few[0], 3, &count, error), error,
        "profile_drain");
    device.session().require(count <= 3, "at most 3 records", text(count));
    for (uint32_t i = 0; i < 3; ++i)
      device.session().require(few[i].canary == kCanary,
                               "records lie record_size bytes apart, with nothing behind them",
                               "memory behind a record was written");
    for (uint32_t i = 0; i < count; ++i) records.push_back(few[i].record);
    if (count == 0 || records.size() > 1000) return records;
  }
}

void records(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_profile_api>(TENON_GROUP_PROFILE);
  Device device(plugin);
  Buffer a = device.alloc(kBytes), b = device.alloc(kBytes);
  Error error;
  device.fill(a, 0x01);  // before the start: not recorded
  device.sync();
  session.step("profile_start");
  device.check(api.profile_start(device.handle(), error), error, "profile_start");
  for (int i = 0; i < 4; ++i) {
    device.fill(a, static_cast<unsigned char>(i));
    device.copy(b, 0, a, 0, kBytes);
  }
  device.sync();
  session.step("profile_stop");
  device.check(api.profile_stop(device.handle(), error), error, "profile_stop");
  device.fill(a, 0x7f);  // after the stop: not recorded
  device.sync();
  session.step("profile_drain");
  std::vector<tenon_profile_record> found = drain(device, api);
  int copies = 0, fills = 0;
  uint64_t last = 0;
  for (const tenon_profile_record& record : found) {
    std::string which = text("record ", copies + fills + 1);
    session.expect(record.begin_ns <= record.end_ns, which + ": it ends after it begins",
                   text(record.begin_ns, " to ", record.end_ns));
    session.expect(record.begin_ns >= last, which + ": oldest first",
                   text("begins at ", record.begin_ns, ", the one before at ", last));
    last = record.begin_ns;
    session.expect(std::memchr(record.name, 0, sizeof record.name), which + ": a name that ends",
                   "one that does not");
    bool moves = record.kind == TENON_PROFILE_COPY || record.kind == TENON_PROFILE_FILL;
    copies += record.kind == TENON_PROFILE_COPY;
    fills += record.kind == TENON_PROFILE_FILL;
    session.expect(!moves || record.bytes == kBytes, which + text(": ", kBytes, " bytes"),
                   text(record.bytes));
  }
  session.expect(copies == 4 && fills == 4, "four copies and four fills",
                 text(copies, " copies, ", fills, " fills, ", found.size(), " records"),
                 "record from profile_start to profile_stop, and nothing else");
}

uint64_t host_clock() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void clock(Session& session) {
  Plugin plugin(session);
  const auto& api = plugin.need_group<tenon_profile_api>(TENON_GROUP_PROFILE);
  Device device(plugin);
  uint64_t first_host = 0, first_device = 0, last_device = 0, host = 0;
  for (int i = 0; i < 8; ++i) {
    session.step("clock_pair");
    uint64_t before = host_clock(), ticks = 0;
    Error error;
    device.check(api.clock_pair(device.handle(), &host, &ticks, error), error, "clock_pair");
    uint64_t after = host_clock();
    session.expect(before <= host && host <= after, "host_ns is CLOCK_MONOTONIC, now",
                   text(host, " between ", before, " and ", after));
    if (!session.expect(i == 0 || ticks > last_device, "the device's clock goes forward",
                        text(ticks, " after ", last_device)))
      return;
    if (i == 0) {
      first_host = host;
      first_device = ticks;
    }
    last_device = ticks;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  double ratio = double(last_device - first_device) / double(host - first_host);
  session.expect(ratio > 0.8 && ratio < 1.25, "both clocks count nanoseconds",
                 text("the device's counts ", ratio, " of them for one of the host's"));
}

}  // namespace

const Checks& profile_checks() {
  static const Checks checks = {
      {"profile.clock", "Both clocks can be compared.", "abi.h section 5, clock_pair", "",
       "lifecycle.sync", clock},
      {"profile.records", "What ran is recorded, oldest first.",
       "abi.h section 5, tenon_profile_api", "", "lifecycle.sync memory.copy_d2d memory.fill_grid",
       records},
  };
  return checks;
}

}  // namespace tenon::kit
