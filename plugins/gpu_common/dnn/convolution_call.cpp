// SPDX-License-Identifier: Apache-2.0
#include "dnn/convolution_call.hpp"

#include <tenon/unbox.h>

#include <algorithm>
#include <cstring>

namespace gpu::dnn {
namespace {

constexpr int64_t kMaxExtent = INT32_MAX;

bool read_shape(const int64_t* shape, uint64_t ndim, std::array<int, 4>* out) {
  if (ndim != 4) return false;
  int64_t elements = 1;
  for (int i = 0; i < 4; ++i) {
    if (shape[i] < 1 || shape[i] > kMaxExtent / elements)
      return false;  // the libraries count in int
    elements *= shape[i];
    (*out)[i] = static_cast<int>(shape[i]);
  }
  return true;
}
bool read_shape(const tenon_tensor* tensor, std::array<int, 4>* out) {
  return read_shape(tensor->shape, static_cast<uint64_t>(tensor->ndim), out);
}

// One number stands for both axes.
bool read_pair(const tenon_value& value, int64_t least, std::array<int, 2>* out) {
  const uint64_t count = tenon_arg_count(&value);
  if (count < 1 || count > 2) return false;
  for (uint64_t i = 0; i < 2; ++i) {
    const int64_t number = tenon_arg_ints(&value)[count == 1 ? 0 : i];
    if (number < least || number > kMaxExtent) return false;
    (*out)[i] = static_cast<int>(number);
  }
  return true;
}

int64_t out_extent(const Convolution& c, int axis) {
  const int64_t reach = int64_t{c.dilation[axis]} * (c.w[axis + 2] - 1) + 1;
  const int64_t room = c.x[axis + 2] + int64_t{2} * c.padding[axis] - reach;
  return room < 0 ? 0 : room / c.stride[axis] + 1;
}

}  // namespace

size_t ConvolutionHash::operator()(const Convolution& convolution) const {
  static_assert(sizeof(Convolution) % sizeof(int) == 0);
  int words[sizeof(Convolution) / sizeof(int)];
  std::memcpy(words, &convolution, sizeof words);
  uint64_t hash = 14695981039346656037u;  // FNV-1a over words
  for (int word : words) hash = (hash ^ static_cast<uint32_t>(word)) * 1099511628211u;
  return hash ^ hash >> 32;
}

std::optional<Convolution> describe(ConvolutionKind kind, const tenon_value* args) {
  // conv2d(x, weight, bias, ...), conv2d_input_grad(grad_out, weight, input_shape, ...),
  // conv2d_weight_grad(grad_out, x, weight_shape, ...)
  const tenon_tensor *first = tenon_arg_tensor(&args[0]), *second = tenon_arg_tensor(&args[1]);
  Convolution c = {.kind = kind};
  if (!first || !second || first->dtype != second->dtype) return std::nullopt;
  c.dtype = static_cast<int>(first->dtype);
  const int64_t groups = tenon_arg_int(&args[6]);
  if (!read_pair(args[3], 1, &c.stride) || !read_pair(args[4], 0, &c.padding) ||
      !read_pair(args[5], 1, &c.dilation) || groups < 1 || groups > kMaxExtent)
    return std::nullopt;
  c.groups = static_cast<int>(groups);
  if (kind == kForward) {
    const tenon_tensor* bias = tenon_arg_tensor(&args[2]);
    if (!read_shape(first, &c.x) || !read_shape(second, &c.w)) return std::nullopt;
    if (bias && (bias->dtype != first->dtype || bias->ndim != 1 || bias->numel != c.w[0]))
      return std::nullopt;
    c.has_bias = bias != nullptr;
    const int64_t y[] = {c.x[0], c.w[0], out_extent(c, 0), out_extent(c, 1)};
    if (!read_shape(y, 4, &c.y)) return std::nullopt;
  } else {
    const bool of_input = kind == kInputGrad;
    if (!read_shape(first, &c.y) || !read_shape(second, of_input ? &c.w : &c.x) ||
        !read_shape(tenon_arg_ints(&args[2]), tenon_arg_count(&args[2]), of_input ? &c.x : &c.w))
      return std::nullopt;
  }
  const bool fits = c.x[1] == int64_t{c.w[1]} * groups && c.w[0] % groups == 0 &&
                    c.y[0] == c.x[0] && c.y[1] == c.w[0] && c.y[2] == out_extent(c, 0) &&
                    c.y[3] == out_extent(c, 1);
  return fits ? std::optional(c) : std::nullopt;
}

}  // namespace gpu::dnn
