// SPDX-License-Identifier: Apache-2.0
// Partition of a GEMM into tiles of C for the threads of the pool.
#pragma once

#include "dtypes.hpp"
#include "gemm/amx_micro_kernel.hpp"
#include "gemm/gemm.hpp"

#include <tenon/parallel.hpp>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// A tile of C at (i, j) of one item of the batch; a, b and c are the offsets of the item.
struct OutputTile {
  int64_t i, j, rows, columns, a, b, c;
};

class Tiles {
 public:
  // Creates equal tiles of at most `max_rows` x `max_columns`, both multiples of the register tile.
  // There is one tile for each thread that the items of the batch leave idle, or two if the batch
  // has several items, whose number may not divide evenly, or if writing C takes longest.
  template <class Format>
  Tiles(Type<Format>, int64_t m, int64_t n, int64_t k, int64_t max_rows, int64_t max_columns,
        const BatchOffsets& batch)
      : m_(m),
        n_(n),
        rows_(part_of(m, (m + max_rows - 1) / max_rows, kRowsOf<Format>)),
        columns_(part_of(n, (n + max_columns - 1) / max_columns, kNR<typename Format::Packed>)),
        batch_(batch) {
    int64_t items = 1;
    for (int i = 0; i < batch.count; ++i) items *= batch.extent[i];
    using Packed = typename Format::Packed;
    // A product with a vector is bound by reading the matrix: 12 bytes take as long as an addition
    // of floats.
    const int64_t bytes = (m * k + k * n + m * n) * int64_t{sizeof(typename Format::Left)};
    const int64_t work = std::max({int64_t{1}, m * n * k / kWidth<Packed>, bytes / 12});
    const int64_t threads = host->thread_count();
    if (threads > 1 && items > 0 && items * work > kSerialWork) {
      const int64_t wanted =
          items == 1 && k > kShortK ? threads : (2 * threads + items - 1) / items;
      cut<Format>(std::clamp<int64_t>(m * n * k / kSerialWork, 1, wanted), k);
    }
    across_ = across();
    tiles_ = down() * across_;
    count_ = items * tiles_;
    work_ = work / tiles_;
  }
  int64_t count() const { return count_; }
  int64_t work() const { return work_; }  // Work of one tile, in additions of vectors.
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  OutputTile at(int64_t t) const {
    OutputTile tile{0, 0, rows_, columns_, 0, 0, 0};
    int64_t item = t;
    if (tiles_ > 1) {  // Small products skip the divisions, which would dominate their time.
      item = t / tiles_;
      const int64_t within = t % tiles_;
      tile.i = within / across_ * rows_;
      tile.j = within % across_ * columns_;
      tile.rows = std::min(rows_, m_ - tile.i);
      tile.columns = std::min(columns_, n_ - tile.j);
    }
    for (int d = batch_.count - 1; d >= 0; --d) {
      int64_t index = item;
      if (d > 0) {
        index = item % batch_.extent[d];
        item /= batch_.extent[d];
      }
      tile.a += index * batch_.a[d];
      tile.b += index * batch_.b[d];
      tile.c += index * batch_.c[d];
    }
    return tile;
  }

 private:
  // For a shorter k, writing C takes longer than multiplying.
  static constexpr int64_t kShortK = 64;
  // In bytes. For a smaller C, packing B twice costs more.
  static constexpr int64_t kLargeC = 512 * 1024;

  // Each tile packs its own columns of B and mostly reads A in place, so columns are divided until
  // tiles are half as wide as high. If writing C takes longest, rows are divided instead: a thread
  // then writes the rows of C that it is likely to read later. With AMX and int8, a large C that
  // the caches hold is divided down to squares, because threads that write adjacent columns would
  // share cache lines.
  template <class Format>
  void cut(int64_t parts, int64_t k) {
    parts = (parts + down() * across() - 1) / (down() * across());
    const int64_t accumulators = rows_ * columns_ * int64_t{sizeof(typename Format::Accumulator)};
    const bool caches_c = uses_amx<Format> && Format::kDepth == 4 && accumulators > kLargeC &&
                          accumulators <= parts * kCachedBytes;
    int64_t column_parts = 1;
    for (int64_t p = 2; p <= parts; ++p) {
      const int64_t height = rows_ / (parts / p) * (k <= kShortK ? 64 : caches_c ? 2 : 1);
      if (parts % p == 0 && 2 * (columns_ / p) >= height) column_parts = p;
    }
    columns_ = part_of(columns_, column_parts, kNR<typename Format::Packed>);
    rows_ = part_of(rows_, parts / column_parts, kRowsOf<Format>);
  }
  // Rounds a part to whole units unless the length has only one part.
  static int64_t part_of(int64_t length, int64_t parts, int64_t unit) {
    return std::min(length, ((length + parts - 1) / parts + unit - 1) / unit * unit);
  }
  int64_t down() const { return (m_ + rows_ - 1) / rows_; }
  int64_t across() const { return (n_ + columns_ - 1) / columns_; }

  int64_t m_, n_, rows_, columns_, across_ = 1, tiles_ = 1, count_ = 0, work_ = 0;
  const BatchOffsets& batch_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
