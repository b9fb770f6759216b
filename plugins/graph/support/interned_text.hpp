// SPDX-License-Identifier: Apache-2.0
// A text that is kept once, until the process ends: names of operators and of source files. Programs have many steps and few
// of these, and hold a pointer.
#pragma once

#include <string>
#include <string_view>

namespace tenon::graph {

class InternedText {
 public:
  InternedText() = default;
  explicit InternedText(std::string_view text);  // looks it up
  InternedText& operator=(std::string_view text) { return *this = InternedText(text); }

  const std::string& text() const { return *text_; }
  const char* c_str() const { return text_->c_str(); }
  bool empty() const { return text_->empty(); }
  friend bool operator==(const InternedText&,
                         const InternedText&) = default;  // each text is there once
  friend bool operator==(const InternedText& a, std::string_view b) { return *a.text_ == b; }

 private:
  static const std::string kNone;

  const std::string* text_ = &kNone;
};

}  // namespace tenon::graph
