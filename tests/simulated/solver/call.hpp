// SPDX-License-Identifier: Apache-2.0
// What the functions of the solver's stand-ins have in common: handles, checks of addresses, and work that is queued.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "../current_device.hpp"
#include "../failures.hpp"
#include "../objects.hpp"
#include "dense.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

namespace simulated {

struct SolverHandle {
  int device = -1;
  void* stream = nullptr;
  bool is_busy = false;
};

// Each library knows its own handles alone.
[[gnu::visibility("hidden")]] inline Objects<SolverHandle> solver_handles;

// A handle in use: two threads must not call with one at once, nor with that of another device.
class SolverUse {
 public:
  explicit SolverUse(void* handle) : handle_(handle) {
    solver_handles.change(handle, [&](SolverHandle& each) {
      if (each.is_busy || each.device != current_device()) return;
      each.is_busy = holds_ = true;
      stream = each.stream;
    });
  }
  ~SolverUse() {
    if (holds_) solver_handles.change(handle_, [](SolverHandle& each) { each.is_busy = false; });
  }
  explicit operator bool() const { return holds_; }

  void* stream = nullptr;

 private:
  void* handle_;
  bool holds_ = false;
};

template <class T>
T* on_device(const T* memory, size_t count) {
  return static_cast<T*>(simulated_access(memory, count * sizeof(T)));
}
// Matrix of m rows and n columns, `ld` elements from one column to the next.
template <class T>
T* matrix_on_device(const T* memory, int m, int n, int ld) {
  return on_device(memory,
                   static_cast<size_t>(n - 1) * static_cast<size_t>(ld) + static_cast<size_t>(m));
}
inline bool fits(int m, int n, int ld) { return m >= 1 && n >= 1 && ld >= m; }

// Queues work(), which finds nothing where memory was freed meanwhile: a device would fault.
template <class Work>
bool enqueue(void* stream, Work work) {
  auto queued = std::make_unique<Work>(std::move(work));
  return simulated_enqueue(
             stream, [](void* user) { (*static_cast<Work*>(user))(); }, queued.release(),
             [](void* user) { delete static_cast<Work*>(user); }) == 0;
}

// A library leaves anything in the memory that it works in.
template <class T>
void spoil(T* work, size_t count) {
  if (T* memory = on_device(work, count))
    std::memset(static_cast<void*>(memory), 0xff, count * sizeof(T));
}

}  // namespace simulated
