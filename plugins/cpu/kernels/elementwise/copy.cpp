// SPDX-License-Identifier: Apache-2.0
// clone: copies between any strides. Uses memcpy for dense rows, and transposes tiles in registers
// where the two sides are dense along different axes.
#include "conv/nhwc.hpp"
#include "elementwise/strided.hpp"
#include "kernel.hpp"
#include "simd/non_temporal.hpp"
#include "simd/transpose.hpp"

#include <tenon/signatures/conversion.h>

#include <cstdlib>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The size of a tile: bytes of an output row, a multiple of every register tile, and elements of an
// input row. With non-temporal stores, longer runs of the input keep more loads in flight.
constexpr int64_t kTileRowBytes = 512, kTileColumn = 64;
constexpr int64_t kNonTemporalTileRow = 64, kNonTemporalTileColumn = 256, kPiecedTileColumn = 128;

// Where rows of the output are not aligned to cache lines, pieces of this size are first assembled
// in a buffer. A piece has one line more, since each row of a tile has its own alignment.
constexpr int64_t kLine = 64, kPiece = 512;

// Rows of at most so many elements are copied by columns instead, over blocks of rows that stay in the cache.
constexpr int64_t kShortRow = 8, kShortRows = 512;

// One copy: operand 0 is read, operand 1 written.
class Copy {
 public:
  Copy(const tenon_tensor* x, const tenon_tensor* out)
      : axes_(broadcast_axes(&x, 1, out)),
        from_(data_of<char>(x)),
        to_(data_of<char>(out)),
        size_(kDtypeSize[out->dtype]) {
    find_transposition();
  }

  void run(int64_t total) {
    const bool large = use_non_temporal(total * size_, 2 * total * size_);
    if (has_short_rows()) {
      const int64_t length = axes_.inner_extent();
      parallel(total / length, length,
               [&](int64_t begin, int64_t end) { copy_columns(begin, end); });
    } else if (across_ < 0) {
      non_temporal_ = large && axes_.inner_extent() * size_ >= kNonTemporalBlock &&
                      axes_.inner_stride(0) == size_ && axes_.inner_stride(1) == size_;
      parallel(total, 1, [&](int64_t begin, int64_t end) { copy_rows(begin, end); });
    } else {
      non_temporal_ = large && can_store_tiles_non_temporal();
      pieces_ =
          large && !non_temporal_ && axes_.extent[axes_.count - 1] * size_ >= kNonTemporalBlock;
      tile_column_ = non_temporal_ ? kNonTemporalTileColumn
                     : pieces_     ? kPiecedTileColumn
                                   : kTileColumn;
      tile_row_ = non_temporal_ ? kNonTemporalTileRow
                  : pieces_     ? kPiece / size_
                                : kTileRowBytes / size_;
      const int64_t tiles = tiles_of(across_, tile_column_) * tiles_of(axes_.count - 1, tile_row_);
      const int64_t slices = total / (axes_.extent[across_] * axes_.extent[axes_.count - 1]);
      parallel(slices * tiles, 2 * tile_row_ * tile_column_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) copy_tile(i / tiles, i % tiles);
        if (non_temporal_ || pieces_) non_temporal_fence();
      });
    }
  }

 private:
  // The axis along which the input is dense, if the output is dense along another.
  void find_transposition() {
    const int last = axes_.count - 1;
    if (last < 1 || size_ > 8 || axes_.stride[last][1] != size_ || axes_.stride[last][0] == size_ ||
        axes_.extent[last] < 4) {
      return;
    }
    for (int i = 0; i < last; ++i) {
      if (axes_.stride[i][0] == size_ && axes_.extent[i] >= 4) across_ = i;
    }
  }

  // Whether every row of a tile begins at a cache line.
  bool can_store_tiles_non_temporal() const {
    const int last = axes_.count - 1;
    bool result = can_transpose_non_temporal(to_, 0);
    for (int i = 0; i < last; ++i)
      result &= can_transpose_non_temporal(nullptr, axes_.stride[i][1]);
    return result;
  }

  int64_t tiles_of(int axis, int64_t size) const { return (axes_.extent[axis] + size - 1) / size; }

  void copy_rows(int64_t begin, int64_t end) const {
    StridedIterator position(axes_, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(end - at, position.left_in_row(axes_));
      char* to = to_ + position.offset(axes_, 1);
      const char* from = from_ + position.offset(axes_, 0);
      if (non_temporal_) {
        non_temporal_copy(to, from, n * size_);
      } else {
        copy_row(to, axes_.inner_stride(1), from, axes_.inner_stride(0), n, size_);
      }
      position.advance(axes_, n);
      at += n;
    }
    if (non_temporal_) non_temporal_fence();
  }

  bool has_short_rows() const {
    const int last = axes_.count - 1;
    return across_ < 0 && last >= 1 && axes_.extent[last] <= kShortRow &&
           axes_.extent[last - 1] >= 2 * kShortRow;
  }

  // The rows [begin, end).
  void copy_columns(int64_t begin, int64_t end) const {
    const int64_t length = axes_.inner_extent();
    Axes rows = axes_;
    --rows.count;
    StridedIterator position(rows, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min({end - at, position.left_in_row(rows), kShortRows});
      char* to = to_ + position.offset(rows, 1);
      const char* from = from_ + position.offset(rows, 0);
      for (int64_t j = 0; j < length; ++j)
        copy_row(to + j * axes_.inner_stride(1), rows.inner_stride(1),
                 from + j * axes_.inner_stride(0), rows.inner_stride(0), n, size_);
      position.advance(rows, n);
      at += n;
    }
  }

  void copy_tile(int64_t slice, int64_t tile) const {
    const int last = axes_.count - 1;
    int64_t from = 0, to = 0;
    for (int i = last - 1; i >= 0; --i) {
      if (i == across_) continue;
      const int64_t index = slice % axes_.extent[i];
      slice /= axes_.extent[i];
      from += index * axes_.stride[i][0];
      to += index * axes_.stride[i][1];
    }
    // Ordinary stores go row of tiles by row of tiles, so that each thread writes rows of its own:
    // prefetchers run past the end of a partial row and would pull lines that another thread
    // writes.
    const int64_t along = tiles_of(last, tile_row_), across = tiles_of(across_, tile_column_);
    const bool by_rows = !non_temporal_ && !pieces_;
    const int64_t i = (by_rows ? tile % along : tile / across) * tile_row_;
    const int64_t j = (by_rows ? tile / along : tile % across) * tile_column_;
    from += i * axes_.stride[last][0] + j * size_;
    to += i * size_ + j * axes_.stride[across_][1];
    if (pieces_) return copy_pieces(from_ + from, to_ + to, i, j);
    const auto transpose = non_temporal_ ? transpose_elements<Prefetch::non_temporal>
                                         : transpose_elements<Prefetch::both>;
    transpose(size_, from_ + from, axes_.stride[last][0], to_ + to, axes_.stride[across_][1],
              std::min(tile_row_, axes_.extent[last] - i),
              std::min(tile_column_, axes_.extent[across_] - j));
  }

  // Copies the tile that begins with element i of rows j and following through a buffer. Each row
  // is written from its first whole cache line up to the first line of the next tile; the ends of
  // rows are written as they are.
  void copy_pieces(const char* from, char* to, int64_t i, int64_t j) const {
    const int last = axes_.count - 1;
    constexpr int64_t stride = kPiece + kLine;
    alignas(kLine) char pieces[kPiecedTileColumn * stride];
    const int64_t left = (axes_.extent[last] - i) * size_;
    const int64_t rows = std::min(tile_column_, axes_.extent[across_] - j);
    transpose_elements<Prefetch::source>(size_, from, axes_.stride[last][0], pieces, stride,
                                         std::min(left, stride) / size_, rows);
    for (int64_t row = 0; row < rows; ++row, to += axes_.stride[across_][1]) {
      const int64_t to_line = -reinterpret_cast<intptr_t>(to) & (kLine - 1);
      const int64_t begin = i == 0 ? 0 : std::min(to_line, left);
      const int64_t end = std::min(kPiece + to_line, left);
      non_temporal_copy(to + begin, pieces + row * stride + begin, end - begin);
    }
  }

  Axes axes_;
  const char* from_;
  char* to_;
  int size_;
  int across_ = -1;
  int64_t tile_column_ = 0, tile_row_ = 0;
  bool non_temporal_ = false;  // rows are aligned to cache lines
  bool pieces_ = false;        // rows are not aligned
};

tenon_status clone(tenon_ctx*, const tenon_tensor* x, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  if (x->flags & out->flags & TENON_TENSOR_CONTIGUOUS && x->numel <= kSerialWork) {
    std::memcpy(out->data, x->data, static_cast<size_t>(x->numel) * kDtypeSize[x->dtype]);
    return TENON_OK;
  }
  Copy(x, out).run(out->numel);
  return TENON_OK;
}
TENON_BOX_clone(clone_boxed, clone);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_clone(clone, nullptr, kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

void copy_strided(const tenon_tensor* x, tenon_tensor* out) {
  if (out->numel > 0) Copy(x, out).run(out->numel);
}

KernelList copy_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
