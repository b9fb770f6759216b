// SPDX-License-Identifier: Apache-2.0
// A region of mixed precision: what becomes of the floats of each operator.
#pragma once

#include <tenon/services/amp.h>
#include <tenon/kernel.hpp>

#include <vector>

namespace tenon::amp {

// What the definition of an operator says, TENON_AMP_*.
uint32_t class_in_definition(const tenon_op* op);

class Region {
 public:
  // One in which nothing is cast.
  Region() = default;
  explicit Region(const tenon_amp_options& options);

  bool casts() const { return dtype_ >= 0; }
  int32_t dtype() const { return dtype_; }
  // WIDEST at level 2 is LOW.
  uint32_t class_of(const tenon_op* op) const;

 private:
  int32_t dtype_ = -1;
  bool lowers_widest_ = false;
  std::vector<tenon_amp_move> moves_;  // few: looked through at every call
};

// Refuses what cannot be meant.
tenon_status check_options(const tenon_amp_options& options, tenon_err* err);

}  // namespace tenon::amp
