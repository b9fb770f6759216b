// SPDX-License-Identifier: Apache-2.0
// The float8 formats that are stored only, and their conversions to and from float32. Like those of
// reduced_float.hpp they are branch-free and usable in device code.
#pragma once

#include <tenon/reduced_float.hpp>

namespace tenon {

// FNUZ: finite, NaN and unsigned zero. The pattern that would be -0 is the only NaN, there is no infinity, and the
// bias is one more than IEEE's. Values too large become NaN.
template <int Exponent, int Mantissa>
struct Float8Fnuz {
  uint8_t bits;

  static constexpr int kBias = 1 << (Exponent - 1);
  static constexpr int kShift = 23 - Mantissa;
  static constexpr uint32_t kMagnitude = 0x7f;
  static constexpr uint32_t kNan = 0x80;

  Float8Fnuz() = default;
  TENON_HOST_DEVICE explicit Float8Fnuz(float x) : bits(narrow(x)) {}

  TENON_HOST_DEVICE operator float() const {
    const uint32_t magnitude = bits & kMagnitude;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
    // As if the exponent field had float's bias, then corrected: denormals come out right.
    const float scaled = std::bit_cast<float>(magnitude << kShift) *
                         std::bit_cast<float>(static_cast<uint32_t>(254 - kBias) << 23);
    const uint32_t number = std::bit_cast<uint32_t>(scaled) | sign;
    return std::bit_cast<float>(bits == kNan ? 0x7fc00000u : number);
  }

 private:
  TENON_HOST_DEVICE static uint8_t narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t magnitude = bits & 0x7fffffffu;
    // To nearest even, as in ReducedFloat.
    const uint32_t odd = (magnitude >> kShift) & 1;
    const uint32_t normal = (magnitude + ((1u << (kShift - 1)) - 1) + odd -
                             (static_cast<uint32_t>(127 - kBias) << 23)) >>
                            kShift;
    const float magic =
        std::bit_cast<float>(static_cast<uint32_t>(127 + 23 + 1 - kBias - Mantissa) << 23);
    const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + magic) -
                              std::bit_cast<uint32_t>(magic);
    const uint32_t rounded =
        magnitude < (static_cast<uint32_t>(128 - kBias) << 23) ? denormal : normal;
    const uint32_t sign = rounded == 0 ? 0u : (bits >> 24) & 0x80u;
    return static_cast<uint8_t>(rounded > kMagnitude ? kNan : rounded | sign);
  }
};

using Float8E4M3Fnuz = Float8Fnuz<4, 3>;
using Float8E5M2Fnuz = Float8Fnuz<5, 2>;

// Powers of two, the scales of OCP MX: 2^(bits - 127), and 255 is NaN. There is neither a sign nor 0: 0, negative
// numbers, infinity and what is too large become NaN, positive numbers too small the smallest power.
struct Float8E8M0 {
  uint8_t bits;

  static constexpr uint32_t kNan = 0xff;

  Float8E8M0() = default;
  TENON_HOST_DEVICE explicit Float8E8M0(float x) {
    const uint32_t wide = std::bit_cast<uint32_t>(x);
    // The nearest power; halfway between two, at 1.5 times the lower one, the greater. Negative numbers are above all
    // others as unsigned integers. Of the denormal floats those above 2^-127 become 2^-126: so do ml_dtypes and PyTorch.
    const uint32_t normal = (wide + 0x400000u) >> 23;
    const uint32_t small = wide > 0x400000u ? 1u : 0u;
    const uint32_t power = wide < 0x800000u ? small : normal;
    bits = static_cast<uint8_t>(wide == 0 || wide >= 0x7f400000u ? kNan : power);
  }
  TENON_HOST_DEVICE operator float() const {
    const uint32_t power = bits == 0 ? 0x400000u : static_cast<uint32_t>(bits) << 23;
    return std::bit_cast<float>(bits == kNan ? 0x7fc00000u : power);
  }
};

// X(id, type): the C++ type of each dtype of less than 32 bits with one floating number an element. Each converts to and
// from float32.
#define TENON_SMALL_FLOATS(X)            \
  X(F8E4M3, ::tenon::Float8E4M3)         \
  X(F8E5M2, ::tenon::Float8E5M2)         \
  X(F16, ::tenon::Float16)               \
  X(BF16, ::tenon::BFloat16)             \
  X(F8E4M3FNUZ, ::tenon::Float8E4M3Fnuz) \
  X(F8E5M2FNUZ, ::tenon::Float8E5M2Fnuz) \
  X(F8E8M0, ::tenon::Float8E8M0)

}  // namespace tenon
