// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers with weights in blocks. Threads divide the rows of the weight; of each panel of them, parts
// along k are decoded into the L1 cache and multiplied by all rows of x. The codes of a group are added up as integers,
// exactly, and an element of the result is a chain of multiply-adds over the groups along k, whatever rows are beside it.
#include "llm/linear_blocks_int8.hpp"

#include "kernel.hpp"
#include "llm/avx2_products.hpp"
#include "llm/int8_rows.hpp"
#include "llm/large_panels.hpp"
#include "llm/read_ahead.hpp"
#include "parallel_scratch.hpp"
#include "simd/vnni.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Rows of x for each reading of a panel: what the registers have accumulators for.
constexpr int kTile = kVectorBytes == 64 ? 8 : kVectorBytes == 32 ? 4 : 2;
constexpr int kPanelsOfTask =
    4;  // where x has more rows than a tile, each is read for so many panels

#ifdef __AVX512F__
// Four codes of each row of a panel times four codes of one row of x, which are signed: added to `sums` exactly.
struct Vnni {
  template <bool wide>
  [[gnu::always_inline]] static void add(IntLanes& sums, IntLanes codes, const int8_t* x) {
    // The build does not assume VNNI, so inline assembly names the instruction.
    IntLanes result = sums;
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(result)
        : "v"(codes), "m"(*reinterpret_cast<const int32_t*>(x)));
    sums = result;
  }
};
#endif

// The same without VNNI. `wide`: codes have eight bits, so that sums of two products do not fit 16.
struct Pairs {
#if defined(__AVX512F__)
  template <bool wide>
  [[gnu::always_inline]] static void add(IntLanes& sums, IntLanes codes, const int8_t* x) {
    int32_t quad;
    std::memcpy(&quad, x, 4);
    const __m512i c = __m512i(codes), y = _mm512_set1_epi32(quad);
    if constexpr (wide) {
      const __m512i even = _mm512_and_si512(c, _mm512_set1_epi16(255)),
                    odd = _mm512_srli_epi16(c, 8),
                    y_even = _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8),
                    y_odd = _mm512_srai_epi16(y, 8);
      sums += IntLanes(_mm512_madd_epi16(even, y_even)) + IntLanes(_mm512_madd_epi16(odd, y_odd));
    } else {
      sums += IntLanes(_mm512_madd_epi16(_mm512_maddubs_epi16(c, y), _mm512_set1_epi16(1)));
    }
  }
#else
  template <bool wide>
  [[gnu::always_inline]] static void add(IntLanes& sums, IntLanes codes, const int8_t* x) {
    for (int row = 0; row < kPanelRows; ++row) {
      for (int i = 0; i < 4; ++i) sums[row] += (codes[row] >> 8 * i & 255) * x[i];
    }
  }
#endif
};

// `tile` rows of x from row i, from element k on, times `groups` groups of a panel: added to `sums` [tile].
template <class Dot, int group, bool has_zero, bool wide, int tile>
void multiply_panel(const Int8Panel& panel, const Int8Rows& x, int64_t i, int64_t k, int64_t groups,
                    Lanes* sums) {
  constexpr int quads = group / 4;
  const int64_t x_groups = x.k / group, x_steps = x.k / kScaled;
  const int8_t* codes = x.codes + i * x.k + k;
  const float* steps = x.steps + i * x_steps + k / kScaled;
  const auto* of_sums = static_cast<const int32_t*>(x.sums) + i * x_groups + k / group;
  Lanes total[tile];
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t) total[t] = sums[t];
  for (int64_t g = 0; g < groups; ++g) {
    IntLanes dots[tile];
#pragma GCC unroll 8
    for (int t = 0; t < tile; ++t)
      dots[t] = has_zero ? of_sums[t * x_groups + g] - IntLanes{} : IntLanes{};
#pragma GCC unroll 8
    for (int q = 0; q < quads; ++q) {
      IntLanes four;
      std::memcpy(&four, panel.codes[g * quads + q], sizeof four);
#pragma GCC unroll 8
      for (int t = 0; t < tile; ++t)
        Dot::template add<wide>(dots[t], four, codes + t * x.k + g * group + 4 * q);
    }
    const Lanes factors = load_lanes(panel.factors[g]);
#pragma GCC unroll 8
    for (int t = 0; t < tile; ++t) {
      const float step = steps[t * x_steps + g * group / kScaled];
      total[t] = multiply_add(__builtin_convertvector(dots[t], Lanes), factors * step, total[t]);
      if constexpr (!has_zero) {
        const float sum = std::bit_cast<float>(of_sums[t * x_groups + g]);
        total[t] = multiply_add(load_lanes(panel.offsets[g]), sum - Lanes{}, total[t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t) sums[t] = total[t];
}

// A row of x times blocks of 16 rows of the weight at `from`, whose codes go from their bytes into registers.
template <class Format, class Dot>
void multiply_stored(const uint8_t* from, ReadAhead ahead, int64_t row_bytes, int64_t blocks,
                     const Int8Rows& x, int64_t k, Int8Panel& scales, Lanes& sums) {
  constexpr int group = Format::kGroup;
  static_assert(group == Format::kElements && group == kScaled);
  Format::decode_scales(from, row_bytes, blocks, scales);
  const int8_t* codes = x.codes + k;
  const float* steps = x.steps + k / kScaled;
  const auto* of_sums = static_cast<const int32_t*>(x.sums) + k / group;
  Lanes total = sums;
  for (int64_t g = 0; g < blocks; ++g, from += Format::kBytes) {
    ahead.template step<kPanelRows * Format::kBytes>();
    IntLanes quads[8], dots = Format::kOffsets ? IntLanes{} : of_sums[g] - IntLanes{};
    Format::load_codes(from, row_bytes, quads);
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q)
      Dot::template add<Format::kZero == 128>(dots, quads[q], codes + g * group + 4 * q);
    const Lanes factors = load_lanes(scales.factors[g]);
    total = multiply_add(__builtin_convertvector(dots, Lanes), factors * steps[g], total);
    if constexpr (Format::kOffsets)
      total = multiply_add(load_lanes(scales.offsets[g]),
                           std::bit_cast<float>(of_sums[g]) - Lanes{}, total);
  }
  sums = total;
}

// The same of formats with 256 elements in a block, of which pieces of 64 go into registers.
template <class Format, class Dot>
void multiply_pieces(const uint8_t* from, ReadAhead ahead, int64_t row_bytes, int64_t blocks,
                     const Int8Rows& x, int64_t k, Int8Panel& scales, Lanes& sums) {
  constexpr int group = Format::kGroup, groups = 64 / group, quads_of_group = group / 4;
  Format::decode_scales(from, row_bytes, blocks, scales);
  const int8_t* codes = x.codes + k;
  const float* steps = x.steps + k / kScaled;
  const auto* of_sums = static_cast<const int32_t*>(x.sums) + k / group;
  Lanes total = sums;
  for (int64_t block = 0, g = 0; block < blocks; ++block, from += Format::kBytes) {
#pragma GCC unroll 4
    for (int piece = 0; piece < Format::kPieces; ++piece) {
      ahead.template step<kPanelRows * Format::kBytes / Format::kPieces>();
      IntLanes quads[16];
      Format::load_piece(from, row_bytes, piece, quads);
#pragma GCC unroll 4
      for (int part = 0; part < groups; ++part, ++g, codes += group) {
        IntLanes dots = Format::kOffsets ? IntLanes{} : of_sums[g] - IntLanes{};
#pragma GCC unroll 8
        for (int q = 0; q < quads_of_group; ++q)
          Dot::template add<Format::kZero == 128>(dots, quads[part * quads_of_group + q],
                                                  codes + 4 * q);
        const float step = steps[g * group / kScaled];
        const Lanes factors = load_lanes(scales.factors[g]);
        total = multiply_add(__builtin_convertvector(dots, Lanes), factors * step, total);
        if constexpr (Format::kOffsets)
          total = multiply_add(load_lanes(scales.offsets[g]),
                               std::bit_cast<float>(of_sums[g]) - Lanes{}, total);
      }
    }
  }
  sums = total;
}

// Products of a format by one of these instructions. Avx2Product has the same members.
template <class Format, class Dot>
struct PanelProduct {
  static constexpr bool kIsStored = [] {
    if constexpr (requires { Format::kInRegisters; }) return Format::kInRegisters;
    return false;
  }();
  static constexpr bool kInPieces = requires { Format::kInPieces; };
  static constexpr bool kByAvx2 = requires(const uint8_t* block) { Format::codes(block, 0); };
  // Whether a single row of x takes codes from registers instead of a panel.
  static constexpr bool kInRegisters = kIsStored || kInPieces || kByAvx2;

  static void multiply_row(const uint8_t* from, ReadAhead ahead, int64_t row_bytes, int64_t blocks,
                           const Int8Rows& x, int64_t k, Int8Panel& scales, Lanes& sums) {
#ifdef __AVX2__
    if constexpr (kByAvx2)
      return Avx2Product<Format>::multiply_row(from, ahead, row_bytes, blocks, x, k, scales, sums);
#endif
    if constexpr (kInPieces)
      multiply_pieces<Format, Dot>(from, ahead, row_bytes, blocks, x, k, scales, sums);
    else if constexpr (kIsStored)
      multiply_stored<Format, Dot>(from, ahead, row_bytes, blocks, x, k, scales, sums);
  }
  template <int tile>
  static void multiply_panel(const Int8Panel& panel, const Int8Rows& x, int64_t i, int64_t k,
                             int64_t groups, Lanes* sums) {
    tenon::cpu::TENON_CPU_ISA::multiply_panel<Dot, Format::kGroup, !Format::kOffsets,
                                              Format::kZero == 128, tile>(panel, x, i, k, groups,
                                                                          sums);
  }
};

template <class Format, class Product>
class Int8Product {
 public:
  Int8Product(const BlocksProduct& p, const Int8Rows& x) : p_(p), x_(x) {}

  static constexpr int64_t panel_count(int64_t m) { return m > kTile ? kPanelsOfTask : 1; }
  // Of each thread: its panels, and a part of rows where the weight has too few for a panel.
  static int64_t scratch_bytes(int64_t m) {
    return panel_count(m) * static_cast<int64_t>(sizeof(Int8Panel)) + kPanelRows * kPartBytes;
  }

  // The columns of the result from column j on that one task computes.
  void run(int64_t j, int64_t columns, void* memory) const {
    auto* panels = static_cast<Int8Panel*>(memory);
    if constexpr (Product::kInRegisters) {
      if (p_.m == 1 && columns == kPanelRows) return run_one(j, *panels);
    }
    auto* part = reinterpret_cast<uint8_t*>(panels + panel_count(p_.m));
    for (int64_t k = 0; k < p_.k; k += kPanelDepth) {
      const int64_t depth = std::min<int64_t>(kPanelDepth, p_.k - k);
      for (int64_t c = 0; c < columns; c += kPanelRows)
        decode(j + c, std::min<int64_t>(kPanelRows, columns - c), k, depth, part,
               panels[c / kPanelRows]);
      int64_t i = 0;
      for (; i + kTile <= p_.m; i += kTile) multiply<kTile>(panels, i, j, columns, k, depth);
      if constexpr (kTile == 8) {
        for (; i + 4 <= p_.m; i += 4) multiply<4>(panels, i, j, columns, k, depth);
      }
      if constexpr (kTile >= 4) {
        for (; i + 2 <= p_.m; i += 2) multiply<2>(panels, i, j, columns, k, depth);
      }
      for (; i < p_.m; ++i) multiply<1>(panels, i, j, columns, k, depth);
    }
  }

 private:
  static constexpr int64_t kPartBytes = kPanelDepth / Format::kElements * Format::kBytes;

  void run_one(int64_t j, Int8Panel& scales) const {
    Lanes sums = {};
    for (int64_t k = 0; k < p_.k; k += kPanelDepth) {
      const int64_t blocks = std::min<int64_t>(kPanelDepth, p_.k - k) / Format::kElements;
      const int64_t first = k / Format::kElements * Format::kBytes;
      const uint8_t* panel = p_.weight + j * p_.row_bytes;
      const ReadAhead ahead(panel + kPanelRows * (2 * p_.row_bytes + first));
      Product::multiply_row(panel + first, ahead, p_.row_bytes, blocks, x_, k, scales, sums);
    }
    if (p_.bias) sums += load_lanes(p_.bias + j);
    std::memcpy(p_.out + j, &sums, sizeof sums);
  }

  void decode(int64_t j, int64_t rows, int64_t k, int64_t depth, uint8_t* part,
              Int8Panel& to) const {
    const int64_t blocks = depth / Format::kElements, bytes = blocks * Format::kBytes;
    const uint8_t* from = p_.weight + j * p_.row_bytes + k / Format::kElements * Format::kBytes;
    prefetch_next(from, j, k + depth, bytes);
    if (rows == kPanelRows) return Format::decode(from, p_.row_bytes, blocks, to);
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(part + row * bytes, from + row * p_.row_bytes, static_cast<size_t>(bytes));
    std::memset(part + rows * bytes, 0, static_cast<size_t>((kPanelRows - rows) * bytes));
    Format::decode(part, bytes, blocks, to);
  }

  // What is decoded next: the same rows further on, or the next rows. The hardware prefetcher does not follow so many.
  void prefetch_next(const uint8_t* from, int64_t j, int64_t next_k, int64_t bytes) const {
    if (next_k >= p_.k) {
      j += kPanelRows;
      from = p_.weight + j * p_.row_bytes;
    } else {
      from += bytes;
    }
    const int64_t rows = std::min<int64_t>(kPanelRows, p_.n - j);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + row * p_.row_bytes + at);
    }
  }

  // Floats of a row of the result; mostly as many as a panel has rows.
  [[gnu::always_inline]] static void copy_some(void* to, const void* from, int64_t count) {
    if (count == kPanelRows) {
      std::memcpy(to, from, sizeof(Lanes));
    } else {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    }
  }

  template <int tile>
  void multiply(const Int8Panel* panels, int64_t i, int64_t j, int64_t columns, int64_t k,
                int64_t depth) const {
    for (int64_t c = 0; c < columns; c += kPanelRows, ++panels) {
      const int64_t count = std::min<int64_t>(kPanelRows, columns - c);
      float* out = p_.out + i * p_.n + j + c;
      Lanes sums[tile] = {};
      for (int t = 0; k > 0 && t < tile; ++t) copy_some(&sums[t], out + t * p_.n, count);
      Product::template multiply_panel<tile>(*panels, x_, i, k, depth / Format::kGroup, sums);
      if (p_.bias && k + depth == p_.k) {
        Lanes bias = {};
        copy_some(&bias, p_.bias + j + c, count);
        for (int t = 0; t < tile; ++t) sums[t] += bias;
      }
      for (int t = 0; t < tile; ++t) copy_some(out + t * p_.n, &sums[t], count);
    }
  }

  const BlocksProduct& p_;
  const Int8Rows& x_;
};

template <class Format, class Products>
tenon_status multiply(tenon_ctx* ctx, const BlocksProduct& p, tenon_err* err) {
  using Product = Int8Product<Format, Products>;
  const int64_t columns = kPanelRows * Product::panel_count(p.m);
  const int64_t tasks = (p.n + columns - 1) / columns, work = columns * p.k * (p.m + 2) / 4;
  const int64_t stride = (Product::scratch_bytes(p.m) + 63) & ~int64_t{63};
  const int64_t bytes_of_x = Int8Rows::bytes(p.m, p.k, Format::kGroup);
  void* memory = nullptr;
  TENON_TRY(host->scratch(
      ctx, static_cast<uint64_t>(bytes_of_x + stride * workers_for(tasks, work)), &memory, err));
  const Int8Rows x = Int8Rows::in(memory, p.m, p.k, Format::kGroup);
  parallel(p.m, p.k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      round_row(p.x + i * p.k, Format::kOffsets ? 0 : Format::kZero, x, i);
  });
  const Product product(p, x);
  parallel_for_in_slots(static_cast<char*>(memory) + bytes_of_x, stride, tasks, work,
                        [&](int64_t task, void* own) {
                          const int64_t j = task * columns;
                          product.run(j, std::min(columns, p.n - j), own);
                        });
  return TENON_OK;
}

}  // namespace

tenon_status multiply_blocks_int8(tenon_ctx* ctx, const BlocksProduct& p, std::string_view format,
                                  tenon_err* err) {
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m * p.n; ++i) p.out[i] = p.bias ? p.bias[i % p.n] : 0;
    return TENON_OK;
  }
  tenon_status status = TENON_OK;
  with_panel_format(format, [&]<class Format>(Format) {
#if defined(__AVX512F__)
    status = has_vnni() ? multiply<Format, PanelProduct<Format, Vnni>>(ctx, p, err)
                        : multiply<Format, PanelProduct<Format, Pairs>>(ctx, p, err);
#elif defined(__AVX2__)
    status = multiply<Format, Avx2Product<Format>>(ctx, p, err);
#else
    status = multiply<Format, PanelProduct<Format, Pairs>>(ctx, p, err);
#endif
  });
  return status;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
