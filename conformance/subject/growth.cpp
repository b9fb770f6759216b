// SPDX-License-Identifier: Apache-2.0
#include "subject/growth.hpp"

#include <algorithm>
#include <vector>

#include "subject/process.hpp"

namespace tenon::kit {
namespace {

// Fewer rounds than `kGoodRounds` do not show a page that each of them leaves, so they may take
// longer.
constexpr int kMinRounds = 8, kGoodRounds = 300, kMaxRounds = 1000;
constexpr double kSeconds = 0.25, kMaxSeconds = 2;
// Bytes; allocators and drivers take some for themselves, and histories of a fixed length fill up.
constexpr int64_t kMaxGrowth = 512 << 10, kMaxGrowthOfRound = 2 << 10;

}  // namespace

int rounds_that_fit(double seconds, int least, int most, const std::function<void()>& body) {
  body();  // what libraries below set up once
  const double start = now();
  std::vector<double> times;  // of calls; their median is not that of a call that was interrupted
  while (times.size() < 4 || (times.size() < 64 && now() - start < seconds / 16)) {
    const double begin = now();
    body();
    times.push_back(now() - begin);
  }
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  const double fits = seconds / std::max(*median, 1e-9);
  return static_cast<int>(std::clamp(fits, double(least), double(most)));
}

void expect_no_growth(Session& session, const std::string& what, const std::string& fix,
                      const std::function<void()>& body) {
  session.step(what + ", over and over");
  const int quick = rounds_that_fit(kSeconds, kMinRounds, kMaxRounds, body);
  const int rounds =
      quick >= kGoodRounds ? quick : rounds_that_fit(kMaxSeconds, kMinRounds, kGoodRounds, body);
  const int64_t most = std::max(kMaxGrowth, rounds * kMaxGrowthOfRound);
  Holdings before, after;
  // What is taken once may be taken late; what leaks is taken again.
  for (int pass = 0; pass < 3; ++pass) {
    session.step(text(rounds, " times ", what));
    before = holdings();
    for (int i = 0; i < rounds; ++i) body();
    after = holdings();
    after.threads = settled_threads(before.threads);
    if (after.resident - before.resident < most && after.files <= before.files &&
        after.threads <= before.threads)
      return;
  }
  const std::string over = text(" over ", rounds, " times ", what);
  session.expect(after.threads <= before.threads, "no threads stay" + over,
                 text(after.threads - before.threads, " more"), fix);
  session.expect(after.files <= before.files, "no files stay open" + over,
                 text(after.files - before.files, " more"), fix);
  session.expect(after.resident - before.resident < most, "no memory stays" + over,
                 text((after.resident - before.resident) >> 10, " KiB more"), fix);
}

}  // namespace tenon::kit
