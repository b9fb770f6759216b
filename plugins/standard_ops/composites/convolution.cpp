// SPDX-License-Identifier: Apache-2.0
// Convolution as matrix products of windows, for devices without a kernel of their own.
//
// Per group: windows [N, Cg, OH, OW, KH, KW] become rows [N * OH * OW, Cg * KH * KW], filters
// columns [Cg * KH * KW, Og]. Everything is batched over groups.
#include "composites/windows.hpp"

namespace tenon::standard_ops {
namespace {

// The numbers of one call, by the names above.
struct Sizes {
  Window window;
  int64_t groups = 1;
  int64_t n, c, h, w, o, oh, ow;

  int64_t output_pixels() const { return n * oh * ow; }
  int64_t depth() const { return c / groups * window.size[0] * window.size[1]; }
  int64_t filters() const { return o / groups; }
};

tenon_status read_sizes(const char* op, Ints image, Ints weight, const tenon_value* args,
                        Sizes* sizes, tenon_err* err) {
  TENON_TRY(read_convolution(op, weight, args, 3, &sizes->window, &sizes->groups, err));
  sizes->n = image[0];
  sizes->c = image[1];
  sizes->h = image[2];
  sizes->w = image[3];
  sizes->o = weight[0];
  sizes->oh = sizes->window.count(0, image[2]);
  sizes->ow = sizes->window.count(1, image[3]);
  return TENON_OK;
}

// [G, N * OH * OW, Cg * KH * KW]
Tensor window_rows(Scope& scope, const Tensor& x, const Sizes& s) {
  Tensor windows = all_windows(scope, pad_image(scope, x, s.window, 0), s.window);
  windows =
      ops::reshape(scope, windows,
                   {s.n, s.groups, s.c / s.groups, s.oh, s.ow, s.window.size[0], s.window.size[1]});
  windows = ops::permute(scope, windows, {1, 0, 3, 4, 2, 5, 6});
  return ops::reshape(scope, windows, {s.groups, s.output_pixels(), s.depth()});
}

// [N, O, OH, OW] to [G, N * OH * OW, Og] and back.
Tensor result_rows(Scope& scope, const Tensor& out, const Sizes& s) {
  Tensor apart = ops::reshape(scope, out, {s.n, s.groups, s.filters(), s.oh, s.ow});
  return ops::reshape(scope, ops::permute(scope, apart, {1, 0, 3, 4, 2}),
                      {s.groups, s.output_pixels(), s.filters()});
}
Tensor rows_to_result(Scope& scope, const Tensor& rows, const Sizes& s) {
  Tensor apart = ops::reshape(scope, rows, {s.groups, s.n, s.oh, s.ow, s.filters()});
  return ops::reshape(scope, ops::permute(scope, apart, {1, 0, 4, 2, 3}), {s.n, s.o, s.oh, s.ow});
}

}  // namespace

TENON_DECOMPOSE(conv2d) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  Sizes s;
  TENON_TRY(read_sizes("conv2d", shape_of(*x.get()), shape_of(*weight.get()), args, &s, err));
  Tensor filters = ops::reshape(scope, weight, {s.groups, s.filters(), s.depth()});
  Tensor rows = ops::matmul(scope, window_rows(scope, x, s), ops::transpose(scope, filters));
  Tensor result = rows_to_result(scope, rows, s);
  if (bias) result = ops::add(scope, result, ops::channel_view(scope, bias, 4));
  return finish(scope, outs, result);
}

// The same of integers, whose differences from the zero points are int32: sums that it does not hold wrap.
TENON_DECOMPOSE(conv2d_integer) {
  Scope scope(err);
  const Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
               x_zero = operand(scope, args[2]), weight_zero = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  Sizes s;
  TENON_TRY(
      read_sizes("conv2d_integer", shape_of(*x.get()), shape_of(*weight.get()), args + 1, &s, err));
  const auto centred = [&](const Tensor& codes, const Tensor& zero, int64_t count) {
    const Tensor wide = ops::cast(scope, codes, TENON_DTYPE_I32);
    if (!zero) return wide;
    const Tensor point = ops::reshape(scope, zero, {count, 1, 1, 1});
    return ops::subtract(scope, wide, ops::cast(scope, point, TENON_DTYPE_I32));
  };
  const Tensor image = centred(x, x_zero, 1),
               kernel = centred(weight, weight_zero, weight_zero ? weight_zero->numel : 1);
  if (!scope.ok()) return scope.status();
  Tensor filters = ops::reshape(scope, kernel, {s.groups, s.filters(), s.depth()});
  Tensor rows = ops::matmul(scope, window_rows(scope, image, s), ops::transpose(scope, filters));
  return finish(scope, outs, rows_to_result(scope, rows, s));
}

TENON_DECOMPOSE(conv2d_input_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), weight = operand(scope, args[1]);
  Sizes s;
  TENON_TRY(read_sizes("conv2d", ints_of(args[2]), shape_of(*weight.get()), args, &s, err));
  Tensor filters = ops::reshape(scope, weight, {s.groups, s.filters(), s.depth()});
  Tensor rows = ops::matmul(scope, result_rows(scope, grad_out, s), filters);
  Tensor windows = ops::reshape(
      scope, rows, {s.groups, s.n, s.oh, s.ow, s.c / s.groups, s.window.size[0], s.window.size[1]});
  windows = ops::reshape(scope, ops::permute(scope, windows, {1, 0, 4, 2, 3, 5, 6}),
                         {s.n, s.c, s.oh, s.ow, s.window.size[0], s.window.size[1]});
  Tensor image = add_windows(scope, windows, ints_of(args[2]), s.window);
  return finish(scope, outs, image);
}

TENON_DECOMPOSE(conv2d_weight_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), x = operand(scope, args[1]);
  Ints shape = ints_of(args[2]);
  Sizes s;
  TENON_TRY(read_sizes("conv2d", shape_of(*x.get()), shape, args, &s, err));
  Tensor columns = ops::transpose(scope, result_rows(scope, grad_out, s));
  Tensor filters = ops::matmul(scope, columns, window_rows(scope, x, s));
  return finish(scope, outs, ops::reshape(scope, filters, list_of(shape)));
}

// The gradient of a convolution from an image of the wanted size.
TENON_DECOMPOSE(conv_transpose2d) {
  const char* op = "conv_transpose2d";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_ndim(op, "x", *x.get(), 4, "[batch, channels, height, width]", err));
  TENON_TRY(expect_ndim(op, "weight", *weight.get(), 4,
                        "[channels, filters / groups, height, width]", err));
  int64_t stride[2], padding[2], output_padding[2], dilation[2], groups = int_of(args[7]);
  TENON_TRY(read_pair(op, "stride", ints_of(args[3]), 1, stride, err));
  TENON_TRY(read_pair(op, "padding", ints_of(args[4]), 0, padding, err));
  TENON_TRY(read_pair(op, "output_padding", ints_of(args[5]), 0, output_padding, err));
  TENON_TRY(read_pair(op, "dilation", ints_of(args[6]), 1, dilation, err));
  if (groups < 1 || x->shape[1] != weight->shape[0] || weight->shape[0] % groups != 0)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected weight.shape[0] to equal the channels, and groups that divide them, got shapes "
        "%s and %s and %lld groups",
        shape_text(*x.get()).c_str(), shape_text(*weight.get()).c_str(), ll(groups));
  Shape image = {x->shape[0], weight->shape[1] * groups, 0, 0};
  int64_t zeros[2];  // rows and columns behind the image
  for (size_t side = 0; side < 2; ++side) {
    if (output_padding[side] >= std::max(stride[side], dilation[side]))
      return shapes::fail(
          err, TENON_INVALID_ARGUMENT, op,
          "expected output_padding below stride or dilation, got %lld for %lld and %lld",
          ll(output_padding[side]), ll(stride[side]), ll(dilation[side]));
    image[side + 2] = (x->shape[side + 2] - 1) * stride[side] - 2 * padding[side] +
                      dilation[side] * (weight->shape[side + 2] - 1) + output_padding[side] + 1;
    // conv2d of the result has as many rows as `x` only if output_padding is below the stride. A
    // row of zeros behind `x` adds a stride to the result, and nothing else.
    zeros[side] = output_padding[side] / stride[side];
  }
  if (zeros[0] + zeros[1] > 0)
    x = ops::pad_constant(scope, x, {0, 0, 0, 0, 0, zeros[0], 0, zeros[1]}, 0);
  Tensor result = ops::conv2d_input_grad(scope, x, weight, image, IntList(stride, 2),
                                         IntList(padding, 2), IntList(dilation, 2), groups);
  if (bias) result = ops::add(scope, result, ops::channel_view(scope, bias, 4));
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
