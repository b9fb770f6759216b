// SPDX-License-Identifier: Apache-2.0
#include "reduce.hpp"

#include <type_traits>

#include "../stored_float.hpp"

namespace simulated {
namespace {

template <class C>
C combine(uint32_t reduction, C a, C b) {
  switch (reduction) {
    case kMin:
      return b < a || b != b ? b : a;
    case kMax:
      return b > a || b != b ? b : a;
    default:
      if constexpr (std::is_integral_v<C>) {  // wraps
        const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
        return static_cast<C>(reduction == kProduct ? x * y : x + y);
      } else {
        return reduction == kProduct ? a * b : a + b;
      }
  }
}

template <class T>
void reduce_as(void* dst, const void* const* sources, int ranks, uint64_t count,
               uint32_t reduction) {
  // 16-bit floating types are reduced in float32.
  using Compute = std::conditional_t<kIsStored<T>, float, T>;
  for (uint64_t i = 0; i < count; ++i) {
    auto total = static_cast<Compute>(static_cast<const T*>(sources[0])[i]);
    for (int rank = 1; rank < ranks; ++rank)
      total =
          combine(reduction, total, static_cast<Compute>(static_cast<const T*>(sources[rank])[i]));
    if (reduction == kMean) total = static_cast<Compute>(total / static_cast<Compute>(ranks));
    static_cast<T*>(dst)[i] = from_computed<T>(total);
  }
}

}  // namespace

uint64_t type_bytes(uint32_t type) {
  constexpr uint64_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  static_assert(sizeof kBytes / sizeof *kBytes == kTypes);
  if (type == kInt16 || type == kUint16) return 2;
  return type < kTypes ? kBytes[type] : 0;
}

bool can_reduce(uint32_t type) { return type < kFloat8E4M3; }

void reduce(void* dst, const void* const* sources, int ranks, uint64_t count, uint32_t type,
            uint32_t reduction) {
  auto as = [&]<class T>(T) { reduce_as<T>(dst, sources, ranks, count, reduction); };
  switch (type) {
    case kInt8:
      return as(int8_t());
    case kUint8:
      return as(uint8_t());
    case kInt16:
      return as(int16_t());
    case kInt32:
      return as(int32_t());
    case kUint32:
      return as(uint32_t());
    case kInt64:
      return as(int64_t());
    case kUint64:
      return as(uint64_t());
    case kFloat16:
      return as(Float16());
    case kFloat32:
      return as(float());
    case kFloat64:
      return as(double());
    case kBfloat16:
      return as(Bfloat16());
    default:
      return;
  }
}

}  // namespace simulated
