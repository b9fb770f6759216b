// SPDX-License-Identifier: Apache-2.0
// The innermost loops of products by matrix tiles: 32 x 32 sums in four tiles. Rows of A, dense
// along k, are rows of tiles; a panel of B, in pairs or quads along k, is two tiles side by side.
#pragma once

#include "gemm/amx.hpp"
#include "gemm/epilogue.hpp"
#include "gemm/micro_kernel.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// One of `parts` equal parts.
struct Share {
  int64_t part, parts;
  int64_t begin(int64_t n) const { return n * part / parts; }
  int64_t length(int64_t n) const { return (n + parts - 1) / parts; }
};

// Packed elements along k that a product takes at once. Operands of formats that multiply tiles are
// filled up with zeros to a multiple.
inline constexpr int64_t kTileStep = 16;
template <class Format>
inline constexpr int64_t kStep = by_tiles<Format> ? kTileStep : 1;

// Rows and columns of C in four tiles.
inline constexpr int64_t kTileSide = 32;

// What a second-level cache of 2 MiB keeps of a C, or of a block of B, beside what passes by.
inline constexpr int64_t kKeptBytes = 1280 * 1024;

// Rows of A that are multiplied together.
template <class Format>
inline constexpr int64_t kRowsOf = by_tiles<Format> ? kTileSide : kTileRows;

// What a thread that multiplies has to hold.
struct Nothing {};
// Nothing to be done while tiles are multiplied.
struct NothingBeside {
  void piece() {}
};
// Memory that will be needed next, asked for a little in each step.
class AheadBeside {
 public:
  explicit AheadBeside(const Ahead& ahead) : ahead_(ahead) {}
  void piece() {
    if (pause_ <= 0) ahead_.ask(), pause_ += ahead_.steps;
    pause_ -= kTileStep;
  }

 private:
  Ahead ahead_;
  int64_t pause_ = 0;
};
// The operand that is not worth room in the first-level cache, as the other one is used again
// first.
enum class Passing { kA, kB };

#ifdef __AVX512F__
template <class Format>
using ProcessorState = std::conditional_t<by_tiles<Format>, TileScope, Nothing>;

// Steps along k before the next rows of A: so much of a panel stays in the first-level cache, while
// rows of A pass by it.
inline constexpr int64_t kTilesK = 256;

// What vectors do while tiles are multiplied, which leaves them idle: a piece of it in each step,
// so short that the processor sees the next multiplications before it is through.
struct Beside {
  void (*piece)(void*) = nullptr;
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

// C[0..16 Down) x [0..16 Across) = A * B, plus C where `accumulate`. k and strides are in packed
// elements, of which k is a multiple of 16.
template <class Format, Passing By, int Down, int Across>
[[gnu::noinline]] void tile_kernel(int64_t k, const uint32_t* a, int64_t a_row, const uint32_t* b,
                                   int64_t b_row, typename Format::Sum* c, int64_t c_row,
                                   bool accumulate, Beside beside = {}) {
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
    load<4, By == Passing::kB>(b, b_bytes);
    load<6, By == Passing::kA>(a, a_bytes);
    if constexpr (Across > 1) load<5, By == Passing::kB>(b + 16, b_bytes);
    Format::template multiply<0, 6, 4>();
    if constexpr (Down > 1) load<7, By == Passing::kA>(a + 16 * a_row, a_bytes);
    if constexpr (Across > 1) Format::template multiply<1, 6, 5>();
    if (beside.piece) beside.piece(beside.of);
    if constexpr (Down > 1) Format::template multiply<2, 7, 4>();
    if constexpr (Down > 1 && Across > 1) Format::template multiply<3, 7, 5>();
    a += kStep<Format>, b += kStep<Format> * b_row;
  }
  each([&]<int T>(auto* at) { store_tile<T>(at, c_bytes); });
}

// The kernel for up to 32 rows and columns.
template <class Format, Passing By>
auto choose_tile_kernel(int64_t rows, int64_t columns) {
  if (rows > 16) {
    return columns > 16 ? tile_kernel<Format, By, 2, 2> : tile_kernel<Format, By, 2, 1>;
  }
  return columns > 16 ? tile_kernel<Format, By, 1, 2> : tile_kernel<Format, By, 1, 1>;
}

// Rows of sums that go to their target while the next are multiplied, and another's pieces.
template <class Target, class Sum, class Other>
class SumsBeside {
 public:
  SumsBeside(const Target& target, int64_t j, int64_t columns, bool accumulate, Other& other)
      : target_(target),
        other_(other),
        j_(j),
        columns_(columns),
        accumulate_(accumulate),
        whole_(columns == kTileSide && !accumulate && target.dense_from(j) >= columns) {}

  Beside beside() {
    return {[](void* self) { static_cast<SumsBeside*>(self)->piece(); }, this};
  }
  // Rows [i, i + rows), kTileSide columns wide, over the next `steps` steps. What came before is
  // done.
  void begin(const Sum* sums, int64_t i, int64_t rows, int64_t steps) {
    sums_ = sums, i_ = i, left_ = rows, at_once_ = steps > 0 ? (rows + steps - 1) / steps : rows;
  }
  void finish() { put_rows(left_); }

 private:
  void piece() {
    if (left_ > 0) put_rows(std::min(at_once_, left_));
    other_.piece();
  }
  void put_rows(int64_t count) {
    left_ -= count;
    if (whole_) {
      auto* to = target_.at(j_) + i_ * target_.row;
      for (i_ += count; count > 0; --count, to += target_.row, sums_ += kTileSide) {
        put(target_, to, sums_, kTileSide, false);
      }
      return;
    }
    put_parts(count);
  }
  [[gnu::noinline]] void put_parts(int64_t count) {
    for (; count > 0; --count, ++i_, sums_ += kTileSide) {
      for (int64_t q = 0, length; q < columns_; q += length) {
        length = std::min(columns_ - q, target_.dense_from(j_ + q));
        put(target_, target_.at(j_ + q) + i_ * target_.row, sums_ + q, length, accumulate_);
      }
    }
  }

  const Target& target_;
  Other& other_;
  int64_t j_, columns_;
  bool accumulate_, whole_;
  const Sum* sums_ = nullptr;
  int64_t i_ = 0, left_ = 0, at_once_ = 0;
};

// C = A B, or C += A B, of one panel, in rows [i, i + m) and columns [j, j + columns) of C. A has
// whole tiles of rows. A piece of `other` is done in each step.
template <class Format, Passing By = Passing::kA, class Target, class Other>
void run_tiles(int64_t m, int64_t columns, int64_t k, const uint32_t* a, int64_t a_row,
               const uint32_t* b, int64_t b_row, const Target& target, int64_t i, int64_t j,
               bool accumulate, Other& other) {
  using Sum = typename Format::Sum;
  constexpr int64_t most = 256, side = kTileSide;
  alignas(64) Sum sums[most * side];
  using Element = std::remove_reference_t<decltype(*target.at(j))>;
  constexpr bool are_sums = !converts_sums<Target> && std::is_same_v<Element, Sum>;
  const bool in_place = are_sums && columns % 16 == 0 && target.dense_from(j) >= columns;
  const int64_t parts = std::max<int64_t>(1, (k + kTilesK - 1) / kTilesK);
  const int64_t step = rounded_up<kStep<Format>>((k + parts - 1) / parts);
  SumsBeside<Target, Sum, Other> later(target, j, columns, accumulate, other);
  for (; m > 0; m -= most, i += most, a += most * a_row) {
    const int64_t height = std::min(m, most);
    int64_t p = 0;
    do {
      const int64_t some = std::min(step, k - p);
      const bool first = p == 0, last = p + some >= k;
      for (int64_t r = 0; r < height; r += side) {
        const int64_t rows = std::min(side, height - r);
        const auto run = choose_tile_kernel<Format, By>(rows, columns);
        const uint32_t *left = a + r * a_row + p, *right = b + p * b_row;
        if constexpr (are_sums) {
          if (in_place && rows % 16 == 0) {
            run(some, left, a_row, right, b_row, target.at(j) + (i + r) * target.row, target.row,
                accumulate || !first, later.beside());
            continue;
          }
        }
        Sum* own = sums + (parts > 1 ? r : r % (2 * side)) * side;
        run(some, left, a_row, right, b_row, own, side, !first, later.beside());
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
