// SPDX-License-Identifier: Apache-2.0
// Sizes that a model of ONNX leaves open, as the configuration has them: numbers and ranges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon::predictor {

// A size, or one of a range that each call chooses.
struct SizeRange {
  int64_t min = 1, max = 1;
  bool is_open() const { return min != max; }
};

// "batch=8, sequence=1:64". Throws Error.
std::map<std::string, SizeRange> parse_sizes(const std::string& text);
// "x=1x3x224x224, y=1:8x4"; several of one name are those of a sequence's tensors, in order. Throws Error.
using NamedShapes = std::vector<std::pair<std::string, std::vector<SizeRange>>>;
NamedShapes parse_named_shapes(const std::string& text);

}  // namespace tenon::predictor
