// SPDX-License-Identifier: Apache-2.0
// A stack that the calling thread can switch to and come back from.
#pragma once

#include <cstddef>

namespace simulated {

class Fiber {
 public:
  static constexpr size_t kStackBytes = 256 << 10;

  // A fiber that begins with `main` when it is entered for the first time. Stacks are kept for
  // reuse.
  static Fiber* take(void (*main)());
  static void give_back(Fiber* fiber);

  void enter();  // runs it until it leaves
  void leave();  // on the fiber: returns from enter()

 private:
  Fiber() = default;
  char* stack_ = nullptr;
  void* inside_ = nullptr;
  void* outside_ = nullptr;
  void (*main_)() = nullptr;

  void prepare();
  static void begin();
};

}  // namespace simulated
