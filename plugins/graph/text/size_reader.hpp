// SPDX-License-Identifier: Apache-2.0
// The part of the text form that speaks of sizes: dimensions, requirements, and expressions of
// both. An expression is computed as it is read, for the sizes that the reader was given.
#pragma once

#include <optional>

#include "program/dimensions.hpp"
#include "text/text_cursor.hpp"

namespace tenon::graph {

class SizeReader : protected TextCursor {
 protected:
  static constexpr int kMaxDepth = 32;  // of parentheses, and of regions inside one another

  // `sizes`: of the dimensions; NULL: those that were recorded.
  SizeReader(std::string_view text, const Sizes* sizes) : TextCursor(text), given_(sizes) {}

  // "dimension batch from 1 to 64 by 1 at 4", behind the first word.
  void read_dimension();
  // "require batch % 8 == 0", behind the first word. Throws Error where it does not hold.
  void read_requirement();
  bool has_dimensions() const { return !dimensions_.list.empty(); }
  std::optional<uint32_t> find_dimension(std::string_view name) const;
  // An integer, or where there are dimensions an expression of them.
  int64_t size() { return has_dimensions() ? sum(false) : integer<int64_t>(); }
  // A number of type float that was read, divided by or multiplied with what follows:
  // "1.0/(4*batch)".
  double scaled(double number);

  const Sizes* given_;
  Dimensions dimensions_;
  bool names_dimension_ = false;  // set where an expression names one

 private:
  static constexpr size_t kMaxDimensions = 16;

  // `//` and `%`, which round down, are in requirements alone; `/` leaves no rest.
  int64_t sum(bool rounds);
  int64_t product(bool rounds);
  int64_t factor(bool rounds);
  int64_t divisor(bool rounds);
  int64_t checked(bool overflows, const int64_t& value) const;
  std::string sizes_text() const;

  Sizes sizes_;  // of the dimensions
  int nested_ = 0;
};

}  // namespace tenon::graph
