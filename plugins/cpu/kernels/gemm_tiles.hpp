// SPDX-License-Identifier: Apache-2.0
// Products cut into tiles of C for the threads of the pool.
#pragma once

#include "dtypes.hpp"
#include "gemm.hpp"
#include "gemm_micro.hpp"

#include <tenon/parallel.hpp>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// A tile of C, at (i, j) of item `item` of the batch.
struct OutputTile {
  int64_t i, j, rows, columns, a, b, c;  // a, b, c: offsets of the item
};

class Tiles {
 public:
  // Tiles of at most `most_rows` x `most_columns`, about two for each thread that the items of the
  // batch alone leave idle.
  template <class Packed>
  Tiles(Type<Packed>, int64_t m, int64_t n, int64_t k, int64_t most_rows, int64_t most_columns,
        const BatchOffsets& batch)
      : m_(m),
        n_(n),
        rows_(std::min(m, most_rows)),
        columns_(std::min(n, most_columns)),
        batch_(batch) {
    int64_t items = 1;
    for (int i = 0; i < batch.count; ++i) items *= batch.extent[i];
    constexpr int64_t panel = kPanel<Packed>;
    const int64_t work = std::max<int64_t>(1, m * n * k / kWidth<Packed>);
    const int64_t threads = host->thread_count();
    const int64_t wanted = threads == 1 || items == 0 || items * work <= kSerialWork
                               ? 1
                               : (2 * threads + items - 1) / items;
    while (down() * across() < wanted) {
      // Halve the longer side, to a multiple of the register tile.
      const bool split_rows = rows_ * 2 > columns_;
      int64_t& side = split_rows ? rows_ : columns_;
      const int64_t unit = split_rows ? kTileRows : panel;
      const int64_t half = (side / 2 + unit - 1) / unit * unit;
      if (half >= side || half * (split_rows ? columns_ : rows_) * k < kSerialWork) break;
      side = half;
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
  int64_t down() const { return (m_ + rows_ - 1) / rows_; }
  int64_t across() const { return (n_ + columns_ - 1) / columns_; }

  int64_t m_, n_, rows_, columns_, across_ = 1, tiles_ = 1, count_ = 0, work_ = 0;
  const BatchOffsets& batch_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
