// SPDX-License-Identifier: Apache-2.0
#include "attention_operands.hpp"

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

// The strides of a tensor in elements.
using Strides = std::array<int64_t, TENON_MAX_NDIM>;

Strides strides_of(const tenon_tensor& tensor, Arrives arrives) {
  Strides strides = {};
  int64_t dense = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    const auto at = static_cast<size_t>(axis);
    strides[at] = arrives == Arrives::kStrided ? tensor.strides[axis] : dense;
    dense *= tensor.shape[axis];
  }
  return strides;
}

// The axes before the last two as at most two, for all operands alike.
bool join_batches(Tensors tensors, std::span<const Strides> strides, AttentionOperands* out) {
  struct Axis {
    int64_t extent;
    std::array<int64_t, AttentionOperands::kMax> strides;
  };
  std::array<Axis, 2> joined;  // the last one is the innermost
  size_t count = 0;
  for (int axis = tensors[0]->ndim - 3; axis >= 0; --axis) {
    const int64_t extent = tensors[0]->shape[axis];
    if (extent == 1) continue;
    Axis next = {extent, {}};
    for (size_t t = 0; t < tensors.size(); ++t)
      next.strides[t] = strides[t][static_cast<size_t>(axis)];
    bool joins = count > 0;
    for (size_t t = 0; t < tensors.size() && joins; ++t)
      joins = next.strides[t] == joined[count - 1].strides[t] * joined[count - 1].extent;
    if (joins) {
      joined[count - 1].extent *= extent;
    } else {
      if (count == 2) return false;
      joined[count++] = next;
    }
  }
  if (count > 0) out->heads = joined[0].extent;
  if (count > 1) out->batches = joined[1].extent;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (count > 0) out->strides[t].head = joined[0].strides[t];
    if (count > 1) out->strides[t].batch = joined[1].strides[t];
  }
  return out->matrices() <= kMaxGridY;
}

// The kernels read 16 bytes at once.
bool is_readable(const tenon_tensor& tensor, Arrives arrives, const RowStrides& strides,
                 int64_t last_stride) {
  constexpr int64_t kPiece = 8;  // elements
  // A copy that is made contiguous is aligned.
  const bool stays = arrives == Arrives::kStrided || (tensor.flags & TENON_TENSOR_CONTIGUOUS);
  return last_stride == 1 && (!stays || reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0) &&
         strides.batch % kPiece == 0 && strides.head % kPiece == 0 && strides.row % kPiece == 0;
}

}  // namespace

std::optional<AttentionOperands> attention_operands(Tensors tensors, Arrives arrives, bool causal,
                                                    double scale) {
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
  std::array<Strides, AttentionOperands::kMax> strides;
  for (size_t t = 0; t < tensors.size(); ++t) strides[t] = strides_of(*tensors[t], arrives);
  if (!join_batches(tensors, strides, &out)) return std::nullopt;
  for (size_t t = 0; t < tensors.size(); ++t) {
    out.strides[t].row = strides[t][static_cast<size_t>(last - 1)];
    const int64_t last_stride = strides[t][static_cast<size_t>(last)];
    if (!is_readable(*tensors[t], arrives, out.strides[t], last_stride)) return std::nullopt;
  }
  return out;
}

std::array<uint32_t, 3> AttentionOperands::blocks(int64_t length, int64_t rows_of_block) const {
  return {static_cast<uint32_t>((length + rows_of_block - 1) / rows_of_block),
          static_cast<uint32_t>(matrices()), 1};
}

std::string AttentionOperands::source() const {
  std::string text;
  if (is_bfloat16) text += "#define BFLOAT16 1\n";
  if (causal) text += "#define CAUSAL 1\n";
  text += "#define FEATURES " + std::to_string(features) + '\n';
  return text + text::mma + text::attention_rows;
}

int AttentionOperands::variant() const {
  return features | int{is_bfloat16} << 8 | int{causal} << 9;
}

tenon_device device_with_tensor_cores(const tenon_tensor* operand) {
  const tenon_device device =
      operand ? open_device(TENON_DEVICE_INDEX(operand->device)) : nullptr;
  // Compute capability 8.0 or later.
  return device && std::atoi(device->architecture.c_str() + std::strlen("sm_")) >= 80 ? device
                                                                                      : nullptr;
}

}  // namespace gpu::kernels
