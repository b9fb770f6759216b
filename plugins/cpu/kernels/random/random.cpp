// SPDX-License-Identifier: Apache-2.0
// uniform, normal and randint from Philox4x32-10 (tenon/philox.hpp). A block of 128 bits gives
// four float32 numbers or two of a wider type; element e uses block e / 4 or e / 2, so results do
// not depend on how threads divide the work.
#include "kernel.hpp"
#include "math/exponential.hpp"
#include "math/trigonometric.hpp"
#include <tenon/philox.hpp>

#include <tenon/signatures/random.h>

#include <cmath>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

double unit64(uint32_t low, uint32_t high) {  // 53 bits, in [0, 1)
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
float unit32(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// out[e] = part(block, e % per_block) for the device's next blocks.
template <int kPerBlock, class T, class Part>
void fill(tenon_ctx* ctx, const tenon_tensor* out, int64_t work, Part part) {
  const int64_t blocks = (out->numel + kPerBlock - 1) / kPerBlock;
  uint64_t seed, offset;
  host->random_reserve(ctx, static_cast<uint64_t>(blocks), &seed, &offset);
  const int size = kDtypeSize[out->dtype];
  parallel(blocks, work * kPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto bits = philox(seed, offset + static_cast<uint64_t>(block));
      const int64_t first = block * kPerBlock, last = std::min(out->numel, first + kPerBlock);
      for (int64_t e = first; e < last; ++e) {
        const T value = part(bits, static_cast<int>(e - first));
        if (is_low_precision(out->dtype)) {
          if constexpr (std::is_same_v<T, float>)
            narrow_one(out->dtype, value, data_of<char>(out) + e * size);
        } else {
          data_of<T>(out)[e] = value;
        }
      }
    }
  });
}

tenon_status uniform(tenon_ctx* ctx, const int64_t*, uint64_t, double low, double high, int32_t,
                     int32_t, tenon_tensor* out, tenon_err*) {
  const double width = high - low;
  if (out->dtype == TENON_DTYPE_F64) {
    fill<2, double>(ctx, out, 16, [=](const auto& bits, int i) {
      return low +
             width * unit64(bits[static_cast<size_t>(2 * i)], bits[static_cast<size_t>(2 * i + 1)]);
    });
  } else {
    // Rounding must not lift a number to `high`.
    const float last = low < high
                           ? std::nextafter(static_cast<float>(high), static_cast<float>(low))
                           : static_cast<float>(high);
    fill<4, float>(ctx, out, 8, [=](const auto& bits, int i) {
      const float x = static_cast<float>(low + width * unit32(bits[static_cast<size_t>(i)]));
      return low < high ? std::min(x, last) : x;
    });
  }
  return TENON_OK;
}
TENON_BOX_uniform(uniform_boxed, uniform);

// Box-Muller transform: two uniform numbers, the first not 0, give two normal ones.
double normal_part(double u, double angle, bool second) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - u));
  const double turn = 6.283185307179586 * angle;
  return radius * (second ? std::sin(turn) : std::cos(turn));
}

// The same in float32, for the blocks of 128 bits from `first_block` on: the functions run over
// arrays.
constexpr int64_t kNormalBlocks = 64;
void normal_floats(uint64_t seed, uint64_t first_block, int64_t blocks, float* out) {
  constexpr int64_t kPairs = 2 * kNormalBlocks;
  float radius[kPairs], turn[kPairs], sine[kPairs];
  const int64_t pairs = 2 * blocks;
  for (int64_t block = 0; block < blocks; ++block) {
    const auto bits = philox(seed, first_block + static_cast<uint64_t>(block));
    for (size_t i = 0; i < 2; ++i) {
      radius[2 * block + static_cast<int64_t>(i)] = 1 - unit32(bits[2 * i]);
      turn[2 * block + static_cast<int64_t>(i)] = 6.2831853f * unit32(bits[2 * i + 1]);
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < pairs; ++i) radius[i] = std::sqrt(-2 * math::plain_log(radius[i]));
#pragma GCC ivdep
  for (int64_t i = 0; i < pairs; ++i) sine[i] = math::plain_sin(turn[i]);
#pragma GCC ivdep
  for (int64_t i = 0; i < pairs; ++i) turn[i] = math::plain_cos(turn[i]);
  for (int64_t i = 0; i < pairs; ++i) {
    out[2 * i] = radius[i] * turn[i];
    out[2 * i + 1] = radius[i] * sine[i];
  }
}

tenon_status normal(tenon_ctx* ctx, const int64_t*, uint64_t, double mean, double std, int32_t,
                    int32_t, tenon_tensor* out, tenon_err* err) {
  if (!(std >= 0))
    return fail_format(err, TENON_INVALID_ARGUMENT, "[normal] expected std of at least 0, got %g",
                       std);
  if (out->dtype == TENON_DTYPE_F64) {
    fill<2, double>(ctx, out, 64, [=](const auto& bits, int i) {
      return mean + std * normal_part(unit64(bits[0], bits[1]), unit64(bits[2], bits[3]), i == 1);
    });
    return TENON_OK;
  }
  constexpr int64_t kNumbers = 4 * kNormalBlocks;
  const int64_t blocks = (out->numel + 3) / 4;
  uint64_t seed, offset;
  host->random_reserve(ctx, static_cast<uint64_t>(blocks), &seed, &offset);
  const int64_t chunks = (blocks + kNormalBlocks - 1) / kNormalBlocks;
  const float shift = static_cast<float>(mean), scale = static_cast<float>(std);
  const int size = kDtypeSize[out->dtype];
  parallel(chunks, 16 * kNumbers, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kNormalBlocks, start = chunk * kNumbers;
      const int64_t count = std::min(kNumbers, out->numel - start);
      float numbers[kNumbers];
      normal_floats(seed, offset + static_cast<uint64_t>(first),
                    std::min(kNormalBlocks, blocks - first), numbers);
      for (int64_t i = 0; i < count; ++i) {
        const float value = shift + scale * numbers[i];
        if (is_low_precision(out->dtype))
          narrow_one(out->dtype, value, data_of<char>(out) + (start + i) * size);
        else
          data_of<float>(out)[start + i] = value;
      }
    }
  });
  return TENON_OK;
}
TENON_BOX_normal(normal_boxed, normal);

tenon_status randint(tenon_ctx* ctx, int64_t low, int64_t high, const int64_t*, uint64_t, int32_t,
                     int32_t, tenon_tensor* out, tenon_err* err) {
  if (low >= high && out->numel > 0)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[randint] expected low < high, got %lld and %lld",
                       static_cast<long long>(low), static_cast<long long>(high));
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  with_type(out->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      fill<2, T>(ctx, out, 16, [=](const auto& bits, int i) {
        const uint64_t word =
            uint64_t{bits[static_cast<size_t>(2 * i + 1)]} << 32 | bits[static_cast<size_t>(2 * i)];
        // Multiplication and shift (Lemire, "Fast Random Integer Generation in an Interval", 2019,
        // without rejection): the upper 64 bits of word * range. The bias is at most range / 2^64.
        const uint64_t picked =
            static_cast<uint64_t>((static_cast<unsigned __int128>(word) * range) >> 64);
        return static_cast<T>(static_cast<uint64_t>(low) + picked);
      });
    }
  });
  return TENON_OK;
}
TENON_BOX_randint(randint_boxed, randint);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_uniform(uniform, nullptr, kFloats, 0, 0),
                                     TENON_KERNEL_normal(normal, nullptr, kFloats, 0, 0),
                                     TENON_KERNEL_randint(randint, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList random_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
