// SPDX-License-Identifier: Apache-2.0
// Runs one check in a process of its own. Whatever happens there - a crash, a hang, a call of
// exit() - is a result.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "harness/check.hpp"
#include "harness/result.hpp"

namespace tenon::kit {

// `on_step` hears what the check is doing. Checks about subjects go on behind one that killed the
// process, in a new one. `tainted`: subjects to leave out.
Result run_in_child(const Check& check, const std::string& path, double time_limit,
                    std::set<std::string> tainted,
                    const std::function<void(const std::string&)>& on_step);

}  // namespace tenon::kit
