// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/attempts.hpp"

#include <algorithm>

namespace tenon::core {

void AttemptLog::add(Attempt attempt) {
  auto is_same = [&](const Attempt& other) {
    return other.path == attempt.path && other.outcome.stage == attempt.outcome.stage &&
           other.outcome.reason == attempt.outcome.reason;
  };
  auto known = std::find_if(attempts_.begin(), attempts_.end(), is_same);
  if (known != attempts_.end()) {
    attempt.count += known->count;
    attempts_.erase(known);
  }
  attempts_.push_back(std::move(attempt));
}

}  // namespace tenon::core
