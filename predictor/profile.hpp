// SPDX-License-Identifier: Apache-2.0
// How long steps took, summed over runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "model.hpp"

namespace tenon::predictor {

class Profile {
 public:
  // Steps [begin, end) took this long once.
  void add(uint32_t begin, uint32_t end, std::chrono::nanoseconds time);
  void add_run(std::chrono::nanoseconds time);
  void clear() { *this = {}; }
  // The longest first.
  std::string text(const Model& model) const;

 private:
  struct Sum {
    uint64_t count = 0;
    std::chrono::nanoseconds time{0};
  };
  std::map<std::pair<uint32_t, uint32_t>, Sum> steps_;
  Sum runs_;
};

}  // namespace tenon::predictor
