// SPDX-License-Identifier: Apache-2.0
// Does the process grow with calls that should leave nothing behind?
#pragma once

#include <functional>
#include <string>

#include "harness/session.hpp"

namespace tenon::kit {

// Calls `body` many times, as often as fits into about a second, and fails if memory, open files or
// threads grow with it. "copies to the device", `fix`.
void expect_no_growth(Session&, const std::string& what, const std::string& fix,
                      const std::function<void()>& body);

// How many rounds of `body` fit into `seconds`, from `least` to `most`. It is called a few times.
int rounds_that_fit(double seconds, int least, int most, const std::function<void()>& body);

}  // namespace tenon::kit
