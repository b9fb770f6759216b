// SPDX-License-Identifier: Apache-2.0
// Element types of results by the dtype rules `out: accumulate` and `out: float` of the operator
// files.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon::cpu {

// Sums and products accumulate bool and signed integers in int64, unsigned integers in uint64.
template <class T>
using accumulate_t = std::conditional_t<
    !std::is_integral_v<T>, T,
    std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, int64_t, uint64_t>>;

// Means of bool and integers are float32.
template <class T>
using inexact_t = std::conditional_t<std::is_integral_v<T>, float, T>;

}  // namespace tenon::cpu
