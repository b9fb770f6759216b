// SPDX-License-Identifier: Apache-2.0
// float16, bfloat16 and the float8 types as storage: arithmetic on them happens in float32. The
// conversions are branch-free, so that loops over them vectorise. Usable in device code of CUDA
// (with --expt-relaxed-constexpr) and HIP.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TENON_HOST_DEVICE __host__ __device__
#else
#define TENON_HOST_DEVICE
#endif

namespace tenon {

// A binary float of 1 sign, `Exponent` and `Mantissa` bits in an unsigned integer. Finite: no
// infinity, and only the pattern of all ones is NaN (E4M3); values too large become NaN, else
// infinity.
template <class Storage, int Exponent, int Mantissa, bool Finite>
struct ReducedFloat {
  Storage bits;

  static constexpr int kBias = (1 << (Exponent - 1)) - 1;
  static constexpr int kShift = 23 - Mantissa;
  static constexpr uint32_t kSign = 1u << (Exponent + Mantissa);
  static constexpr uint32_t kMagnitude = kSign - 1;
  static constexpr uint32_t kInfinity = ((1u << Exponent) - 1) << Mantissa;
  // Largest finite magnitude; the first pattern above it is infinity, or NaN where there is none.
  static constexpr uint32_t kLargest = Finite ? kMagnitude - 1 : kInfinity - 1;

  ReducedFloat() = default;
  TENON_HOST_DEVICE explicit ReducedFloat(float x) : bits(narrow(x)) {}

  TENON_HOST_DEVICE operator float() const {
    const uint32_t magnitude = bits & kMagnitude;
    const uint32_t sign = static_cast<uint32_t>(bits & kSign) << (31 - Exponent - Mantissa);
    // As if the exponent field had float's bias, then corrected: denormals come out right.
    const float scaled = std::bit_cast<float>(magnitude << kShift) *
                         std::bit_cast<float>(static_cast<uint32_t>(254 - kBias) << 23);
    const uint32_t special = (magnitude << kShift) | 0x7f800000u;
    const uint32_t nan_or_infinity = Finite ? 0x7fc00000u : special;
    const uint32_t result =
        magnitude > kLargest ? nan_or_infinity : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(result | sign);
  }

 private:
  TENON_HOST_DEVICE static Storage narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t sign = (bits >> (31 - Exponent - Mantissa)) & kSign;
    // Round to nearest even: normal numbers by adding half a unit less the even bit...
    const uint32_t odd = (magnitude >> kShift) & 1;
    const uint32_t normal = (magnitude + ((1u << (kShift - 1)) - 1) + odd -
                             (static_cast<uint32_t>(127 - kBias) << 23)) >>
                            kShift;
    // ... and denormal ones by the addition of a number whose unit is the smallest denormal.
    const float magic =
        std::bit_cast<float>(static_cast<uint32_t>(127 + 23 + 1 - kBias - Mantissa) << 23);
    const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + magic) -
                              std::bit_cast<uint32_t>(magic);
    uint32_t result = magnitude < (static_cast<uint32_t>(128 - kBias) << 23) ? denormal : normal;
    result = result > kLargest ? kLargest + 1 : result;
    result = magnitude > 0x7f800000u ? (Finite ? kMagnitude : kInfinity | (1u << (Mantissa - 1)))
                                     : result;
    return static_cast<Storage>(result | sign);
  }
};

using Float16 = ReducedFloat<uint16_t, 5, 10, false>;
using Float8E5M2 = ReducedFloat<uint8_t, 5, 2, false>;
using Float8E4M3 = ReducedFloat<uint8_t, 4, 3, true>;

// float32 cut in half.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  TENON_HOST_DEVICE explicit BFloat16(float x) {
    const uint32_t wide = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (wide + 0x7fffu + ((wide >> 16) & 1)) >> 16;
    const uint32_t nan = (wide >> 16) | 0x40u;
    bits = static_cast<uint16_t>((wide & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
  TENON_HOST_DEVICE operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace tenon
