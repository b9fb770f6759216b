// SPDX-License-Identifier: Apache-2.0
// Products cut into tiles of C for the threads of the pool.
#pragma once

#include "dtypes.hpp"
#include "gemm/amx_micro_kernel.hpp"
#include "gemm/gemm.hpp"

#include <tenon/parallel.hpp>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// A tile of C, at (i, j) of item `item` of the batch.
struct OutputTile {
  int64_t i, j, rows, columns, a, b, c;  // a, b, c: offsets of the item
};

class Tiles {
 public:
  // Equal tiles of at most `most_rows` x `most_columns`, both whole units. One for each thread that
  // the items of the batch leave idle; two, where there are several, which may not come out even,
  // or where C is all that takes long.
  template <class Format>
  Tiles(Type<Format>, int64_t m, int64_t n, int64_t k, int64_t most_rows, int64_t most_columns,
        const BatchOffsets& batch)
      : m_(m),
        n_(n),
        rows_(part_of(m, (m + most_rows - 1) / most_rows, kRowsOf<Format>)),
        columns_(
            part_of(n, (n + most_columns - 1) / most_columns, kPanel<typename Format::Packed>)),
        batch_(batch) {
    int64_t items = 1;
    for (int i = 0; i < batch.count; ++i) items *= batch.extent[i];
    using Packed = typename Format::Packed;
    // Of a product with a vector, reading the matrix: an addition of floats takes 12 bytes.
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
  int64_t work() const { return work_; }  // of one, in additions of vectors
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  OutputTile at(int64_t t) const {
    OutputTile tile{0, 0, rows_, columns_, 0, 0, 0};
    int64_t item = t;
    if (tiles_ > 1) {  // divisions take longer than small products
      item = t / tiles_;
      const int64_t within = t % tiles_;
      tile.i = within / across_ * rows_, tile.j = within % across_ * columns_;
      tile.rows = std::min(rows_, m_ - tile.i);
      tile.columns = std::min(columns_, n_ - tile.j);
    }
    for (int d = batch_.count - 1; d >= 0; --d) {
      int64_t index = item;
      if (d > 0) index = item % batch_.extent[d], item /= batch_.extent[d];
      tile.a += index * batch_.a[d];
      tile.b += index * batch_.b[d];
      tile.c += index * batch_.c[d];
    }
    return tile;
  }

 private:
  static constexpr int64_t kShortK = 64;            // writing C takes longer than multiplying
  static constexpr int64_t kManySums = 512 * 1024;  // bytes; for fewer, packing B twice costs more

  // Each tile packs its columns of B for itself, while A is mostly read where it lies: columns are
  // cut until tiles are half as wide as high. Where writing C takes longest it is rows that are
  // cut: what a thread writes is the part of C that it will read, where that is read in equal
  // parts. So they are, down to squares, where sums are longer than what they are of and caches
  // keep them: side by side, threads would fetch lines that the other one writes next.
  template <class Format>
  void cut(int64_t parts, int64_t k) {
    parts = (parts + down() * across() - 1) / (down() * across());
    const int64_t sums = rows_ * columns_ * int64_t{sizeof(typename Format::Sum)};
    const bool keeps_sums =
        by_tiles<Format> && Format::kDepth == 4 && sums > kManySums && sums <= parts * kKeptBytes;
    int64_t beside = 1;
    for (int64_t p = 2; p <= parts; ++p) {
      const int64_t height = rows_ / (parts / p) * (k <= kShortK ? 64 : keeps_sums ? 2 : 1);
      if (parts % p == 0 && 2 * (columns_ / p) >= height) beside = p;
    }
    columns_ = part_of(columns_, beside, kPanel<typename Format::Packed>);
    rows_ = part_of(rows_, parts / beside, kRowsOf<Format>);
  }
  // Whole units, unless that leaves it as it is.
  static int64_t part_of(int64_t length, int64_t parts, int64_t unit) {
    return std::min(length, ((length + parts - 1) / parts + unit - 1) / unit * unit);
  }
  int64_t down() const { return (m_ + rows_ - 1) / rows_; }
  int64_t across() const { return (n_ + columns_ - 1) / columns_; }

  int64_t m_, n_, rows_, columns_, across_ = 1, tiles_ = 1, count_ = 0, work_ = 0;
  const BatchOffsets& batch_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
