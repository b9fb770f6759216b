// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace tenon::predictor {

void Profile::add(uint32_t begin, uint32_t end, std::chrono::nanoseconds time) {
  Sum& sum = steps_[{begin, end}];
  ++sum.count;
  sum.time += time;
}

void Profile::add_run(std::chrono::nanoseconds time) {
  ++runs_.count;
  runs_.time += time;
}

std::string Profile::text(const Model& model) const {
  auto microseconds = [](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  };
  char line[96];
  std::snprintf(line, sizeof line, "%llu runs, %.1f us each\n",
                static_cast<unsigned long long>(runs_.count),
                runs_.count ? microseconds(runs_.time) / static_cast<double>(runs_.count) : 0.0);
  std::string text = line;
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, Sum>> rows(steps_.begin(), steps_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  for (const auto& [range, sum] : rows) {
    std::snprintf(line, sizeof line, "%12.1f us %5.1f %%  %8llu calls  ",
                  microseconds(sum.time) / static_cast<double>(sum.count),
                  100 * microseconds(sum.time) / std::max(microseconds(runs_.time), 1e-9),
                  static_cast<unsigned long long>(sum.count));
    const Step& first = model.recorded().step(range.first);
    text += line;
    if (range.second - range.first > 1)
      text += "steps " + std::to_string(range.first) + " to " + std::to_string(range.second - 1) +
              ", from " + first.name;
    else
      text += "step " + std::to_string(range.first) + ", " + first.name;
    text += (first.place().empty() ? "" : " at " + first.place()) + "\n";
  }
  return text;
}

}  // namespace tenon::predictor
