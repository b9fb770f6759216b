// SPDX-License-Identifier: Apache-2.0
// Uniform numbers from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): block i of the
// stream is a function of seed and i alone, so equal seeds give equal numbers on every device.
#include <tenon/uniform_range.hpp>

#include "kernels.hpp"
#include "launch.hpp"

namespace reference {
namespace {

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t block) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
  auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53} * c[0], p1 = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

// A block serves two doubles or four numbers of any other type; each in [0, 1).
double unit(uint32_t low, uint32_t high) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
float unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace

tenon_status uniform(tenon_ctx* ctx, const int64_t*, uint64_t, double low, double high, int32_t,
                     int32_t, tenon_tensor* out, tenon_err* err) {
  const int64_t per_block = out->dtype == TENON_DTYPE_F64 ? 2 : 4;
  const auto blocks = static_cast<uint64_t>((out->numel + per_block - 1) / per_block);
  uint64_t seed, offset;  // taken now, in the order of the calls
  tenon::host->random_reserve(ctx, blocks, &seed, &offset);
  return launch(ctx, "uniform", err, [=, to = out->data, n = out->numel, dtype = out->dtype] {
    const tenon::UniformRange range(dtype, low, high);
    with_type(dtype, [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        for (int64_t i = 0; i < n; ++i) {
          const auto bits = philox(seed, offset + static_cast<uint64_t>(i / per_block));
          const auto part = static_cast<size_t>(i % per_block);
          if constexpr (std::is_same_v<T, double>) {
            static_cast<T*>(to)[i] = range(unit(bits[2 * part], bits[2 * part + 1]));
          } else {
            static_cast<T*>(to)[i] = T(static_cast<float>(range(unit(bits[part]))));
          }
        }
      }
    });
  });
}

}  // namespace reference
