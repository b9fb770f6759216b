// SPDX-License-Identifier: Apache-2.0
// What the functions of the simulated XDNN share: its types, its checks, and how work is queued. Prototypes of
// all functions are those of the headers xpu/refactor/*.h with sizes of 64 bits.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "../stored_float.hpp"

struct float16 {
  simulated::Float16 stored;
};
struct bfloat16 {
  simulated::Bfloat16 stored;
};

namespace baidu::xpu::api {

struct __attribute__((visibility("default"))) Context {
  int device;
};

constexpr int kSuccess = 0, kInvalidParameter = 1;

// Numbers of floating types are computed in double, the others in int64_t.
template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, float> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double, int64_t>;

template <class T>
Wide<T> load(const T& x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return static_cast<float>(x.stored);
  else
    return static_cast<Wide<T>>(x);
}
template <class T, class V>
void store(T& to, V value) {
  if constexpr (std::is_same_v<T, float16>)
    to.stored = simulated::Float16::from(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bfloat16>)
    to.stored = simulated::Bfloat16::from(static_cast<float>(value));
  else
    to = static_cast<T>(value);
}

using Shape = std::vector<int64_t>;
int64_t numel(const Shape& shape);
bool is_shape(const Shape& shape);  // at least one axis, all of them longer than 0

// Memory that a function reads or writes.
struct Range {
  const void* address;
  int64_t bytes;
};
template <class T>
Range range(const T* address, int64_t count) {
  return {address, count * static_cast<int64_t>(sizeof(T))};
}

// Checks context and ranges, and queues `work`, which gets the bytes behind each range.
int queue(Context* ctx, const char* name, std::vector<Range> ranges,
          std::function<void(char* const*)> work);

// Index of the i-th element of `to` in an array of shape `from`, which broadcasts to it and has as many axes.
int64_t broadcast_index(int64_t i, const Shape& from, const Shape& to);
// The shape to which both broadcast; empty: they do not.
Shape broadcast_shape(const Shape& x, const Shape& y);

}  // namespace baidu::xpu::api

#define XDNN_EXPORT __attribute__((visibility("default")))
#define XDNN_REQUIRE(condition) \
  if (!(condition)) return kInvalidParameter
