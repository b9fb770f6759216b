// SPDX-License-Identifier: Apache-2.0
// The count of calls that keeps an operator from being taken out. A call of an operator that programs may define is
// counted before anything of the definition is read, which another thread may be changing.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

// Counts a call of `op` for as long as it lives; the thread holds the GIL at both ends. False, with a Python error
// (LookupError): the operator is being taken out, or has been.
class CountedCall {
 public:
  explicit CountedCall(const OperatorObject& op);
  ~CountedCall() {
    if (calls_) --*calls_;
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;
  explicit operator bool() const { return calls_; }

 private:
  int* calls_ = nullptr;
};

}  // namespace tenon::python
