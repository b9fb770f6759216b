// SPDX-License-Identifier: Apache-2.0
// libdnnl, opened when a kernel is considered for the first time.
#pragma once

#include "api.hpp"

namespace tenon::onednn {

// NULL: there is no usable library; library_problem() says why.
const Api* api();
const char* library_name();     // "oneDNN 2.6.3"; NULL without a library
const char* library_problem();  // NULL with one

// oneDNN of Debian and of most wheels runs on OpenMP. In this scope its calls on this thread use as
// many threads as Tenon's.
class ThreadScope {
 public:
  ThreadScope();
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

}  // namespace tenon::onednn
