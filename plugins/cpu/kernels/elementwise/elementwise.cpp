// SPDX-License-Identifier: Apache-2.0
#include "elementwise/elementwise.hpp"

#include <tenon/parallel.hpp>
#include "elementwise/low_precision.hpp"
#include "elementwise/strided.hpp"
#include "simd/non_temporal.hpp"
#include "simd/transpose.hpp"

#include <algorithm>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The size of a staging block: the blocks of all operands fit into the first-level cache.
constexpr int64_t kBlockBytes = kNonTemporalBlock;
// Rows shorter than this are staged several at a time.
constexpr int64_t kShortRow = 64;
// Inputs that are dense along another axis than the output are transposed, one tile at a time.
constexpr int64_t kTileRows = 64, kTileBytes = 512;  // of a row, at most those of a block
constexpr int64_t kMinTiled = 16;                    // elements of a row
constexpr int kMaxTiled = 3;

// How the loop accesses an operand.
enum class Access {
  contiguous,    // dense over the whole walk
  row,           // dense within a row
  repeated,      // one value within a row
  constant,      // one value
  staged,        // through a block, because of its strides or its dtype
  non_temporal,  // an output too large for the caches: through a block and around them
};

struct Operand {
  char* data;
  uint8_t dtype;
  bool widened;  // the block holds float32
  Access access;
  int size;        // of an element in memory
  int block_size;  // of an element as the loop sees it
  int tile = -1;   // which tile holds it
};

// Buffers of one task.
struct Blocks {
  alignas(64) char staged[kMaxOperands][kBlockBytes];
  alignas(64) char tiles[kMaxTiled][kTileRows * kTileBytes];
  alignas(64) char narrowed[kBlockBytes];
};

// One call of a kernel: its operands, the axes to iterate over, and the loop.
class StridedLoop {
 public:
  StridedLoop(const ElementwiseKernel& kernel, const tenon_value* args, const tenon_tensor* out)
      : inputs_(static_cast<int>(kernel.inputs)), attributes_(args + kernel.inputs) {
    const tenon_tensor* tensors[kMaxOperands];
    for (int i = 0; i < inputs_; ++i) tensors[i] = static_cast<const tenon_tensor*>(args[i].v.p);
    tensors[inputs_] = out;
    const int dtype = tensors[kernel.dtype_input]->dtype;
    const bool widen = is_low_precision(dtype) && !kernel.loops[dtype];
    loop_ = kernel.loops[widen ? TENON_DTYPE_F32 : dtype];
    axes_ = broadcast_axes(tensors, inputs_, out);
    by_rows_ = axes_.inner_extent() >= kShortRow || axes_.count <= 1;

    for (int i = 0; i <= inputs_; ++i) {
      Operand& operand = operands_[i];
      operand.data = static_cast<char*>(tensors[i]->data);
      operand.dtype = tensors[i]->dtype;
      operand.size = kDtypeSize[operand.dtype];
      operand.widened = widen && is_low_precision(operand.dtype);
      operand.block_size = operand.widened ? 4 : operand.size;
    }
    find_tiles();
    for (int i = 0; i <= inputs_; ++i) operands_[i].access = access_of(i);
    choose_constants();
    choose_non_temporal(out->numel);
  }

  bool has_loop() const { return loop_ != nullptr; }

  void run_parallel(int64_t total, int64_t cost) const {
    for (int i = 0; i <= inputs_; ++i)
      cost += operands_[i].widened;  // each conversion is one more pass
    if (across_ < 0) {
      parallel(total, cost, [&](int64_t begin, int64_t end) { run(begin, end); });
      return;
    }
    const int64_t planes = total / (axes_.extent[across_] * axes_.inner_extent());
    parallel(planes * tiles_along(across_, kTileRows) * tiles_along(axes_.count - 1, tile_columns_),
             kTileRows * tile_columns_ * cost,
             [&](int64_t begin, int64_t end) { run_transposed_tiles(begin, end); });
  }

 private:
  // Compute elements [begin, end) of the walk.
  void run(int64_t begin, int64_t end) const {
    Blocks blocks;
    fill_constants(blocks, end - begin);
    StridedIterator position(axes_, begin);
    if (unstaged_) return run_unstaged(blocks, position, begin, end);
    for (int64_t at = begin; at < end;) {
      int64_t n = end - at;
      n = std::min(n, max_run_);
      if (by_rows_) n = std::min(n, position.left_in_row(axes_));
      compute(blocks, position, at, 0, n);
      at += n;
      if (by_rows_) {
        position.advance(axes_, n);
      } else if (at < end) {
        position = StridedIterator(axes_, at);
      }
    }
    if (operands_[inputs_].access == Access::non_temporal) non_temporal_fence();
  }

  // The same where only constants go through a block. The pointers of the operands are computed
  // once for many runs of equal length, which are rows or parts of one row, and then advanced by
  // constant steps.
  void run_unstaged(Blocks& blocks, StridedIterator position, int64_t begin, int64_t end) const {
    const int last = axes_.count - 1;
    for (int64_t at = begin; at < end;) {
      const int64_t left = by_rows_ ? std::min(end - at, position.left_in_row(axes_)) : end - at;
      const int64_t n = std::min(left, max_run_);
      const bool whole_rows = by_rows_ && last > 0 && n == axes_.extent[last];
      const int64_t pieces =
          whole_rows ? std::min((end - at) / n, axes_.extent[last - 1] - position.index[last - 1])
                     : left / n;
      char* data[kMaxOperands];
      int64_t strides[kMaxOperands], steps[kMaxOperands];
      for (int i = 0; i <= inputs_; ++i) {
        const Operand& operand = operands_[i];
        const bool constant = operand.access == Access::constant;
        data[i] = constant                               ? blocks.staged[i]
                  : operand.access == Access::contiguous ? operand.data + at * operand.size
                                                         : operand.data + position.offset(axes_, i);
        strides[i] =
            operand.access == Access::repeated || i == free_constant_ ? 0 : operand.block_size;
        steps[i] = constant     ? 0
                   : whole_rows ? axes_.stride[last - 1][i]
                                : n * (operand.access == Access::repeated ? 0 : operand.size);
      }
      run_pieces(data, strides, steps, n, pieces);
      at += pieces * n;
      if (whole_rows) {
        position.advance(axes_, pieces, last - 1);
      } else if (by_rows_) {
        position.advance(axes_, pieces * n);
      }
    }
  }

  // Computes tiles [begin, end) of the matrices that the last axis and `across_` span. Loop order:
  // row of tiles by row of tiles, so that each thread writes rows of its own; prefetchers run past
  // the end of a partial row and would pull lines that another thread writes.
  void run_transposed_tiles(int64_t begin, int64_t end) const {
    Blocks blocks;
    fill_constants(blocks, tile_columns_);
    const int last = axes_.count - 1;
    const int64_t down = tiles_along(across_, kTileRows), along = tiles_along(last, tile_columns_);
    for (int64_t tile = begin; tile < end; ++tile) {
      StridedIterator position(axes_, 0);
      int64_t plane = tile / (down * along);
      for (int i = last - 1; i >= 0; --i) {
        if (i == across_) continue;
        position.index[i] = plane % axes_.extent[i];
        plane /= axes_.extent[i];
      }
      int64_t& row = position.index[across_];
      row = tile / along % down * kTileRows;
      position.index[last] = tile % along * tile_columns_;
      const int64_t rows = std::min(kTileRows, axes_.extent[across_] - row);
      const int64_t columns = std::min(tile_columns_, position.left_in_row(axes_));
      for (int i = 0; i < inputs_; ++i) {
        const Operand& operand = operands_[i];
        if (operand.tile < 0) continue;
        transpose_elements<Prefetch::source>(operand.size, operand.data + position.offset(axes_, i),
                                             axes_.inner_stride(i), blocks.tiles[operand.tile],
                                             tile_columns_ * operand.size, columns, rows);
      }
      compute_tile(blocks, position, rows, columns);
    }
  }

  // Computes the rows of a tile. Pointers of operands that need no staging are computed once and
  // then advanced.
  void compute_tile(Blocks& blocks, StridedIterator position, int64_t rows, int64_t columns) const {
    if (stages_) {
      for (int64_t r = 0; r < rows; ++r, ++position.index[across_]) {
        compute(blocks, position, 0, r, columns);
      }
      return;
    }
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands], steps[kMaxOperands];
    for (int i = 0; i <= inputs_; ++i) {
      const Operand& operand = operands_[i];
      const bool tiled = operand.tile >= 0, constant = operand.access == Access::constant;
      data[i] = tiled      ? blocks.tiles[operand.tile]
                : constant ? blocks.staged[i]
                           : operand.data + position.offset(axes_, i);
      steps[i] = tiled ? tile_columns_ * operand.size : constant ? 0 : axes_.stride[across_][i];
      strides[i] = i == free_constant_ ? 0 : operand.block_size;
    }
    for (int64_t r = 0; r < rows; ++r) {
      prefetch_rows(data, steps, columns, rows - r);
      run_pieces(data, strides, steps, columns, 1);
    }
  }

  // Prefetches the rows two steps ahead of operands that are accessed directly: rows of tiles are
  // too short for the hardware prefetcher.
  [[gnu::always_inline]] void prefetch_rows(char* const* data, const int64_t* steps, int64_t n,
                                            int64_t rows) const {
    constexpr int64_t distance = 2;
    if (rows <= distance) return;
    for (int i = 0; i <= inputs_; ++i) {
      const Operand& operand = operands_[i];
      if (operand.tile >= 0 || operand.access == Access::constant) continue;
      const char* const next = data[i] + distance * steps[i];
      for (int64_t at = 0; at < n * operand.size; at += 64) __builtin_prefetch(next + at);
    }
  }

  // Pieces of n elements whose operands lie `steps` bytes apart.
  void run_pieces(char** data, const int64_t* strides, const int64_t* steps, int64_t n,
                  int64_t pieces) const {
    for (; pieces > 0; --pieces) {
      loop_(data, strides, n, attributes_);
      for (int i = 0; i <= inputs_; ++i) data[i] += steps[i];
    }
  }

  // n elements from `position` on, the `at`-th of the walk, in row `tile_row` of the tiles.
  void compute(Blocks& blocks, const StridedIterator& position, int64_t at, int64_t tile_row,
               int64_t n) const {
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands];
    for (int i = 0; i <= inputs_; ++i) {
      const Operand& operand = operands_[i];
      char* block = blocks.staged[i];
      char* const tiled =
          operand.tile < 0 ? nullptr
                           : blocks.tiles[operand.tile] + tile_row * tile_columns_ * operand.size;
      strides[i] = operand.block_size;
      switch (operand.access) {
        case Access::contiguous:
          data[i] = operand.data + at * operand.size;
          break;
        case Access::row:
          data[i] = tiled ? tiled : operand.data + position.offset(axes_, i);
          break;
        case Access::repeated:
          data[i] = operand.data + position.offset(axes_, i);
          strides[i] = 0;
          break;
        case Access::non_temporal:
          data[i] = block;
          break;
        case Access::constant:
          data[i] = block;
          if (i == free_constant_) strides[i] = 0;
          break;
        case Access::staged:
          data[i] = block;
          if (tiled) {
            widen(operand.dtype, tiled, operand.size, reinterpret_cast<float*>(block), n);
          } else if (i < inputs_) {
            transfer<true>(i, position, n, block);
          }
          break;
      }
    }
    loop_(data, strides, n, attributes_);
    const Operand& out = operands_[inputs_];
    char* result = blocks.staged[inputs_];
    if (out.access == Access::staged) {
      transfer<false>(inputs_, position, n, result);
    } else if (out.access == Access::non_temporal) {
      if (out.widened) {
        narrow(out.dtype, reinterpret_cast<float*>(result), blocks.narrowed, out.size, n);
        result = blocks.narrowed;
      }
      non_temporal_copy(out.data + position.offset(axes_, inputs_), result, n * out.size);
    }
  }

  int64_t tiles_along(int axis, int64_t size) const {
    return (axes_.extent[axis] + size - 1) / size;
  }

  // Finds inputs that are dense along one axis while the output is dense along another.
  void find_tiles() {
    const int last = axes_.count - 1;
    if (last < 1 || axes_.inner_extent() < kMinTiled) return;
    int count = 0;
    for (int i = 0; i < inputs_ && count < kMaxTiled; ++i) {
      Operand& operand = operands_[i];
      const int64_t inner = axes_.inner_stride(i);
      if (inner == 0 || inner == operand.size || operand.size > 8) continue;
      for (int axis = across_ < 0 ? 0 : across_; axis < (across_ < 0 ? last : across_ + 1);
           ++axis) {
        if (axes_.stride[axis][i] != operand.size || axes_.extent[axis] < 4) continue;
        operand.tile = count++;
        across_ = axis;
        break;
      }
    }
    by_rows_ |= across_ >= 0;
  }

  Access access_of(int i) {
    const Operand& operand = operands_[i];
    if (i < inputs_ && axes_.is_constant(i)) return Access::constant;
    if (operand.widened) return Access::staged;
    if (operand.tile >= 0) return Access::row;
    if (across_ < 0 && axes_.is_contiguous(i, operand.size)) return Access::contiguous;
    if (by_rows_ && axes_.inner_stride(i) == operand.size) return Access::row;
    return Access::staged;
  }

  // A binary loop reads one operand of stride 0 without cost; every other constant is copied over a
  // whole block.
  void choose_constants() {
    if (inputs_ == 2) {
      for (int i = 1; i >= 0 && free_constant_ < 0; --i) {
        if (operands_[i].access == Access::constant) free_constant_ = i;
      }
      for (int i = 1; i >= 0 && free_constant_ < 0 && by_rows_; --i) {
        if (operands_[i].access != Access::staged || operands_[i].widened) continue;
        if (axes_.inner_stride(i) != 0) continue;
        operands_[i].access = Access::repeated;
        free_constant_ = i;
      }
    }
    int widest = 1;
    for (int i = 0; i <= inputs_; ++i) {
      const Access access = operands_[i].access;
      stages_ |= access == Access::staged || (access == Access::constant && i != free_constant_);
      unstaged_ &= access != Access::staged;
      widest = std::max(widest, operands_[i].block_size);
    }
    block_ = kBlockBytes / widest;
    tile_columns_ = kTileBytes / widest;
    if (stages_) max_run_ = block_;
  }

  // Chooses non-temporal stores for large results. Short rows share cache lines, and a result that
  // overwrites an input is in cache: both use ordinary stores.
  void choose_non_temporal(int64_t total) {
    Operand& out = operands_[inputs_];
    int64_t bytes = total * out.size;
    for (int i = 0; i < inputs_; ++i) {
      if (operands_[i].data == out.data) return;
      if (operands_[i].access != Access::constant) bytes += total * operands_[i].size;
    }
    if (!use_non_temporal(total * out.size, bytes) || across_ >= 0 || !by_rows_) return;
    if (axes_.inner_extent() * out.size < kNonTemporalBlock) return;
    if (axes_.inner_stride(inputs_) != out.size) return;
    out.access = Access::non_temporal;
    unstaged_ = false;
    max_run_ = block_;
  }

  void fill_constants(Blocks& blocks, int64_t n) const {
    for (int i = 0; i < inputs_; ++i) {
      if (operands_[i].access == Access::constant) fill_constant(i, blocks.staged[i], n);
    }
  }

  void fill_constant(int i, char* block, int64_t n) const {
    const Operand& operand = operands_[i];
    n = i == free_constant_ ? 1 : std::min(n, block_);
    if (operand.widened) {
      std::fill_n(reinterpret_cast<float*>(block), n, widen_one(operand.dtype, operand.data));
    } else {
      copy_row(block, operand.size, operand.data, 0, n, operand.size);
    }
  }

  // n elements from `position` on between an operand and its block.
  template <bool Gather>
  void transfer(int i, const StridedIterator& position, int64_t n, char* block) const {
    if (by_rows_) return transfer_row<Gather>(i, position, n, block);
    for (StridedIterator at = position; n > 0;) {
      const int64_t part = std::min(n, at.left_in_row(axes_));
      transfer_row<Gather>(i, at, part, block);
      block += part * operands_[i].block_size;
      at.advance(axes_, part);
      n -= part;
    }
  }

  template <bool Gather>
  void transfer_row(int i, const StridedIterator& position, int64_t n, char* block) const {
    const Operand& operand = operands_[i];
    const int64_t stride = axes_.inner_stride(i);
    char* memory = operand.data + position.offset(axes_, i);
    if (operand.widened) {
      if (Gather) {
        widen(operand.dtype, memory, stride, reinterpret_cast<float*>(block), n);
      } else {
        narrow(operand.dtype, reinterpret_cast<float*>(block), memory, stride, n);
      }
    } else if (Gather) {
      copy_row(block, operand.size, memory, stride, n, operand.size);
    } else {
      copy_row(memory, stride, block, operand.size, n, operand.size);
    }
  }

  int inputs_;
  const tenon_value* attributes_;
  ElementwiseLoop loop_;
  Axes axes_;
  bool by_rows_;
  bool stages_ = false;                                    // some operand goes through a block
  bool unstaged_ = true;                                   // none but constants does
  int64_t block_;                                          // elements of a block
  int64_t max_run_ = std::numeric_limits<int64_t>::max();  // elements of one call of the loop
  int free_constant_ = -1;  // the input that the loop reads without a stride
  int across_ = -1;         // the axis along which tiled inputs are dense
  int64_t tile_columns_;
  Operand operands_[kMaxOperands];
};

[[gnu::noinline]] tenon_status run_strided(const ElementwiseKernel& kernel, const tenon_value* args,
                                           const tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  const StridedLoop loop(kernel, args, out);
  if (!loop.has_loop()) {
    return fail(err, TENON_UNSUPPORTED, "this elementwise kernel has no loop for the dtype given");
  }
  loop.run_parallel(out->numel, kernel.cost);
  return TENON_OK;
}

}  // namespace

tenon_status run_elementwise(const ElementwiseKernel& kernel, tenon_ctx*, const tenon_value* args,
                             uint32_t, tenon_value* outs, tenon_err* err) {
  // The fast path of nearly every small call: dense operands of one size, possibly with one number.
  const auto* out = static_cast<const tenon_tensor*>(outs[0].v.p);
  const int64_t n = out->numel;
  const uint32_t inputs = kernel.inputs;
  char* data[kMaxOperands];
  int64_t strides[kMaxOperands];
  uint32_t dense = out->flags & TENON_TENSOR_CONTIGUOUS;
  for (uint32_t i = 0; i < inputs; ++i) {
    const auto* in = static_cast<const tenon_tensor*>(args[i].v.p);
    data[i] = static_cast<char*>(in->data);
    const bool same = in->numel == n;
    strides[i] = same ? 1 : 0;
    dense &= (same || (in->numel == 1 && inputs == 2)) ? in->flags : 0u;
  }
  data[inputs] = static_cast<char*>(out->data);
  const auto* chooser = static_cast<const tenon_tensor*>(args[kernel.dtype_input].v.p);
  const ElementwiseLoop loop = kernel.loops[chooser->dtype];
  const bool small = n <= kSerialWork / static_cast<int64_t>(kernel.cost);
  const bool both_scalar = inputs == 2 && strides[0] + strides[1] == 0;
  if ((dense & TENON_TENSOR_CONTIGUOUS) && loop && small && !both_scalar) [[likely]] {
    loop(data, strides, n, args + inputs);
    return TENON_OK;
  }
  return run_strided(kernel, args, out, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
