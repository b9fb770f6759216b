// SPDX-License-Identifier: Apache-2.0
// Runs before the first one that counts: their shapes as text, and their inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::predictor {

// Shapes of the inputs of one run, by name. None for any input: the recorded ones.
using InputShapes = std::map<std::string, std::vector<int64_t>>;

// One for each run of "recorded", or of "x=1x3x224x224,mask=1x224; x=8x3x224x224,mask=8x224"; a shape of no axes is
// "x=". Throws Error.
std::vector<InputShapes> parse_shapes(const std::string& text);

}  // namespace tenon::predictor
