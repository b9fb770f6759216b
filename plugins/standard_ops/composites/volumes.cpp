// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools of [N, C, D, H, W], made of those of images: the depth goes into channels of a convolution, and a
// pool over boxes is one over planes and then one over the depth.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_volume(const char* op, const Tensor& x, tenon_err* err) {
  if (x->ndim == 5) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected x [N, C, D, H, W], got shape %s",
                      shape_text(*x.get()).c_str());
}

// Three numbers, given as three or as one for all.
tenon_status read_three(const char* op, const char* name, const tenon_value& value, int64_t least,
                        Shape* out, tenon_err* err) {
  const Ints given = ints_of(value);
  if (given.size() == 1)
    out->assign(3, given[0]);
  else
    *out = to_vector(given);
  if (out->size() == 3 && std::ranges::min(*out) >= least) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected `%s` to be one or three numbers of at least %lld, got %zu of them",
                      name, ll(least), given.size());
}

IntList pair_of(const Shape& three) { return {three.data() + 1, 2}; }

struct Convolution {
  Tensor x, weight;
  Shape stride, padding, dilation;
  int64_t groups = 1;
  int64_t depth() const { return weight->shape[2]; }
};

tenon_status expect_weight(const char* op, const Convolution& conv, int64_t channels,
                           int64_t weight_channels, tenon_err* err) {
  if (conv.weight->ndim == 5 && conv.groups > 0 && channels == weight_channels) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected a weight of 5 axes for the %lld channels of x in %lld groups, got "
                      "shape %s",
                      ll(conv.x->shape[1]), ll(conv.groups),
                      shape_text(*conv.weight.get()).c_str());
}

// A pool's sizes, and x as [N * C, D, H, W].
struct Pool {
  Tensor x, planes;
  Shape size, stride, padding;
};

tenon_status read_pool(Scope& scope, const char* op, const tenon_value* args, Pool* pool,
                       tenon_err* err) {
  pool->x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_volume(op, pool->x, err));
  TENON_TRY(read_three(op, "kernel_size", args[1], 1, &pool->size, err));
  pool->stride = pool->size;
  if (!is_none(args[2])) TENON_TRY(read_three(op, "stride", args[2], 1, &pool->stride, err));
  TENON_TRY(read_three(op, "padding", args[3], 0, &pool->padding, err));
  const int64_t* shape = pool->x->shape;
  pool->planes = ops::reshape(scope, pool->x, {shape[0] * shape[1], shape[2], shape[3], shape[4]});
  return scope.status();
}

// [N * C, D, h, w] as [N * C, 1, D, h * w], along whose third axis the second pool goes.
Tensor columns_of(Scope& scope, const Tensor& planes) {
  if (!scope.ok()) return {};
  const int64_t* shape = planes->shape;
  return ops::reshape(scope, planes, {shape[0], 1, shape[1], shape[2] * shape[3]});
}

// [N * C, 1, d, h * w] as [N, C, d, h, w].
Tensor volume_of(Scope& scope, const Tensor& columns, const Tensor& planes, const Tensor& x) {
  if (!scope.ok()) return {};
  return ops::reshape(
      scope, columns,
      {x->shape[0], x->shape[1], columns->shape[2], planes->shape[2], planes->shape[3]});
}

}  // namespace

TENON_DECOMPOSE(conv3d) {
  const char* op = "conv3d";
  Scope scope(err);
  Convolution conv{.x = operand(scope, args[0]), .weight = operand(scope, args[1])};
  Tensor bias = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_volume(op, conv.x, err));
  TENON_TRY(read_three(op, "stride", args[3], 1, &conv.stride, err));
  TENON_TRY(read_three(op, "padding", args[4], 0, &conv.padding, err));
  TENON_TRY(read_three(op, "dilation", args[5], 1, &conv.dilation, err));
  conv.groups = int_of(args[6]);
  TENON_TRY(expect_weight(op, conv, conv.x->shape[1],
                          conv.weight->ndim == 5 ? conv.weight->shape[1] * conv.groups : -1, err));
  Tensor x = conv.x;
  if (conv.padding[0] > 0)
    x = ops::pad(scope, x, {0, 0, 0, 0, conv.padding[0], conv.padding[0], 0, 0, 0, 0});
  Tensor windows = ops::sliding_window(scope, x, 2, conv.depth(), conv.stride[0], conv.dilation[0]);
  if (!scope.ok()) return scope.status();
  const Shape w = sizes_of(windows);  // [N, C, D', H, W, KD]
  Tensor slices = ops::reshape(scope, ops::permute(scope, windows, {0, 2, 1, 5, 3, 4}),
                               {w[0] * w[2], w[1] * w[5], w[3], w[4]});
  const int64_t* k = conv.weight->shape;
  Tensor kernel = ops::reshape(scope, conv.weight, {k[0], k[1] * k[2], k[3], k[4]});
  Tensor out = ops::conv2d(scope, slices, kernel, bias, pair_of(conv.stride), pair_of(conv.padding),
                           pair_of(conv.dilation), conv.groups);
  if (!scope.ok()) return scope.status();
  out = ops::reshape(scope, out, {w[0], w[2], out->shape[1], out->shape[2], out->shape[3]});
  return finish(scope, outs, ops::contiguous(scope, ops::permute(scope, out, {0, 2, 1, 3, 4})));
}

TENON_DECOMPOSE(conv_transpose3d) {
  const char* op = "conv_transpose3d";
  Scope scope(err);
  Convolution conv{.x = operand(scope, args[0]), .weight = operand(scope, args[1])};
  Tensor bias = operand(scope, args[2]);
  Shape extra;
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_volume(op, conv.x, err));
  TENON_TRY(read_three(op, "stride", args[3], 1, &conv.stride, err));
  TENON_TRY(read_three(op, "padding", args[4], 0, &conv.padding, err));
  TENON_TRY(read_three(op, "output_padding", args[5], 0, &extra, err));
  TENON_TRY(read_three(op, "dilation", args[6], 1, &conv.dilation, err));
  conv.groups = int_of(args[7]);
  TENON_TRY(expect_weight(op, conv, conv.x->shape[1],
                          conv.weight->ndim == 5 ? conv.weight->shape[0] : -1, err));
  const Shape s = sizes_of(conv.x);
  const int64_t* k = conv.weight->shape;
  const int64_t channels = k[1] * conv.groups, depth = conv.depth();
  const int64_t length =
      (s[2] - 1) * conv.stride[0] + conv.dilation[0] * (depth - 1) + 1 + extra[0];
  if (length < 2 * conv.padding[0])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a padding of at most half of the %lld planes, got %lld",
                        ll(length), ll(conv.padding[0]));
  Tensor slices = ops::reshape(scope, ops::permute(scope, conv.x, {0, 2, 1, 3, 4}),
                               {s[0] * s[2], s[1], s[3], s[4]});
  Tensor kernel = ops::reshape(scope, conv.weight, {k[0], k[1] * depth, k[3], k[4]});
  Tensor parts = ops::conv_transpose2d(scope, slices, kernel, nullptr, pair_of(conv.stride),
                                       pair_of(conv.padding), pair_of(extra),
                                       pair_of(conv.dilation), conv.groups);
  if (!scope.ok()) return scope.status();
  const int64_t height = parts->shape[2], width = parts->shape[3];
  parts = ops::reshape(scope, parts, {s[0], s[2], channels, depth, height, width});
  parts = ops::reshape(scope, ops::permute(scope, parts, {0, 2, 1, 3, 4, 5}),
                       {s[0], channels, s[2] * depth, height, width});
  std::vector<int64_t> rows;  // which plane of the result each part is added to
  for (int64_t i = 0; i < s[2]; ++i)
    for (int64_t j = 0; j < depth; ++j) rows.push_back(i * conv.stride[0] + j * conv.dilation[0]);
  Tensor out = full_with(scope, parts, Shape{s[0], channels, length, height, width}, int64_t{0});
  out = ops::index_add(scope, out, int_tensor(scope, rows, conv.x->device), parts, 2);
  if (conv.padding[0] > 0)
    out = ops::clone(scope,
                     ops::narrow(scope, out, 2, conv.padding[0], length - 2 * conv.padding[0]));
  if (bias) out = ops::add(scope, out, ops::reshape(scope, bias, {channels, 1, 1, 1}));
  return finish(scope, outs, out);
}

TENON_DECOMPOSE(max_pool3d_with_indices) {
  const char* op = "max_pool3d_with_indices";
  Scope scope(err);
  Pool pool;
  Shape dilation;
  TENON_TRY(read_pool(scope, op, args, &pool, err));
  TENON_TRY(read_three(op, "dilation", args[4], 1, &dilation, err));
  const bool ceil = bool_of(args[5]);
  auto planes =
      ops::max_pool2d_with_indices(scope, pool.planes, pair_of(pool.size), pair_of(pool.stride),
                                   pair_of(pool.padding), pair_of(dilation), ceil);
  auto columns = ops::max_pool2d_with_indices(scope, columns_of(scope, planes.values),
                                              {pool.size[0], 1}, {pool.stride[0], 1},
                                              {pool.padding[0], 0}, {dilation[0], 1}, ceil);
  if (!scope.ok()) return scope.status();
  // An index among the columns counts through depth and area of the planes: where the maximum came from.
  const int64_t area = planes.values->shape[2] * planes.values->shape[3];
  const int64_t rows = planes.values->shape[0];
  Tensor flat = ops::reshape(scope, columns.indices, {rows, -1});
  Tensor within = ops::gather(scope, ops::reshape(scope, planes.indices, {rows, -1}), flat, 1);
  Tensor plane = ops::floor_divide(scope, flat, std::max<int64_t>(area, 1));
  Tensor index =
      ops::add(scope, ops::multiply(scope, plane, pool.x->shape[3] * pool.x->shape[4]), within);
  index = ops::reshape(scope, index, {rows, 1, columns.values->shape[2], columns.values->shape[3]});
  return finish(scope, outs, volume_of(scope, columns.values, planes.values, pool.x),
                volume_of(scope, index, planes.values, pool.x));
}

TENON_DECOMPOSE(avg_pool3d) {
  Scope scope(err);
  Pool pool;
  TENON_TRY(read_pool(scope, "avg_pool3d", args, &pool, err));
  const bool ceil = bool_of(args[4]), counts_padding = bool_of(args[5]);
  Tensor planes = ops::avg_pool2d(scope, pool.planes, pair_of(pool.size), pair_of(pool.stride),
                                  pair_of(pool.padding), ceil, counts_padding);
  Tensor columns = ops::avg_pool2d(scope, columns_of(scope, planes), {pool.size[0], 1},
                                   {pool.stride[0], 1}, {pool.padding[0], 0}, ceil, counts_padding);
  return finish(scope, outs, volume_of(scope, columns, planes, pool.x));
}

}  // namespace tenon::standard_ops
