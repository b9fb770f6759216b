// SPDX-License-Identifier: Apache-2.0
// AMX micro-kernel: 32 x 32 accumulators in four tiles. Rows of A are dense along k and load
// directly as tile rows; a panel of B, packed in pairs (bfloat16) or quads (int8) along k, is two
// adjacent tiles.
#pragma once

#include "gemm/amx.hpp"
#include "gemm/epilogue.hpp"
#include "gemm/micro_kernel.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// One of `parts` equal parts of a range.
struct Chunk {
  int64_t part, parts;
  int64_t begin(int64_t n) const { return n * part / parts; }
  int64_t length(int64_t n) const { return (n + parts - 1) / parts; }
};

// Packed elements along k that one tile product consumes. Operands for AMX are padded with zeros to
// a multiple of this.
inline constexpr int64_t kTileStep = 16;
template <class Format>
inline constexpr int64_t kStep = uses_amx<Format> ? kTileStep : 1;

// Rows and columns of C in four tiles.
inline constexpr int64_t kTileSide = 32;

// Bytes of C, or of a block of B, that stay in an L2 cache of 2 MiB while other operands stream
// through it.
inline constexpr int64_t kCachedBytes = 1280 * 1024;

// Rows of A for one call of the micro-kernel.
template <class Format>
inline constexpr int64_t kRowsOf = uses_amx<Format> ? kTileSide : kMR;

// The processor state that a thread needs to multiply in a format without AMX: none.
struct Nothing {};
// No work is interleaved with the tile products.
struct NothingInterleaved {
  void advance() {}
};
// Issues the prefetches of a plan, a few in each step.
class InterleavedPrefetch {
 public:
  explicit InterleavedPrefetch(const PrefetchPlan& prefetch) : prefetch_(prefetch) {}
  void advance() {
    if (interval_ <= 0) prefetch_.issue(), interval_ += prefetch_.steps;
    interval_ -= kTileStep;
  }

 private:
  PrefetchPlan prefetch_;
  int64_t interval_ = 0;
};
// The operand that is loaded without a place in the L1 cache, because the other operand is reused
// first.
enum class Streamed { kA, kB };

#ifdef __AVX512F__
template <class Format>
using ProcessorState = std::conditional_t<uses_amx<Format>, TileScope, Nothing>;

// Steps along k before the micro-kernel continues with the next rows of A. A panel of this length
// stays in the L1 cache while rows of A stream past it.
inline constexpr int64_t kTilesK = 256;

// Vector work that is interleaved with tile products, which leave the vector units idle. One step
// executes a piece of it that is short enough for out-of-order execution to reach the next tile
// product.
struct Interleaved {
  void (*advance)(void*) = nullptr;
  void* of = nullptr;
};

template <int T, bool Passes>
[[gnu::always_inline]] inline void load(const uint32_t* from, int64_t stride) {
  if constexpr (Passes) {
    stream_tile<T>(from, stride);
  } else {
    load_tile<T>(from, stride);
  }
}

// Computes C[0..16 Down) x [0..16 Across) = A B, plus C if `accumulate`. k and strides count packed
// elements; k is a multiple of 16.
template <class Format, Streamed By, int Down, int Across>
[[gnu::noinline]] void amx_kernel(int64_t k, const uint32_t* a, int64_t a_row, const uint32_t* b,
                                  int64_t b_row, typename Format::Accumulator* c, int64_t c_row,
                                  bool accumulate, Interleaved interleaved = {}) {
  constexpr int64_t size = sizeof(uint32_t);
  const int64_t a_bytes = a_row * size, b_bytes = b_row * size, c_bytes = c_row * size;
  const auto each = [&](auto&& f) {
    f.template operator()<0>(c);
    if constexpr (Across > 1) f.template operator()<1>(c + 16);
    if constexpr (Down > 1) f.template operator()<2>(c + 16 * c_row);
    if constexpr (Down > 1 && Across > 1) f.template operator()<3>(c + 16 * c_row + 16);
  };
  if (accumulate) {
    each([&]<int T>(const auto* at) { load_tile<T>(at, c_bytes); });
  } else {
    each([&]<int T>(const auto*) { zero_tile<T>(); });
  }
  for (int64_t p = 0; p < k; p += kStep<Format>) {
    load<4, By == Streamed::kB>(b, b_bytes);
    load<6, By == Streamed::kA>(a, a_bytes);
    if constexpr (Across > 1) load<5, By == Streamed::kB>(b + 16, b_bytes);
    Format::template multiply<0, 6, 4>();
    if constexpr (Down > 1) load<7, By == Streamed::kA>(a + 16 * a_row, a_bytes);
    if constexpr (Across > 1) Format::template multiply<1, 6, 5>();
    if (interleaved.advance) interleaved.advance(interleaved.of);
    if constexpr (Down > 1) Format::template multiply<2, 7, 4>();
    if constexpr (Down > 1 && Across > 1) Format::template multiply<3, 7, 5>();
    a += kStep<Format>;
    b += kStep<Format> * b_row;
  }
  each([&]<int T>(auto* at) { store_tile<T>(at, c_bytes); });
}

// Returns the kernel for up to 32 rows and columns.
template <class Format, Streamed By>
auto choose_amx_kernel(int64_t rows, int64_t columns) {
  if (rows > 16) {
    return columns > 16 ? amx_kernel<Format, By, 2, 2> : amx_kernel<Format, By, 2, 1>;
  }
  return columns > 16 ? amx_kernel<Format, By, 1, 2> : amx_kernel<Format, By, 1, 1>;
}

// Stores accumulators through the epilogue while the next rows are multiplied, and advances a
// second interleaved task.
template <class Epilogue, class Accumulator, class Other>
class InterleavedStore {
 public:
  InterleavedStore(const Epilogue& epilogue, int64_t j, int64_t columns, bool accumulate,
                   Other& other)
      : epilogue_(epilogue),
        other_(other),
        j_(j),
        columns_(columns),
        accumulate_(accumulate),
        whole_(columns == kTileSide && !accumulate && epilogue.dense_from(j) >= columns) {}

  Interleaved interleaved() {
    return {[](void* self) { static_cast<InterleavedStore*>(self)->advance(); }, this};
  }
  // Starts storing rows [i, i + rows), kTileSide columns wide, over the next `steps` steps. The
  // previous rows must be complete.
  void begin(const Accumulator* accumulators, int64_t i, int64_t rows, int64_t steps) {
    accumulators_ = accumulators, i_ = i, left_ = rows,
    at_once_ = steps > 0 ? (rows + steps - 1) / steps : rows;
  }
  void finish() { store_rows(left_); }

 private:
  void advance() {
    if (left_ > 0) store_rows(std::min(at_once_, left_));
    other_.advance();
  }
  void store_rows(int64_t count) {
    left_ -= count;
    if (whole_) {
      auto* to = epilogue_.at(j_) + i_ * epilogue_.row;
      for (i_ += count; count > 0; --count, to += epilogue_.row, accumulators_ += kTileSide) {
        store_run(epilogue_, to, accumulators_, kTileSide, false);
      }
      return;
    }
    store_parts(count);
  }
  [[gnu::noinline]] void store_parts(int64_t count) {
    for (; count > 0; --count, ++i_, accumulators_ += kTileSide) {
      for (int64_t q = 0, length; q < columns_; q += length) {
        length = std::min(columns_ - q, epilogue_.dense_from(j_ + q));
        store_run(epilogue_, epilogue_.at(j_ + q) + i_ * epilogue_.row, accumulators_ + q, length,
                  accumulate_);
      }
    }
  }

  const Epilogue& epilogue_;
  Other& other_;
  int64_t j_, columns_;
  bool accumulate_, whole_;
  const Accumulator* accumulators_ = nullptr;
  int64_t i_ = 0, left_ = 0, at_once_ = 0;
};

// Computes C = A B or C += A B for one panel, in rows [i, i + m) and columns [j, j + columns) of C.
// A has whole tiles of rows. Each step advances `other` by one piece.
template <class Format, Streamed By = Streamed::kA, class Epilogue, class Other>
void run_amx_tiles(int64_t m, int64_t columns, int64_t k, const uint32_t* a, int64_t a_row,
                   const uint32_t* b, int64_t b_row, const Epilogue& epilogue, int64_t i, int64_t j,
                   bool accumulate, Other& other) {
  using Accumulator = typename Format::Accumulator;
  constexpr int64_t limit = 256, side = kTileSide;
  alignas(64) Accumulator accumulators[limit * side];
  using Element = std::remove_reference_t<decltype(*epilogue.at(j))>;
  constexpr bool are_accumulators =
      !converts_accumulators<Epilogue> && std::is_same_v<Element, Accumulator>;
  const bool in_place = are_accumulators && columns % 16 == 0 && epilogue.dense_from(j) >= columns;
  const int64_t parts = std::max<int64_t>(1, (k + kTilesK - 1) / kTilesK);
  const int64_t step = rounded_up<kStep<Format>>((k + parts - 1) / parts);
  InterleavedStore<Epilogue, Accumulator, Other> later(epilogue, j, columns, accumulate, other);
  for (; m > 0; m -= limit, i += limit, a += limit * a_row) {
    const int64_t height = std::min(m, limit);
    int64_t p = 0;
    do {
      const int64_t some = std::min(step, k - p);
      const bool first = p == 0, last = p + some >= k;
      for (int64_t r = 0; r < height; r += side) {
        const int64_t rows = std::min(side, height - r);
        const auto run = choose_amx_kernel<Format, By>(rows, columns);
        const uint32_t *left = a + r * a_row + p, *right = b + p * b_row;
        if constexpr (are_accumulators) {
          if (in_place && rows % 16 == 0) {
            run(some, left, a_row, right, b_row, epilogue.at(j) + (i + r) * epilogue.row,
                epilogue.row, accumulate || !first, later.interleaved());
            continue;
          }
        }
        Accumulator* own = accumulators + (parts > 1 ? r : r % (2 * side)) * side;
        run(some, left, a_row, right, b_row, own, side, !first, later.interleaved());
        later.finish();
        if (last) later.begin(own, i + r, rows, some / kStep<Format>);
      }
      p += step;
    } while (p < k);
    later.finish();
  }
}

#else
template <class>
using ProcessorState = Nothing;
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
