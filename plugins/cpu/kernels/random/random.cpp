// SPDX-License-Identifier: Apache-2.0
// uniform, normal and randint from Philox4x32-10 (random/philox.hpp). A block of 128 bits gives
// four float32 numbers or two of a wider type; element e uses block e / 4 or e / 2, so results do
// not depend on how threads divide the work.
#include "elementwise/low_precision.hpp"
#include "kernel.hpp"
#include "random/box_muller.hpp"
#include "random/philox.hpp"

#include <tenon/signatures/random.h>
#include <tenon/uniform_range.hpp>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

double unit64(uint32_t low, uint32_t high) {  // 53 bits, in [0, 1)
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
float unit32(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Calls run(words, e, count) for pieces of the device's next blocks: `words` are those that the elements from
// `e` on take.
template <int kPerBlock, class Run>
void for_pieces(tenon_ctx* ctx, const tenon_tensor* out, int64_t work, Run run) {
  const int64_t blocks = (out->numel + kPerBlock - 1) / kPerBlock;
  uint64_t seed, offset;
  host->random_reserve(ctx, static_cast<uint64_t>(blocks), &seed, &offset);
  constexpr int64_t elements = kPhiloxBlocks * kPerBlock;
  const auto piece = [&](int64_t i) {
    uint32_t words[4 * kPhiloxBlocks];
    const uint64_t first = offset + static_cast<uint64_t>(i * kPhiloxBlocks);
    const int64_t left = out->numel - i * elements;
    if (left <= kPerBlock) {
      const auto block = philox(seed, first);
      std::copy(block.begin(), block.end(), words);
    } else {
      philox_blocks(seed, first, words);
    }
    run(words, i * elements, std::min(left, elements));
  };
  parallel((out->numel + elements - 1) / elements, work * elements,
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) piece(i);
           });
}

// out[e] = part(words of e).
template <int kPerBlock, class T, class Part>
void fill(tenon_ctx* ctx, const tenon_tensor* out, int64_t work, Part part) {
  const int size = kDtypeSize[out->dtype];
  for_pieces<kPerBlock>(ctx, out, work, [&](const uint32_t* words, int64_t first, int64_t count) {
    constexpr int kWords = 4 / kPerBlock;
    if constexpr (std::is_same_v<T, float>) {
      if (is_low_precision(out->dtype)) {
        float wide[kPerBlock * kPhiloxBlocks];
        for (int64_t i = 0; i < count; ++i) wide[i] = part(words + kWords * i);
        narrow(out->dtype, wide, data_of<char>(out) + first * size, size, count);
        return;
      }
    }
    T* to = data_of<T>(out) + first;
    for (int64_t i = 0; i < count; ++i) to[i] = part(words + kWords * i);
  });
}

tenon_status uniform(tenon_ctx* ctx, const int64_t*, uint64_t, double low, double high, int32_t,
                     int32_t, tenon_tensor* out, tenon_err*) {
  const UniformRange range(out->dtype, low, high);
  if (out->dtype == TENON_DTYPE_F64) {
    fill<2, double>(ctx, out, 16,
                    [=](const uint32_t* words) { return range(unit64(words[0], words[1])); });
  } else if (low == 0 && high == 1) {
    const auto last = static_cast<float>(range.last);  // in float32, of all numbers that there are
    fill<4, float>(ctx, out, 2,
                   [=](const uint32_t* words) { return std::min(unit32(words[0]), last); });
  } else {
    fill<4, float>(ctx, out, 4, [=](const uint32_t* words) {
      return static_cast<float>(range(unit32(words[0])));
    });
  }
  return TENON_OK;
}
TENON_BOX_uniform(uniform_boxed, uniform);

tenon_status normal(tenon_ctx* ctx, const int64_t*, uint64_t, double mean, double std, int32_t,
                    int32_t, tenon_tensor* out, tenon_err* err) {
  if (!(std >= 0))
    return fail_format(err, TENON_INVALID_ARGUMENT, "[normal] expected std of at least 0, got %g",
                       std);
  if (out->dtype == TENON_DTYPE_F64) {
    for_pieces<2>(ctx, out, 16, [&](const uint32_t* words, int64_t first, int64_t count) {
      double numbers[2 * kPhiloxBlocks];
      normal_numbers(words, (count + 1) / 2, mean, std, numbers);
      std::copy_n(numbers, count, data_of<double>(out) + first);
    });
    return TENON_OK;
  }
  const int size = kDtypeSize[out->dtype];
  for_pieces<4>(ctx, out, 8, [&](const uint32_t* words, int64_t first, int64_t count) {
    float numbers[4 * kPhiloxBlocks];
    normal_numbers(words, (count + 1) / 2, static_cast<float>(mean), static_cast<float>(std),
                   numbers);
    if (is_low_precision(out->dtype)) {
      narrow(out->dtype, numbers, data_of<char>(out) + first * size, size, count);
    } else {
      std::copy_n(numbers, count, data_of<float>(out) + first);
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
      fill<2, T>(ctx, out, 16, [=](const uint32_t* words) {
        const uint64_t word = uint64_t{words[1]} << 32 | words[0];
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
