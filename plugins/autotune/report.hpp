// SPDX-License-Identifier: Apache-2.0
// Decisions as JSON.
#pragma once

#include <string>

#include "choices.hpp"

namespace tenon::autotune {

std::string quoted(const std::string& text);
std::string decision_text(const Decision& decision);

}  // namespace tenon::autotune
