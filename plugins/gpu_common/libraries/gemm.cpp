// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <algorithm>
#include <cstring>

namespace gpu::blas {
namespace {

constexpr int64_t kMaxAlignment = 256;  // what allocations have at least
constexpr int64_t kMaxExtent = INT32_MAX;

// Rows and columns of the last two axes. A vector on the left is a row, on the right a column.
struct Axes {
  int64_t rows, columns, row_stride, column_stride;
  int batch_axes;
};

Axes axes_of(const tenon_tensor& tensor, bool is_left) {
  const int last = tensor.ndim - 1;
  if (tensor.ndim > 1)
    return {tensor.shape[last - 1], tensor.shape[last], tensor.strides[last - 1],
            tensor.strides[last], last - 1};
  if (is_left) return {1, tensor.shape[0], tensor.shape[0], tensor.strides[0], 0};
  return {tensor.shape[0], 1, tensor.strides[0], 1, 0};
}

bool read_matrix(const Axes& axes, Matrix* out) {
  const int64_t column_stride = axes.columns == 1 ? 1 : axes.column_stride;
  const int64_t row_stride =
      axes.rows == 1 ? std::max(axes.columns * column_stride, int64_t{1}) : axes.row_stride;
  if (column_stride == 1 && row_stride >= axes.columns) {
    *out = {.ld = row_stride};
    return row_stride <= kMaxExtent;
  }
  const bool has_contiguous_columns = axes.rows == 1 || axes.row_stride == 1;
  *out = {.ld = axes.column_stride, .transposed = 1};
  return has_contiguous_columns && axes.column_stride >= axes.rows &&
         axes.column_stride <= kMaxExtent;
}

// The batch axes of both operands as one axis.
struct Batches {
  int64_t count = 1, x_stride = 0, y_stride = 0;
};

// The stride of batch axis `i`, counted from the last one; 0 where the operand is repeated.
int64_t batch_stride(const tenon_tensor& tensor, int batch_axes, int i) {
  if (i >= batch_axes) return 0;
  const int axis = batch_axes - 1 - i;
  return tensor.shape[axis] == 1 ? 0 : tensor.strides[axis];
}
int64_t batch_extent(const tenon_tensor& tensor, int batch_axes, int i) {
  return i < batch_axes ? tensor.shape[batch_axes - 1 - i] : 1;
}

// False: no single stride leads from each batch to the next.
bool join_batches(const tenon_tensor& x, int x_axes, const tenon_tensor& y, int y_axes,
                  Batches* out) {
  for (int i = 0; i < std::max(x_axes, y_axes); ++i) {
    const int64_t extent = std::max(batch_extent(x, x_axes, i), batch_extent(y, y_axes, i));
    if (extent == 1) continue;
    const int64_t x_stride = batch_stride(x, x_axes, i), y_stride = batch_stride(y, y_axes, i);
    if (out->count == 1) {
      *out = {extent, x_stride, y_stride};
      continue;
    }
    if (x_stride != out->x_stride * out->count || y_stride != out->y_stride * out->count)
      return false;
    out->count *= extent;
  }
  return out->x_stride >= 0 && out->y_stride >= 0;
}

int64_t alignment_of(const void* address, int64_t stride_bytes) {
  const auto bits =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)) | stride_bytes | kMaxAlignment;
  return bits & -bits;
}

int64_t alignment_of(const tenon_tensor& tensor, int64_t batch_stride) {
  return alignment_of(tensor.data, batch_stride * (tensor.dl_dtype.bits / 8));
}

bool has_elements(const tenon_tensor* tensor) {
  return tensor && tensor->numel > 0 && tensor->ndim > 0;
}

}  // namespace

size_t GemmHash::operator()(const Gemm& gemm) const {
  constexpr size_t kWords = sizeof(Gemm) / sizeof(uint64_t);
  uint64_t words[kWords];
  std::memcpy(words, &gemm, sizeof words);
  uint64_t hash = 14695981039346656037u;  // FNV-1a over words
  for (uint64_t word : words) hash = (hash ^ word) * 1099511628211u;
  return hash ^ hash >> 32;
}

std::optional<Gemm> describe(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* bias,
                             bool is_linear, const tenon_tensor* out) {
  if (!has_elements(x) || !has_elements(y) || x->dtype != y->dtype) return std::nullopt;
  if (is_linear && y->ndim != 2) return std::nullopt;
  const Axes left = axes_of(*x, true);
  Axes right = axes_of(*y, false);
  if (is_linear) {
    std::swap(right.rows, right.columns);
    std::swap(right.row_stride, right.column_stride);
  }
  Gemm gemm = {.dtype = x->dtype,
               .m = left.rows,
               .n = right.columns,
               .k = left.columns,
               .has_bias = bias != nullptr};
  Batches batches;
  if (!read_matrix(left, &gemm.x) || !read_matrix(right, &gemm.y) ||
      !join_batches(*x, left.batch_axes, *y, right.batch_axes, &batches))
    return std::nullopt;
  // Many rows times one matrix are one large product, if a single stride leads from row to row.
  const bool shares_right = batches.y_stride == 0 && !gemm.x.transposed;
  if (shares_right && (gemm.m == 1 || batches.x_stride == gemm.x.ld * gemm.m)) {
    if (gemm.m == 1 && batches.count > 1) gemm.x.ld = batches.x_stride;
    gemm.m *= batches.count;
    batches = {};
    if (gemm.m > 1 && gemm.x.ld < gemm.k) return std::nullopt;  // repeated rows
  }
  gemm.batches = batches.count;
  gemm.x.batch_stride = batches.x_stride;
  gemm.y.batch_stride = batches.y_stride;
  if (std::max({gemm.m, gemm.n, gemm.k, gemm.batches, gemm.x.ld}) > kMaxExtent) return std::nullopt;
  if (bias && (bias->ndim != 1 || bias->numel != gemm.n || bias->dtype != x->dtype ||
               (bias->numel > 1 && bias->strides[0] != 1)))
    return std::nullopt;
  gemm.x.alignment = alignment_of(*x, gemm.x.batch_stride);
  gemm.y.alignment = alignment_of(*y, gemm.y.batch_stride);
  const int64_t result_stride =
      gemm.batches > 1 ? gemm.m * gemm.n * (x->dl_dtype.bits / 8) : int64_t{0};
  gemm.result_alignment = alignment_of(out ? out->data : nullptr, result_stride);
  return gemm;
}

}  // namespace gpu::blas
