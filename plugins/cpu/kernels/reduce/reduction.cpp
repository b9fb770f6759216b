// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduction.hpp"

#include <tenon/parallel.hpp>
#include "elementwise/low_precision.hpp"
#include "elementwise/strided.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kRowBlock = 4096;              // elements reduced into one partial result
constexpr int64_t kRowSegment = 16 * kRowBlock;  // elements reduced by one task
constexpr int64_t kColumns = 1024;               // outputs computed side by side, at most
constexpr int64_t kFewColumns = 256;             // and at least, if there are as many
constexpr int64_t kColumnBlock = 128;            // rows reduced into one partial result
constexpr int64_t kColumnSegment = 128 * kColumnBlock;
constexpr int64_t kColumnTasks = 32;  // that rows are cut for, at most
constexpr int64_t kMinRows = 32;      // of one of them
constexpr int64_t kStage = 2048;      // elements converted or gathered at a time
constexpr int64_t kShortRow = 32;
constexpr int64_t kRowCost = 16;       // of one row, in elements
constexpr int kAccumulatorLimit = 16;  // bytes

class Reduction {
 public:
  Reduction(const ReductionLoops& loops, bool widens, const tenon_value* attributes,
            const tenon_tensor* x, const tenon_tensor* out, uint32_t reduced_axes)
      : loops_(loops),
        attributes_(attributes),
        data_(static_cast<const char*>(x->data)),
        out_(static_cast<char*>(out->data)),
        dtype_(x->dtype),
        out_dtype_(out->dtype),
        size_(kDtypeSize[x->dtype]),
        widened_(widens),
        stage_size_(widened_ ? 4 : size_),
        out_size_(kDtypeSize[out->dtype]) {
    kept_.operands = 2;
    reduced_.operands = 1;
    const bool keepdim = out->ndim == x->ndim;
    int out_axis = 0;
    for (int axis = 0; axis < x->ndim; ++axis) {
      const int64_t stride = x->strides[axis] * size_;
      if (reduced_axes & (1u << axis)) {
        reduced_.push(x->shape[axis], &stride);
        reduced_total_ *= x->shape[axis];
        out_axis += keepdim;
      } else {
        const int64_t strides[2] = {stride, out->strides[out_axis] * out_size_};
        kept_.push(x->shape[axis], strides);
        kept_total_ *= x->shape[axis];
        ++out_axis;
      }
    }
    for (Axes* axes : {&kept_, &reduced_}) {
      axes->order_by(0);
      axes->merge();
    }
  }

  tenon_status run(tenon_ctx* ctx, tenon_err* err) {
    if (kept_total_ == 0) return TENON_OK;
    if (reduced_total_ == 0) return fill_empty(err);
    return columns_are_better() ? run_columns(ctx, err) : run_rows(ctx, err);
  }

 private:
  // Columns are reduced side by side if neighbours in memory belong to different outputs, or if the
  // reduced axis is too short for a loop over it.
  bool columns_are_better() const {
    if (kept_.count == 0) return false;
    if (reduced_.count == 0) return true;
    const int64_t kept = std::abs(kept_.inner_stride(0));
    const int64_t reduced = std::abs(reduced_.inner_stride(0));
    return kept < reduced || (reduced_total_ < kShortRow && kept_.inner_extent() >= kShortRow);
  }

  tenon_status fill_empty(tenon_err* err) {
    if (!loops_.empty) {
      return fail(
          err, TENON_INVALID_ARGUMENT,
          "expected at least one element to reduce, got an axis of length 0; this reduction "
          "has no value for nothing");
    }
    alignas(64) char accumulator[kAccumulatorLimit];
    loops_.empty(accumulator, attributes_);
    for (int64_t i = 0; i < kept_total_; ++i) {
      store(accumulator, 1, out_ + StridedIterator(kept_, i).offset(kept_, 1), 0);
    }
    return TENON_OK;
  }

  // Writes n accumulators to outputs that are `stride` bytes apart.
  void store(const char* accumulators, int64_t n, char* out, int64_t stride) const {
    alignas(64) char results[kColumns * 16];
    loops_.finish(accumulators, results, n, reduced_total_, attributes_);
    if (is_low_precision(out_dtype_)) {
      narrow(out_dtype_, reinterpret_cast<const float*>(results), out, stride, n);
    } else {
      copy_row(out, stride, results, out_size_, n, out_size_);
    }
  }

  // Gathers n elements that are `stride` bytes apart and widens them if needed.
  void stage(const char* from, int64_t stride, int64_t n, char* to) const {
    if (widened_) {
      widen(dtype_, from, stride, reinterpret_cast<float*>(to), n);
    } else {
      copy_row(to, size_, from, stride, n, size_);
    }
  }

  void accumulate(char* accumulators, const char* partial, int64_t n, bool first) const {
    if (first) {
      std::memcpy(accumulators, partial, static_cast<size_t>(n * loops_.accumulator_size));
    } else {
      loops_.merge(accumulators, partial, n, attributes_);
    }
  }

  // -- one output at a time ---------------------------------------------------------------------

  // Elements [begin, end) of the reduced axes of the output whose elements start at `base`.
  void reduce_row(const char* base, int64_t begin, int64_t end, char* accumulator) const {
    alignas(64) char staged[kStage * 16];
    alignas(64) char partial[kAccumulatorLimit];
    const bool dense_rows = !widened_ && (reduced_.count == 0 || reduced_.inner_stride(0) == size_);
    StridedIterator position(reduced_, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t in_row = std::min(end - at, position.left_in_row(reduced_));
      int64_t n = std::min(in_row, kRowBlock);
      const char* x = base + position.offset(reduced_, 0);
      if (!dense_rows || (in_row < kShortRow && in_row < end - at)) {
        n = 0;
        while (n < std::min(end - at, kStage)) {
          const int64_t part = std::min({end - at - n, kStage - n, position.left_in_row(reduced_)});
          stage(base + position.offset(reduced_, 0), reduced_.inner_stride(0), part,
                staged + n * stage_size_);
          position.advance(reduced_, part);
          n += part;
        }
        x = staged;
      } else {
        position.advance(reduced_, n);
      }
      loops_.row(x, n, partial, attributes_);
      accumulate(accumulator, partial, 1, at == begin);
      if (is_settled(accumulator)) return;
      at += n;
    }
  }

  bool is_settled(const char* accumulator) const {
    return loops_.settled && loops_.settled(accumulator, attributes_);
  }

  bool rows_are_dense() const { return !widened_ && reduced_.inner_stride(0) == size_; }

  // Processes many rows per call of the loop; rows that are not dense are gathered first.
  void run_short_rows() {
    const bool dense = rows_are_dense();
    const int64_t length = reduced_total_;
    const int64_t most = dense ? kColumns : std::min(kColumns, kStage / length);
    parallel(kept_total_, length + kRowCost, [&](int64_t begin, int64_t end) {
      alignas(64) char staged[kStage * 16];
      alignas(64) char accumulators[kColumns * kAccumulatorLimit];
      StridedIterator position(kept_, begin);
      for (int64_t at = begin; at < end;) {
        const int64_t n = std::min({end - at, most, position.left_in_row(kept_)});
        const char* x = data_ + position.offset(kept_, 0);
        int64_t stride = kept_.inner_stride(0);
        if (!dense) {
          const int64_t bytes = length * stage_size_;
          for (int64_t i = 0; i < n; ++i) {
            stage(x + i * stride, reduced_.inner_stride(0), length, staged + i * bytes);
          }
          x = staged;
          stride = bytes;
        }
        loops_.rows(x, stride, n, length, accumulators, attributes_);
        store(accumulators, n, out_ + position.offset(kept_, 1), kept_.inner_stride(1));
        position.advance(kept_, n);
        at += n;
      }
    });
  }

  tenon_status run_rows(tenon_ctx* ctx, tenon_err* err) {
    if (reduced_.count == 1 && reduced_total_ <= (rows_are_dense() ? kRowBlock : kStage)) {
      run_short_rows();
      return TENON_OK;
    }
    const int64_t segments = (reduced_total_ + kRowSegment - 1) / kRowSegment;
    if (segments == 1 || kept_total_ >= 64) {
      parallel(kept_total_, reduced_total_, [&](int64_t begin, int64_t end) {
        alignas(64) char accumulator[kAccumulatorLimit];
        StridedIterator position(kept_, begin);
        for (int64_t i = begin; i < end; ++i, position.advance(kept_, 1)) {
          reduce_row(data_ + position.offset(kept_, 0), 0, reduced_total_, accumulator);
          store(accumulator, 1, out_ + position.offset(kept_, 1), out_size_);
        }
      });
      return TENON_OK;
    }
    void* scratch;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(kept_total_ * segments * loops_.accumulator_size),
                      &scratch, err);
    if (status != TENON_OK) return status;
    char* partials = static_cast<char*>(scratch);
    std::atomic<bool> settled = false;  // the only output
    parallel(kept_total_ * segments, kRowSegment, [&](int64_t begin, int64_t end) {
      alignas(
          64) char accumulator[kAccumulatorLimit];  // partials of several threads share cache lines
      for (int64_t i = begin; i < end; ++i) {
        char* const partial = partials + i * loops_.accumulator_size;
        if (settled.load(std::memory_order_relaxed)) {
          loops_.empty(partial, attributes_);
          continue;
        }
        const int64_t from = i % segments * kRowSegment;
        reduce_row(data_ + StridedIterator(kept_, i / segments).offset(kept_, 0), from,
                   std::min(from + kRowSegment, reduced_total_), accumulator);
        std::memcpy(partial, accumulator, static_cast<size_t>(loops_.accumulator_size));
        if (kept_total_ == 1 && is_settled(accumulator))
          settled.store(true, std::memory_order_relaxed);
      }
    });
    for (int64_t i = 0; i < kept_total_; ++i) {
      char* row = partials + i * segments * loops_.accumulator_size;
      merge_segments(row, loops_.accumulator_size, segments, 1);
      store(row, 1, out_ + StridedIterator(kept_, i).offset(kept_, 1), out_size_);
    }
    return TENON_OK;
  }

  // Segments of n accumulators, `bytes` apart, pairwise; the result is in the first.
  void merge_segments(char* partials, int64_t bytes, int64_t segments, int64_t n) const {
    for (int64_t step = 1; step < segments; step *= 2) {
      for (int64_t i = 0; i + step < segments; i += 2 * step) {
        loops_.merge(partials + i * bytes, partials + (i + step) * bytes, n, attributes_);
      }
    }
  }

  // -- outputs side by side -----------------------------------------------------------------------

  // Rows [begin, end) of the reduced axes, for n outputs whose elements are `stride` bytes apart.
  void reduce_columns(const char* base, int64_t stride, int64_t n, int64_t begin, int64_t end,
                      char* accumulators) const {
    alignas(64) char staged[kStage * 16];
    alignas(64) char partial[kColumns * kAccumulatorLimit];
    const int64_t row_stride = reduced_.inner_stride(0);
    const bool direct = !widened_ && stride == size_;
    // Few columns in consecutive rows: several rows are treated as one wide row, whose parts are
    // merged afterwards.
    const int64_t rows_per_step = direct && row_stride == n * size_ ? kFewColumns / n : 1;
    StridedIterator position(reduced_, begin);
    for (int64_t at = begin; at < end;) {
      int64_t rows = std::min(end - at, position.left_in_row(reduced_));
      const char* x = base + position.offset(reduced_, 0);
      if (!direct) {
        rows = std::min(rows, kStage / n);
        for (int64_t i = 0; i < rows; ++i) {
          stage(x + i * row_stride, stride, n, staged + i * n * stage_size_);
        }
        loops_.columns(staged, n * stage_size_, rows, n, partial, attributes_);
      } else if (rows_per_step > 1 && rows >= rows_per_step) {
        const int64_t steps = std::min(rows / rows_per_step, kColumnBlock);
        rows = steps * rows_per_step;
        loops_.columns(x, row_stride * rows_per_step, steps, n * rows_per_step, partial,
                       attributes_);
        for (int64_t i = 1; i < rows_per_step; ++i) {
          loops_.merge(partial, partial + i * n * loops_.accumulator_size, n, attributes_);
        }
      } else {
        rows = std::min(rows, kColumnBlock);
        loops_.columns(x, row_stride, rows, n, partial, attributes_);
      }
      accumulate(accumulators, partial, n, at == begin);
      position.advance(reduced_, rows);
      at += rows;
    }
  }

  bool columns_are_staged() const { return widened_ || kept_.inner_stride(0) != size_; }

  // The number of segments that the rows are divided into, as tasks for threads: whole rows are
  // longer runs of memory than parts of rows. It depends on the shape alone, since it determines
  // the order of additions.
  int64_t column_segments(int64_t width) const {
    const int64_t least = (reduced_total_ + kColumnSegment - 1) / kColumnSegment;
    const int64_t groups = kept_total_ / width * ((width + kColumns - 1) / kColumns);
    const int64_t wanted =
        std::min(kColumnTasks / groups, reduced_total_ * kept_total_ / kRowSegment);
    const int64_t even = std::min(wanted, reduced_total_ / kMinRows);
    return std::max(least, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(even))));
  }

  // The number of columns of one task: long runs of memory, but at least one task per thread. The
  // grouping of columns changes no result, unless their rows are staged; the staging buffer then
  // holds four rows.
  int64_t columns_together(int64_t width, int64_t segments) const {
    if (columns_are_staged()) return kStage / 4;
    if (segments > 1) return kColumns;
    const int64_t share = (width + host->thread_count() - 1) / host->thread_count();
    return std::clamp((share + 63) / 64 * 64, kFewColumns, kColumns);
  }

  tenon_status run_columns(tenon_ctx* ctx, tenon_err* err) {
    const int64_t width = kept_.inner_extent();
    const int64_t segments = column_segments(width);
    const int64_t together = std::min(columns_together(width, segments), width);
    const int64_t blocks = (width + together - 1) / together;
    const int64_t groups = kept_total_ / width * blocks;
    const auto first_of = [=, this](int64_t segment) {
      return reduced_total_ * segment / segments;
    };
    const int64_t partial_size = (together * loops_.accumulator_size + 63) & ~int64_t{63};
    char* partials = nullptr;
    if (segments > 1) {
      void* scratch;
      const tenon_status status = host->scratch(
          ctx, static_cast<uint64_t>(groups * segments * partial_size), &scratch, err);
      if (status != TENON_OK) return status;
      partials = static_cast<char*>(scratch);
    }
    const auto columns_of = [&](int64_t group) {
      return std::min(together, width - group % blocks * together);
    };
    const auto start_of = [&](int64_t group) {
      return StridedIterator(kept_, group / blocks * width + group % blocks * together);
    };
    const int64_t work = together * (reduced_total_ / segments);
    parallel(groups * segments, work, [&](int64_t begin, int64_t end) {
      alignas(64) char accumulators[kColumns * kAccumulatorLimit];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / segments, segment = i % segments;
        const StridedIterator position = start_of(group);
        char* target = partials ? partials + i * partial_size : accumulators;
        reduce_columns(data_ + position.offset(kept_, 0), kept_.inner_stride(0), columns_of(group),
                       first_of(segment), first_of(segment + 1), target);
        if (!partials) {
          store(target, columns_of(group), out_ + position.offset(kept_, 1), kept_.inner_stride(1));
        }
      }
    });
    for (int64_t group = 0; partials && group < groups; ++group) {
      char* first = partials + group * segments * partial_size;
      merge_segments(first, partial_size, segments, columns_of(group));
      store(first, columns_of(group), out_ + start_of(group).offset(kept_, 1),
            kept_.inner_stride(1));
    }
    return TENON_OK;
  }

  const ReductionLoops& loops_;
  const tenon_value* attributes_;
  const char* data_;
  char* out_;
  int dtype_, out_dtype_;
  int size_;
  bool widened_;
  int stage_size_, out_size_;
  Axes kept_;     // operands: x, out
  Axes reduced_;  // operand: x
  int64_t kept_total_ = 1, reduced_total_ = 1;
};

// Bit i: axis i is reduced.
uint32_t reduced_axes(const tenon_value& axis, const tenon_tensor* x, const tenon_tensor* out) {
  const uint32_t all = x->ndim == 32 ? ~0u : (1u << x->ndim) - 1;
  const auto bit = [&](int64_t a) { return 1u << (a < 0 ? a + x->ndim : a); };
  if (x->ndim == 0) return 0;
  if (axis.tag == TENON_VALUE_INT) return bit(axis.v.i);
  if (axis.tag != TENON_VALUE_INTS) return all;
  // An empty list means no axis or every axis; the shape rule has decided.
  if (axis.aux == 0) return out->numel == x->numel ? 0 : all;
  uint32_t result = 0;
  for (uint32_t i = 0; i < axis.aux; ++i) result |= bit(static_cast<const int64_t*>(axis.v.p)[i]);
  return result;
}

}  // namespace

tenon_status run_reduction(const ReductionKernel& kernel, tenon_ctx* ctx, const tenon_value* args,
                           uint32_t, tenon_value* outs, tenon_err* err) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* out = static_cast<const tenon_tensor*>(outs[0].v.p);
  const tenon_value* attributes = args + kernel.attributes;
  const int dtype = x->dtype;
  const bool widens = is_low_precision(dtype) && !kernel.loops[dtype];
  const ReductionLoops* loops = kernel.loops[widens ? TENON_DTYPE_F32 : dtype];
  if (!loops) return fail(err, TENON_UNSUPPORTED, "this reduction has no loop for the dtype given");

  // A short dense tensor reduced to one number: nothing to plan.
  if (out->numel == 1 && x->numel > 0 && x->numel <= kRowBlock && !is_low_precision(dtype) &&
      (x->flags & TENON_TENSOR_CONTIGUOUS)) [[likely]] {
    alignas(64) char accumulator[kAccumulatorLimit];
    loops->row(static_cast<const char*>(x->data), x->numel, accumulator, attributes);
    loops->finish(accumulator, static_cast<char*>(out->data), 1, x->numel, attributes);
    return TENON_OK;
  }
  Reduction reduction(*loops, widens, attributes, x, out,
                      reduced_axes(args[kernel.axis_argument], x, out));
  return reduction.run(ctx, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
