// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <chrono>

namespace tenon::autotune {
namespace {

constexpr uint32_t kMaxOutputs = 8;
// A challenger must be faster than noise explains, or calls would get slower by tuning.
constexpr double kRequiredRatio = 0.97;
constexpr double kRoundNanoseconds = 200e3;   // calls of one round take about that long together
constexpr double kBudgetNanoseconds = 200e6;  // of one contender in one run
constexpr int kRounds = 9;
constexpr int kMinRounds = 3;

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(since).count());
}

class Clock {
 public:
  Clock(const tenon_candidates_api& candidates, const Call& call)
      : candidates_(candidates), call_(call), args_(call.args, call.args + call.nargs) {}

  tenon_status wait() {
    return host->stream_sync(call_.device, host->stream_current(call_.device), err_);
  }

  // The mean time of `count` calls with fresh results.
  tenon_status time(const Contender& contender, int64_t count, double* nanoseconds) {
    const double begin = now();
    for (int64_t i = 0; i < count; ++i)
      if (tenon_status status = run(contender)) return status;
    if (tenon_status status = wait()) return status;
    *nanoseconds = (now() - begin) / static_cast<double>(count);
    return TENON_OK;
  }

  std::string failure() const { return host->err_text(err_); }
  void clear() { host->err_clear(err_); }

 private:
  tenon_status run(const Contender& contender) {
    tenon_value outs[kMaxOutputs] = {};
    std::copy_n(call_.args, call_.nargs, args_.data());  // a call may rewrite its arguments
    const tenon_status status =
        contender.handle ? candidates_.call(call_.layer, call_.op, args_.data(), call_.nargs, outs,
                                            call_.nouts, contender.handle, err_)
                         : host->op_call_below(call_.layer, call_.op, args_.data(), call_.nargs,
                                               outs, call_.nouts, err_);
    for (uint32_t i = 0; i < call_.nouts && status == TENON_OK; ++i)
      if (outs[i].tag == TENON_VALUE_TENSOR)
        host->tensor_release(static_cast<tenon_tensor*>(outs[i].v.p));
    return status;
  }

  const tenon_candidates_api& candidates_;
  const Call& call_;
  std::vector<tenon_value> args_;
  ErrorSink err_;
};

// The shortest mean time of several rounds, for each contender that `takes_part`.
template <class TakesPart>
void run_rounds(Clock& clock, std::vector<Contender>& contenders, TakesPart&& takes_part) {
  std::vector<double> spent(contenders.size());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& each = contenders[i];
      if (!each.failure.empty() || !takes_part(i)) continue;
      if (round >= kMinRounds && spent[i] > kBudgetNanoseconds) continue;
      const auto count =
          std::clamp(static_cast<int64_t>(kRoundNanoseconds / std::max(each.nanoseconds, 1.0)),
                     int64_t{1}, int64_t{1000});
      double mean = 0;
      if (clock.time(each, count, &mean) != TENON_OK) {
        each.failure = clock.failure();
        clock.clear();
        continue;
      }
      each.nanoseconds = std::min(each.nanoseconds, mean);
      spent[i] += mean * static_cast<double>(count);
    }
}

}  // namespace

size_t fastest(const std::vector<Contender>& contenders, bool repeatable_only) {
  size_t best = 0;
  for (bool is_repeatable : {true, false}) {
    if (repeatable_only && !is_repeatable) break;
    // What a winner of this kind has to undercut.
    const double limit = kRequiredRatio * contenders[best].nanoseconds;
    for (size_t i = 1; i < contenders.size(); ++i) {
      const Contender& each = contenders[i];
      if (each.is_repeatable == is_repeatable && each.failure.empty() && each.nanoseconds > 0 &&
          each.nanoseconds <= limit && each.nanoseconds < contenders[best].nanoseconds)
        best = i;
    }
  }
  return best;
}

Outcome measure(const tenon_candidates_api& candidates, const Call& call,
                std::vector<Contender>& contenders, size_t* winner) {
  Clock clock(candidates, call);
  if (clock.wait() != TENON_OK) return Outcome::kImpossible;
  // The first call of each builds what it caches; the second says how many make a round.
  for (size_t i = 0; i < contenders.size(); ++i) {
    Contender& each = contenders[i];
    if (clock.time(each, 1, &each.nanoseconds) == TENON_OK &&
        clock.time(each, 1, &each.nanoseconds) == TENON_OK)
      continue;
    if (i == 0) return Outcome::kImpossible;
    each.failure = clock.failure();
    clock.clear();
  }
  run_rounds(clock, contenders, [](size_t) { return true; });
  size_t best = fastest(contenders);
  if (best != 0) {  // once more, against what would run otherwise
    const size_t rival = fastest(contenders, !contenders[best].is_repeatable);
    const auto is_in = [&](size_t i) { return i == 0 || i == best || i == rival; };
    run_rounds(clock, contenders, is_in);
    best = fastest(contenders);
    if (!is_in(best)) best = 0;  // what won was noise
  }
  if (!contenders[0].failure.empty()) return Outcome::kImpossible;
  *winner = contenders[best].failure.empty() ? best : 0;
  return Outcome::kMeasured;
}

}  // namespace tenon::autotune
