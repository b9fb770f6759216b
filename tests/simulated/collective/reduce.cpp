// SPDX-License-Identifier: Apache-2.0
#include "reduce.hpp"

#include <bit>
#include <type_traits>

namespace simulated {
namespace {

// 16-bit floating types are reduced in float32.
struct Float16 {
  uint16_t bits;
  operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size < 0x400u)
      return std::bit_cast<float>(sign |
                                  std::bit_cast<uint32_t>(static_cast<float>(size) * 0x1p-24f));
    return std::bit_cast<float>(sign | ((size << 13) + 0x38000000u));
  }
  static Float16 from(float x) {  // to nearest even
    const auto whole = std::bit_cast<uint32_t>(x);
    const uint32_t sign = whole >> 16 & 0x8000u, size = whole & 0x7fffffffu;
    uint32_t result;
    if (size > 0x7f800000u)
      result = 0x7e00u;
    else if (size >= 0x477ff000u)
      result = 0x7c00u;
    else if (size < 0x38800000u)
      result = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    else
      result = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    return {static_cast<uint16_t>(sign | result)};
  }
};

struct Bfloat16 {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static Bfloat16 from(float x) {
    const auto whole = std::bit_cast<uint32_t>(x);
    if (x != x) return {static_cast<uint16_t>(whole >> 16 | 0x40u)};
    return {static_cast<uint16_t>((whole + 0x7fffu + (whole >> 16 & 1u)) >> 16)};
  }
};

template <class T>
constexpr bool kIsStored = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

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
  using Compute = std::conditional_t<kIsStored<T>, float, T>;
  for (uint64_t i = 0; i < count; ++i) {
    auto total = static_cast<Compute>(static_cast<const T*>(sources[0])[i]);
    for (int rank = 1; rank < ranks; ++rank)
      total =
          combine(reduction, total, static_cast<Compute>(static_cast<const T*>(sources[rank])[i]));
    if (reduction == kMean) total = static_cast<Compute>(total / static_cast<Compute>(ranks));
    if constexpr (kIsStored<T>)
      static_cast<T*>(dst)[i] = T::from(total);
    else
      static_cast<T*>(dst)[i] = total;
  }
}

}  // namespace

uint64_t type_bytes(uint32_t type) {
  constexpr uint64_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  static_assert(sizeof kBytes / sizeof *kBytes == kTypes);
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
