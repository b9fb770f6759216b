// SPDX-License-Identifier: Apache-2.0
// Work that takes a while, and whose result tells whether it is done: a chain of copies through a
// large buffer, whose end is looked at.
#pragma once

#include <algorithm>

#include "subject/process.hpp"
#include "subject/stream.hpp"

namespace tenon::kit {

inline constexpr uint64_t kWorkBytes = 2 << 20;
inline constexpr int kMinRounds = 6, kMaxRounds = 500;
inline constexpr double kWorkSeconds = 0.03;

class Work {
 public:
  explicit Work(Device& device)
      : device_(device), a_(device.alloc(kWorkBytes)), b_(device.alloc(kWorkBytes)) {
    reset();
    // As many rounds as take long enough to be seen, however fast the device is.
    const double start = now();
    queue(nullptr, 0);
    device.sync();
    double rounds = kMinRounds * kWorkSeconds / std::max(now() - start, 1e-6);
    rounds_ = static_cast<int>(std::clamp(rounds, double{kMinRounds}, double{kMaxRounds}));
    reset();
  }

  void reset() {
    device_.fill(a_, 0x01);
    device_.fill(b_, 0x02);
    device_.sync();
  }
  // After it, all of result() is `value`.
  void queue(tenon_stream stream, unsigned char value) {
    for (int i = 0; i < rounds_; ++i) {
      device_.copy(b_, 0, a_, 0, kWorkBytes, stream);
      device_.fill(a_, static_cast<unsigned char>(0x80 + i), stream);
    }
    device_.fill(a_, value, stream);
    device_.copy(b_, 0, a_, 0, kWorkBytes, stream);
  }
  const Buffer& result() const { return b_; }

  // Now, without waiting: the last byte of the result, seen through another stream.
  unsigned char peek(tenon_stream stream) {
    unsigned char byte = 0;
    device_.get(&byte, b_, kWorkBytes - 1, 1, stream);
    return byte;
  }
  void expect(tenon_stream stream, unsigned char value, const std::string& what,
              const std::string& fix = "") {
    unsigned char got = peek(stream);
    device_.session().expect(
        got == value, what,
        text("the last byte is ", hex(got), ", not ", hex(value), ": the work is not done"), fix);
  }

 private:
  Device& device_;
  Buffer a_, b_;
  int rounds_ = kMinRounds;
};

}  // namespace tenon::kit
