// SPDX-License-Identifier: Apache-2.0
#include <ctime>

#include "support.hpp"

namespace opencl_test {
namespace {

class OpenclProfile : public DeviceTest {
 protected:
  const tenon_profile_api* profile() const { return api()->profile; }
  std::vector<tenon_profile_record> drain(uint32_t capacity = 100) {
    std::vector<tenon_profile_record> records(capacity);
    uint32_t count = 0;
    EXPECT_OK(profile()->profile_drain(device_, records.data(), sizeof records[0], capacity, &count,
                                       err));
    records.resize(count);
    return records;
  }
};

TEST_F(OpenclProfile, RecordsWhatRanBetweenStartAndStop) {
  tenon_kernel work = kernel(build(R"(
    TK_KERNEL void busy(TK_BUFFER(tk_i32, out)) {
      TK_BIND(tk_i32, out);
      for (int i = 0; i < 100000; ++i) out[0] += i;
    })"),
                             "busy");
  void* memory = device_copy(std::vector<int32_t>(256, 0));
  tenon_stream stream = new_stream();
  EXPECT_TRUE(drain().empty());
  EXPECT_OK(profile()->profile_start(device_, err));
  int32_t one = 1;
  set(memory, 0, 1024, &one, 4, stream);
  launch(work, {buffer(memory)}, 1, 1, stream);
  values<int32_t>(memory, 256, stream);
  EXPECT_OK(profile()->profile_stop(device_, err));
  launch(work, {buffer(memory)}, 1, 1, stream);
  EXPECT_OK(api()->sync(device_, nullptr, err));

  auto records = drain(2);  // in two pieces
  ASSERT_EQ(records.size(), 2u);
  auto rest = drain();
  ASSERT_EQ(rest.size(), 1u);
  records.push_back(rest[0]);
  EXPECT_TRUE(drain().empty());
  EXPECT_EQ(records[0].kind, TENON_PROFILE_FILL);
  EXPECT_EQ(records[0].bytes, 1024u);
  EXPECT_EQ(records[1].kind, TENON_PROFILE_KERNEL);
  EXPECT_STREQ(records[1].name, "busy");
  EXPECT_EQ(records[1].bytes, 0u);
  EXPECT_EQ(records[2].kind, TENON_PROFILE_COPY);
  EXPECT_EQ(records[2].bytes, 1024u);
  uint64_t last = 0;
  for (const auto& record : records) {
    EXPECT_EQ(record.struct_size, sizeof record);
    EXPECT_EQ(record.stream, stream);
    EXPECT_GE(record.begin_ns, last);  // oldest first, one after the other on a stream
    EXPECT_GE(record.end_ns, record.begin_ns);
    last = record.end_ns;
  }
  EXPECT_GT(records[1].end_ns, records[1].begin_ns);
}

TEST_F(OpenclProfile, ManyRecordsKeepTheirOrderAndFitShorterStructs) {
  constexpr uint32_t kCount = 3000;
  void* memory = allocate(64);
  EXPECT_OK(profile()->profile_start(device_, err));
  for (uint32_t i = 0; i < kCount; ++i) set(memory, 0, 4, &i, 4);
  EXPECT_OK(profile()->profile_stop(device_, err));
  EXPECT_OK(api()->sync(device_, nullptr, err));
  constexpr uint32_t kShort =
      offsetof(tenon_profile_record, stream);  // of a caller compiled with fewer members
  std::vector<char> bytes(uint64_t{kShort} * kCount + 8, '\x55');
  uint32_t count = 0;
  EXPECT_OK(profile()->profile_drain(device_, reinterpret_cast<tenon_profile_record*>(bytes.data()),
                                     kShort, kCount, &count, err));
  EXPECT_EQ(count, kCount);
  uint64_t last = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t size;
    uint64_t begin;
    std::memcpy(&size, &bytes[uint64_t{i} * kShort], sizeof size);
    std::memcpy(&begin, &bytes[uint64_t{i} * kShort + offsetof(tenon_profile_record, begin_ns)],
                sizeof begin);
    EXPECT_EQ(size, kShort);
    ASSERT_GE(begin, last);
    last = begin;
  }
  EXPECT_EQ(bytes.back(), '\x55');
}

TEST_F(OpenclProfile, ClocksShowOneMoment) {
  uint64_t host_first, device_first, host_second, device_second;
  EXPECT_OK(profile()->clock_pair(device_, &host_first, &device_first, err));
  timespec pause = {0, 20'000'000};
  nanosleep(&pause, nullptr);
  EXPECT_OK(profile()->clock_pair(device_, &host_second, &device_second, err));
  double host_passed = static_cast<double>(host_second - host_first);
  double device_passed = static_cast<double>(device_second - device_first);
  EXPECT_GE(host_passed, 20e6);
  EXPECT_NEAR(device_passed / host_passed, 1.0, 0.2);
}

}  // namespace
}  // namespace opencl_test
