// SPDX-License-Identifier: Apache-2.0
#include "blas/gemm.hpp"

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

// More launches than this take longer than one kernel that reads any strides.
constexpr int64_t kMaxRepeats = 64;

// Innermost axes that one stride joins become batches of the GEMM, the others repeat it. `elements` is the
// size of one matrix of the result. False: too many repetitions.
bool join_batches(const tenon_tensor& x, int x_axes, const tenon_tensor& y, int y_axes,
                  int64_t elements, Batches* joined, BatchedGemm* product) {
  for (int i = 0; i < std::max(x_axes, y_axes); ++i) {
    const int64_t extent = std::max(batch_extent(x, x_axes, i), batch_extent(y, y_axes, i));
    if (extent == 1) continue;
    const int64_t x_stride = batch_stride(x, x_axes, i), y_stride = batch_stride(y, y_axes, i);
    const bool is_first = joined->count == 1;
    const bool joins =
        product->outer_count == 0 && (is_first || (x_stride == joined->x_stride * joined->count &&
                                                   y_stride == joined->y_stride * joined->count));
    if (joins) {
      if (is_first) *joined = {1, x_stride, y_stride};
      joined->count *= extent;
    } else {
      if (product->outer_count == BatchedGemm::kMaxAxes) return false;
      product->outer[static_cast<size_t>(product->outer_count++)] = {extent, x_stride, y_stride,
                                                                     elements};
      product->repeats *= extent;
    }
    elements *= extent;
  }
  return joined->x_stride >= 0 && joined->y_stride >= 0 && product->repeats <= kMaxRepeats;
}

int64_t alignment_of(const void* address, int64_t stride_bytes) {
  const auto bits =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)) | stride_bytes | kMaxAlignment;
  return bits & -bits;
}

// `strides` has bits of every distance between matrices, in elements.
int64_t alignment_of(const tenon_tensor& tensor, int64_t strides) {
  return alignment_of(tensor.data, strides * (tensor.dl_dtype.bits / 8));
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

std::optional<BatchedGemm> describe(const tenon_tensor* x, const tenon_tensor* y,
                                    const tenon_tensor* bias, bool is_linear,
                                    const tenon_tensor* out) {
  if (!has_elements(x) || !has_elements(y) || x->dtype != y->dtype) return std::nullopt;
  if (is_linear && y->ndim != 2) return std::nullopt;
  const Axes left = axes_of(*x, true);
  Axes right = axes_of(*y, false);
  if (is_linear) {
    std::swap(right.rows, right.columns);
    std::swap(right.row_stride, right.column_stride);
  }
  BatchedGemm product = {.gemm = {.dtype = x->dtype,
                                  .m = left.rows,
                                  .n = right.columns,
                                  .k = left.columns,
                                  .has_bias = bias != nullptr}};
  Gemm& gemm = product.gemm;
  Batches batches;
  if (!read_matrix(left, &gemm.x) || !read_matrix(right, &gemm.y) ||
      !join_batches(*x, left.batch_axes, *y, right.batch_axes, gemm.m * gemm.n, &batches, &product))
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
  int64_t x_strides = gemm.x.batch_stride, y_strides = gemm.y.batch_stride;
  int64_t out_strides = gemm.batches > 1 ? gemm.m * gemm.n : 0;
  for (int i = 0; i < product.outer_count; ++i) {
    const BatchedGemm::Axis& axis = product.outer[static_cast<size_t>(i)];
    x_strides |= axis.x_stride;
    y_strides |= axis.y_stride;
    out_strides |= axis.out_stride;
  }
  gemm.x.alignment = alignment_of(*x, x_strides);
  gemm.y.alignment = alignment_of(*y, y_strides);
  gemm.result_alignment =
      alignment_of(out ? out->data : nullptr, out_strides * (x->dl_dtype.bits / 8));
  return product;
}

}  // namespace gpu::blas
