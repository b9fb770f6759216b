// SPDX-License-Identifier: Apache-2.0
// Regular expressions in the syntax of RE2, matched against a whole text in time that is linear in it: as a set of states that goes
// from letter to letter.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tenon::onnx {

class Regex {
 public:
  // Throws Error: what is no expression, and what is one and not there (classes \p, flags other than i and s).
  explicit Regex(const std::u32string& pattern);
  bool matches(const std::u32string& text) const;

  // Letters, as ranges.
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool is_negated = false;
    bool has(char32_t letter) const;
  };
  struct State {
    enum Kind { kLetters, kSplit, kBegin, kEnd, kBoundary, kNoBoundary, kAccept };
    Kind kind = kAccept;
    Set set;
    size_t next = 0, other = 0;  // `other`: of kSplit
  };

 private:
  void follow(size_t state, size_t at, const std::u32string& text, std::vector<size_t>& states,
              std::vector<size_t>& seen, size_t mark) const;

  std::vector<State> states_;
  size_t start_ = 0;
};

}  // namespace tenon::onnx
