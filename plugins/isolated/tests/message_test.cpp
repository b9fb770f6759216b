// SPDX-License-Identifier: Apache-2.0
#include "wire/message.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tenon::isolated {
namespace {

TEST(Message, ComesOutAsItWentIn) {
  alignas(16) unsigned char memory[256];
  Writer out(memory, sizeof memory);
  const int64_t sizes[] = {3, 4};
  out.put(uint8_t{7});
  out.put(2.5);
  out.put_text("acme");
  out.put_array(sizes, 2);
  ASSERT_TRUE(out.fits());

  Reader in(memory, out.bytes());
  EXPECT_EQ(in.get<uint8_t>(), 7);
  EXPECT_EQ(in.get<double>(), 2.5);
  EXPECT_EQ(in.get_text(), "acme");
  const int64_t* read = in.get_array<int64_t>(2);
  ASSERT_TRUE(read);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read) % alignof(int64_t), 0u);
  EXPECT_EQ(read[1], 4);
  EXPECT_TRUE(in.ok());
}

TEST(Message, SaysThatItIsFullAndWritesNothingBeyond) {
  alignas(16) unsigned char memory[16] = {};
  Writer out(memory, 8);
  out.put(uint64_t{1});
  EXPECT_TRUE(out.fits());
  out.put(uint8_t{255});
  EXPECT_FALSE(out.fits());
  EXPECT_EQ(memory[8], 0);
  const int64_t none[1] = {};
  Writer(memory, 8).put_array(none, ~uint64_t{0} / 4);
}

TEST(Message, EndsEarlyWithoutHarm) {
  alignas(16) unsigned char memory[16] = {};
  Reader in(memory, 4);
  EXPECT_EQ(in.get<uint64_t>(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.get<uint8_t>(), 0);  // and stays that way
  EXPECT_FALSE(Reader(memory, 16).get_array<double>(~uint64_t{0} / 8 + 1));
}

TEST(Message, RefusesLengthsBeyondTheMessage) {
  alignas(16) unsigned char memory[32];
  Writer out(memory, sizeof memory);
  out.put(~uint64_t{0});
  Reader in(memory, out.bytes());
  EXPECT_EQ(in.get_text(), "");
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace tenon::isolated
