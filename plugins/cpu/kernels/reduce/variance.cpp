// SPDX-License-Identifier: Apache-2.0
// var and logsumexp over adjacent axes; over other axes these operators are lowered to sums. var
// merges the moments of blocks (norm/moments.hpp); logsumexp takes the maximum first and then the
// sum of exponentials relative to it.
#include "kernel.hpp"
#include "norm/moments.hpp"
#include "norm/softmax_exp.hpp"

#include <tenon/signatures/reduction.h>

#include <algorithm>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 64, kMomentColumns = 256;  // side by side, at most
constexpr int64_t kSegment = 1 << 16;                   // of one long row, for one task

// A view of x as [outer, length, inner] around the reduced axes, in the order of the axes or in the
// order of memory.
struct ReducedView {
  int64_t outer = 1, length = 1, inner = 1;
  bool neighbours = true;
  bool dense = true;  // no element is left out, whatever the order of the axes
  bool keeps_order =
      true;  // axes that are not reduced lie in memory as they do in a contiguous result

  ReducedView(const tenon_tensor* x, const int64_t* axes, uint64_t count, bool all,
              bool in_memory) {
    uint32_t reduced = 0;
    for (uint64_t i = 0; i < count; ++i) reduced |= 1u << normalize_axis(axes[i], x->ndim);
    if (all) reduced = ~0u;
    int order[TENON_MAX_NDIM], ndim = 0;
    for (int i = 0; i < x->ndim; ++i) {
      if (x->shape[i] != 1) order[ndim++] = i;
    }
    if (in_memory && !(x->flags & TENON_TENSOR_CONTIGUOUS)) {
      std::stable_sort(order, order + ndim,
                       [x](int a, int b) { return x->strides[a] > x->strides[b]; });
    }
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      dense &= x->strides[order[i]] == stride;
      stride *= x->shape[order[i]];
    }
    int state = 0, kept = -1;  // before, inside and after the reduced axes
    for (int k = 0; k < ndim; ++k) {
      const int i = order[k];
      const bool inside = reduced >> i & 1;
      if (!inside) {
        keeps_order &= i > kept;
        kept = i;
      }
      if (inside && state == 2) neighbours = false;
      if (inside != (state == 1)) state = inside ? 1 : (state == 1 ? 2 : state);
      (inside ? length : state == 0 ? outer : inner) *= x->shape[i];
    }
  }
};

// Reads `axis`: NONE, INT or INTS. An empty list is left to the lowering.
ReducedView block_of(const tenon_value* args, bool in_memory) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const tenon_value& axis = args[1];
  if (axis.tag == TENON_VALUE_INT) return {x, &axis.v.i, 1, false, in_memory};
  const auto* axes = static_cast<const int64_t*>(axis.v.p);
  return {x, axes, axis.aux, axis.tag == TENON_VALUE_NONE, in_memory};
}
bool is_empty_list(const tenon_value& axis) {
  return axis.tag == TENON_VALUE_INTS && axis.aux == 0;
}
int32_t neighbours(const tenon_value* args, uint32_t) {
  if (args[1].tag != TENON_VALUE_INTS) return 1;
  return !is_empty_list(args[1]) && block_of(args, false).neighbours;
}
// Tensors with permuted axes are read in the order of memory.
int32_t neighbours_in_memory(const tenon_value* args, uint32_t) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  if (x->flags & TENON_TENSOR_CONTIGUOUS || x->numel == 0 || is_low_precision(x->dtype)) return 0;
  if (is_empty_list(args[1])) return 0;
  const ReducedView block = block_of(args, true);
  return block.dense && block.neighbours && block.keeps_order;
}

// rows(i) for every slice along the last axes, columns(offset, at, count) for blocks of others,
// where `offset` is that of the block in x and `at` that in out.
template <class Rows, class Columns>
void for_slices(const ReducedView& block, int64_t work, int64_t most, Rows rows, Columns columns) {
  if (block.inner == 1) {
    parallel(block.outer, block.length * work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) rows(i);
    });
    return;
  }
  const int64_t together = columns_together(block.inner, most);
  const int64_t groups = (block.inner + together - 1) / together;
  parallel(block.outer * groups, block.length * together * work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / groups, column = i % groups * together;
      columns(outer * block.length * block.inner + column, outer * block.inner + column,
              std::min(together, block.inner - column));
    }
  });
}

template <class T>
tenon_status run_var(tenon_ctx* ctx, const ReducedView& block, const T* x, double correction,
                     T* out, tenon_err* err) {
  const T divisor = static_cast<T>(std::max(static_cast<double>(block.length) - correction, 0.0));
  const int64_t n = block.length;
  if (block.outer == 1 && block.inner == 1 && n > kSegment) {
    const int64_t segments = (n + kSegment - 1) / kSegment;
    void* memory;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(segments) * sizeof(Moments<T>), &memory, err);
    if (status != TENON_OK) return status;
    auto* parts = static_cast<Moments<T>*>(memory);
    parallel(segments, kSegment, [=](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        parts[s] = moments_of(x + s * kSegment, std::min(kSegment, n - s * kSegment));
      }
    });
    for (int64_t s = 1; s < segments; ++s) parts[0].merge(parts[s]);
    *out = parts[0].squares / divisor;
    return TENON_OK;
  }
  for_slices(
      block, 2, kMomentColumns,
      [=](int64_t i) { out[i] = moments_of(x + i * n, n).squares / divisor; },
      [=, inner = block.inner](int64_t offset, int64_t at, int64_t columns) {
        const ColumnMoments<T, kMomentColumns> moments(x + offset, n, inner, columns);
        for (int64_t j = 0; j < columns; ++j) out[at + j] = moments.squares[j] / divisor;
      });
  return TENON_OK;
}

tenon_status var(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
                 double correction, int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(var, ctx, err, x, axis, axis_count, correction, keepdim, out);
  }
  if (out->numel == 0) return TENON_OK;
  const ReducedView block(x, axis, axis_count, axis == nullptr, true);
  return x->dtype == TENON_DTYPE_F32
             ? run_var(ctx, block, data_of<float>(x), correction, data_of<float>(out), err)
             : run_var(ctx, block, data_of<double>(x), correction, data_of<double>(out), err);
}
TENON_BOX_var(var_boxed, var);

// The number that is subtracted before exp: 0 where the maximum is infinite, so that -inf -
// (-inf) does not become NaN.
template <class T>
inline T anchor(T max_value) {
  return std::abs(max_value) == std::numeric_limits<T>::infinity() ? T(0) : max_value;
}

template <class T>
void run_logsumexp(const ReducedView& block, const T* x, T* out) {
  const int64_t n = block.length;
  if (n == 0) {
    std::fill_n(out, block.outer * block.inner, -std::numeric_limits<T>::infinity());
    return;
  }
  for_slices(
      block, 8, kColumns,
      [=](int64_t i) {
        const T* row = x + i * n;
        const T max_value = max_row(row, n), base = anchor(max_value);
        prefetch_row(row + n, n);
        const T sum = sum_row<T>(n, [=](int64_t j) { return softmax_exp(row[j] - base); });
        out[i] = max_value + math::log(sum);
      },
      [=, stride = block.inner](int64_t offset, int64_t at, int64_t columns) {
        const T* from = x + offset;
        T max_value[kColumns], base[kColumns], sum[kColumns] = {};
        std::copy_n(from, columns, max_value);
        for (int64_t i = 1; i < n; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            max_value[j] =
                from[i * stride + j] > max_value[j] ? from[i * stride + j] : max_value[j];
          }
        }
        for (int64_t j = 0; j < columns; ++j) base[j] = anchor(max_value[j]);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < columns; ++j)
            sum[j] += softmax_exp(from[i * stride + j] - base[j]);
        }
        for (int64_t j = 0; j < columns; ++j) out[at + j] = max_value[j] + math::log(sum[j]);
      });
}

tenon_status logsumexp(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis,
                       uint64_t axis_count, int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(logsumexp, ctx, err, x, axis, axis_count, keepdim, out);
  }
  if (out->numel == 0) return TENON_OK;
  const ReducedView block(x, axis, axis_count, axis == nullptr, true);
  x->dtype == TENON_DTYPE_F32 ? run_logsumexp(block, data_of<float>(x), data_of<float>(out))
                              : run_logsumexp(block, data_of<double>(x), data_of<double>(out));
  return TENON_OK;
}
TENON_BOX_logsumexp(logsumexp_boxed, logsumexp);

constexpr uint32_t kStridedRows = TENON_KERNEL_STRIDED | TENON_KERNEL_ROWS;

const tenon_kernel_def kKernels[] = {
    with_can_run(TENON_KERNEL_var(var, nullptr, kFloats, TENON_KERNEL_ROWS, 0), neighbours),
    with_can_run(TENON_KERNEL_logsumexp(logsumexp, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
                 neighbours),
    with_can_run(TENON_KERNEL_var(var, nullptr, kFloats, kStridedRows, 1), neighbours_in_memory),
    with_can_run(TENON_KERNEL_logsumexp(logsumexp, nullptr, kFloats, kStridedRows, 1),
                 neighbours_in_memory)};

}  // namespace

KernelList variance_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
