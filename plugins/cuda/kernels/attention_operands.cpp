// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_operands.hpp"

#include <cstdlib>
#include <cstring>

namespace gpu::kernels {

// The files kernels/*.cu, embedded by the build.
namespace text {
extern const char mma[];
extern const char attention_rows[];
}  // namespace text

namespace {

constexpr int64_t kMaxGridY = 65535;

using Tensors = std::span<const tenon_tensor* const>;

// The strides of a tensor in elements; 0 along axes of one element, where they mean nothing.
using Strides = std::array<int64_t, TENON_MAX_NDIM>;

Strides strides_of(const tenon_tensor& tensor, Arrives arrives) {
  Strides strides = {};
  int64_t dense = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 1) continue;
    strides[static_cast<size_t>(axis)] =
        arrives == Arrives::kStrided ? tensor.strides[axis] : dense;
    dense *= tensor.shape[axis];
  }
  return strides;
}

// The strides of a mask beside a tensor of `ndim` axes: it may have fewer, and broadcasts.
Strides mask_strides_of(const tenon_tensor& mask, int ndim, Arrives arrives) {
  const Strides own = strides_of(mask, arrives);
  Strides strides = {};
  for (int axis = 0; axis < mask.ndim; ++axis)
    strides[static_cast<size_t>(axis + ndim - mask.ndim)] = own[static_cast<size_t>(axis)];
  return strides;
}

// Axes from outside to inside, and the strides of the operands along them.
constexpr size_t kAxes = 3;
struct Batches {
  std::array<int64_t, kAxes> extents = {1, 1, 1};
  std::array<std::array<int64_t, kAxes>, AttentionOperands::kMax + 1> strides = {};
};

// The axes before the last two as few enough, for all operands alike.
std::optional<Batches> join_batches(const tenon_tensor& query, std::span<const Strides> strides) {
  Batches out;
  size_t at = kAxes;  // the axis that is being joined; kAxes: none yet
  for (int axis = query.ndim - 3; axis >= 0; --axis) {
    const int64_t extent = query.shape[axis];
    if (extent == 1) continue;
    bool joins = at < kAxes;
    for (size_t t = 0; t < strides.size() && joins; ++t)
      joins = strides[t][static_cast<size_t>(axis)] == out.strides[t][at] * out.extents[at];
    if (joins) {
      out.extents[at] *= extent;
      continue;
    }
    if (at == 0) return std::nullopt;
    out.extents[--at] = extent;
    for (size_t t = 0; t < strides.size(); ++t)
      out.strides[t][at] = strides[t][static_cast<size_t>(axis)];
  }
  return out;
}

// The kernels read 16 bytes at once.
bool is_readable(const tenon_tensor& tensor, Arrives arrives, const RowStrides& strides,
                 int64_t last_stride) {
  constexpr int64_t kPiece = 8;  // elements
  // A copy that is made contiguous is aligned.
  const bool stays = arrives == Arrives::kStrided || (tensor.flags & TENON_TENSOR_CONTIGUOUS);
  return last_stride == 1 && (!stays || reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0) &&
         strides.outer % kPiece == 0 && strides.middle % kPiece == 0 &&
         strides.inner % kPiece == 0 && strides.row % kPiece == 0;
}

}  // namespace

std::optional<AttentionOperands> attention_operands(Tensors tensors, const tenon_tensor* mask,
                                                    Arrives arrives, bool causal, double scale) {
  for (const tenon_tensor* tensor : tensors)
    if (!tensor || tensor->dtype != tensors[0]->dtype || tensor->ndim != tensors[0]->ndim ||
        tensor->ndim < 2 || tensor->numel == 0)
      return std::nullopt;
  const int last = tensors[0]->ndim - 1;
  const int64_t features = tensors[0]->shape[last], rows = tensors[0]->shape[last - 1],
                keys = tensors[1]->shape[last - 1];
  if (features != 64 && features != 128) return std::nullopt;
  for (size_t t = 1; t < tensors.size(); ++t) {
    const tenon_tensor& tensor = *tensors[t];
    const int64_t length = t == 1 || t == 2 ? keys : rows;
    if (tensor.shape[last] != features || tensor.shape[last - 1] != length) return std::nullopt;
    for (int axis = 0; axis < last - 1; ++axis)
      if (tensor.shape[axis] != tensors[0]->shape[axis]) return std::nullopt;
  }
  AttentionOperands out;
  out.is_bfloat16 = tensors[0]->dtype == TENON_DTYPE_BF16;
  out.causal = causal;
  out.scale = static_cast<float>(scale);
  if (!(out.scale > 0) || rows > INT32_MAX - kAttentionRows || keys > INT32_MAX - kAttentionRows)
    return std::nullopt;
  out.rows = static_cast<int>(rows);
  out.keys = static_cast<int>(keys);
  out.features = static_cast<int>(features);
  std::array<Strides, AttentionOperands::kMax + 1> strides;
  size_t count = 0;
  for (const tenon_tensor* tensor : tensors) strides[count++] = strides_of(*tensor, arrives);
  if (mask) strides[count++] = mask_strides_of(*mask, tensors[0]->ndim, arrives);
  const std::optional<Batches> joined = join_batches(*tensors[0], std::span(strides).first(count));
  if (!joined) return std::nullopt;
  const auto& extents = joined->extents;
  out.matrices = extents[0] * extents[1] * extents[2];
  if (out.matrices > kMaxGridY) return std::nullopt;
  out.counts = {static_cast<int>(extents[1]), static_cast<int>(extents[2])};
  const auto row_axis = static_cast<size_t>(last - 1), last_axis = static_cast<size_t>(last);
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto& along = joined->strides[t];
    out.strides[t] = {along[0], along[1], along[2], strides[t][row_axis]};
    if (!is_readable(*tensors[t], arrives, out.strides[t], strides[t][last_axis]))
      return std::nullopt;
  }
  if (mask) {
    const auto& along = joined->strides[tensors.size()];
    const Strides& own = strides[tensors.size()];
    out.mask = mask->dtype == TENON_DTYPE_BOOL ? Mask::kHides : Mask::kAdded;
    out.mask_strides = {along[0], along[1], along[2], own[row_axis], own[last_axis]};
  }
  return out;
}

std::array<uint32_t, 3> AttentionOperands::blocks(int64_t length, int64_t rows_of_block) const {
  return {static_cast<uint32_t>((length + rows_of_block - 1) / rows_of_block),
          static_cast<uint32_t>(matrices), 1};
}

std::string AttentionOperands::source() const {
  std::string text;
  if (is_bfloat16) text += "#define BFLOAT16 1\n";
  if (causal) text += "#define CAUSAL 1\n";
  if (mask != Mask::kNone) text += mask == Mask::kHides ? "#define MASKS 1\n" : "#define ADDS 1\n";
  text += "#define FEATURES " + std::to_string(features) + '\n';
  return text + text::mma + text::attention_rows;
}

int AttentionOperands::variant() const {
  return features | int{is_bfloat16} << 8 | int{causal} << 9 | static_cast<int>(mask) << 10;
}

tenon_device device_with_tensor_cores(const tenon_tensor* operand) {
  const tenon_device device = operand ? open_device(TENON_DEVICE_INDEX(operand->device)) : nullptr;
  // Compute capability 8.0 or later.
  return device && std::atoi(device->architecture.c_str() + std::strlen("sm_")) >= 80 ? device
                                                                                      : nullptr;
}

}  // namespace gpu::kernels
