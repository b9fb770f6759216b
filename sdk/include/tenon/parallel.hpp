// SPDX-License-Identifier: Apache-2.0
// The host's thread pool as a loop over a lambda.
#pragma once

#include <tenon/tensor.hpp>

#include <algorithm>
#include <type_traits>

namespace tenon {

// Work, in units of one float addition, below which a second thread does not pay.
inline constexpr int64_t kSerialWork = 32768;

// f(begin, end) over [0, n), each item costing `work` units. Ranges reach f in any order.
template <class F>
inline void parallel(int64_t n, int64_t work, F&& f) {
  work = std::max<int64_t>(work, 1);
  if (n <= 1 || n <= kSerialWork / work) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kSerialWork / 2 / work);
  using Body = std::remove_reference_t<F>;
  host->parallel_for(
      0, n, grain,
      [](void* body, int64_t begin, int64_t end) { (*static_cast<Body*>(body))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace tenon
