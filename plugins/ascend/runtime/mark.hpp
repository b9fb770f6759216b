// SPDX-License-Identifier: Apache-2.0
// Ranges in the timelines of msprof and other tools of MindStudio, with the names of operators: mstx, whose prototypes are
// those of Ascend/mstx (c/include/mstx/ms_tools_ext.h). The ranges are on the host and, where the stream is not captured,
// on the chip.
#pragma once

#include "library/acl.hpp"

namespace ascend {

// Whether TENON_ASCEND_MARKS names the library of mstx.
bool marks_operators();

// One range, from begin() to the destructor. Without a tool that listens, mstx gives out no range.
class Mark {
 public:
  Mark() = default;
  ~Mark() {
    if (range_) end();
  }
  Mark(const Mark&) = delete;

  // Its name is "tenon::exp: aclnnExp". Where `stream` is nullptr, it is on the host alone.
  void begin(const char* op, const char* function, Stream stream) {
    if (marks_operators()) [[unlikely]]
      begin_range(op, function, stream);
  }

 private:
  void begin_range(const char* op, const char* function, Stream stream);
  void end() const;

  uint64_t range_ = 0;
};

}  // namespace ascend
