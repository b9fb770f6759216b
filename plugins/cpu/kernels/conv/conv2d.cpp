// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients.
#include "conv/amx_grad.hpp"
#include "conv/depthwise_grad.hpp"
#include "conv/depthwise_rows_grad.hpp"
#include "conv/direct_grad.hpp"
#include "conv/input_grad.hpp"
#include "conv/nchw16c_grad.hpp"
#include "conv/nhwc.hpp"
#include "conv/pointwise.hpp"
#include "conv/winograd_grad.hpp"
#include "trace.hpp"

#include <tenon/signatures/convolution.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

ConvShapes shapes_of(const int64_t* image, const int64_t* weight, const int64_t* result,
                     const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                     uint64_t padding_count, const int64_t* dilation, uint64_t dilation_count,
                     int64_t groups) {
  ConvShapes s;
  s.batch = image[0];
  s.channels = image[1];
  s.height = image[2];
  s.width = image[3];
  s.filters = weight[0];
  s.kernel[0] = weight[2];
  s.kernel[1] = weight[3];
  s.rows = result[2];
  s.columns = result[3];
  s.groups = groups;
  read_pair(stride, stride_count, 1, s.stride);
  read_pair(padding, padding_count, 0, s.padding);
  read_pair(dilation, dilation_count, 1, s.dilation);
  return flattened(s);
}

// Describes images for the kernels: dense NCHW or NHWC.
Images images_of(const tenon_tensor* x) {
  const int64_t channels = x->shape[1], pixels = x->shape[2] * x->shape[3];
  if (x->flags & TENON_TENSOR_CONTIGUOUS) return dense_images(x->data, x->dtype, channels, pixels);
  return {x->data, x->dtype, channels * pixels, 1, channels};
}

bool is_dense(const tenon_value& value) {
  return value.tag == TENON_VALUE_NONE ||
         static_cast<const tenon_tensor*>(value.v.p)->flags & TENON_TENSOR_CONTIGUOUS;
}

// Depthwise convolutions read NHWC in any case, and pointwise convolutions are GEMMs. The arguments
// of all three operators end alike.
bool is_pointwise(const int64_t* kernel, int dtype, int64_t results, const tenon_value* args) {
  const auto* padding = static_cast<const int64_t*>(args[4].v.p);
  return kernel[2] == 1 && kernel[3] == 1 && results >= kMinPointwise && kDtypeSize[dtype] >= 2 &&
         std::all_of(padding, padding + args[4].aux, [](int64_t side) { return side == 0; });
}
// True if nChw16c blocks or Winograd read either layout. `both` says that channels become filters,
// too.
bool reads_channels_last(const int64_t* weight, int dtype, const tenon_value* args, bool both) {
  ConvShapes s{};
  s.groups = args[6].v.i;
  s.filters = weight[0];
  s.channels = weight[1] * s.groups;
  s.kernel[0] = weight[2];
  s.kernel[1] = weight[3];
  const bool real = dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_F64;
  return real && suits_blocks(s) && (!both || s.group_channels() >= 16);
}
// bfloat16 lines are packed from either layout.
ConvShapes shapes_of(const int64_t* image, const int64_t* weight, const int64_t* result,
                     const tenon_value* args) {
  const auto list = [&](int i) { return static_cast<const int64_t*>(args[i].v.p); };
  return shapes_of(image, weight, result, list(3), args[3].aux, list(4), args[4].aux, list(5),
                   args[5].aux, args[6].v.i);
}
ConvShapes with_results(ConvShapes s) {
  const auto results = [&](int64_t pixels, int axis) {
    return (pixels + 2 * s.padding[axis] - (s.kernel[axis] - 1) * s.dilation[axis] - 1) /
               s.stride[axis] +
           1;
  };
  s.rows = results(s.height, 0);
  s.columns = results(s.width, 1);
  return s;
}
int32_t takes_channels_last(const tenon_value* args, uint32_t) {
  const int64_t groups = args[6].v.i;
  if (!is_channels_last(args[0]) || !is_dense(args[1]) || !is_dense(args[2])) return false;
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* weight = static_cast<const tenon_tensor*>(args[1].v.p);
  int64_t stride[2];
  read_pair(static_cast<const int64_t*>(args[3].v.p), args[3].aux, 1, stride);
  const int64_t results = ((x->shape[2] - 1) / stride[0] + 1) * ((x->shape[3] - 1) / stride[1] + 1);
  return (groups > 1 && is_channels_last(args[0], groups)) ||
         is_pointwise(weight->shape, x->dtype, results, args) ||
         reads_channels_last(weight->shape, x->dtype, args, false) ||
         (x->dtype == TENON_DTYPE_BF16 &&
          suits_amx(with_results(shapes_of(x->shape, weight->shape, x->shape, args))));
}
int32_t grad_takes_channels_last(const tenon_value* args, uint32_t) {
  const int64_t groups = args[6].v.i;
  if (!is_channels_last(args[0]) || !is_dense(args[1])) return false;
  const auto* grad = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* weight = static_cast<const tenon_tensor*>(args[1].v.p);
  const auto* stride = static_cast<const int64_t*>(args[3].v.p);
  return (groups > 1 && is_channels_last(args[0], groups) &&
          std::all_of(stride, stride + args[3].aux, [](int64_t step) { return step == 1; })) ||
         is_pointwise(weight->shape, grad->dtype, grad->shape[2] * grad->shape[3], args) ||
         (reads_channels_last(weight->shape, grad->dtype, args, true) &&
          has_transposed_phases(shapes_of(static_cast<const int64_t*>(args[2].v.p), weight->shape,
                                          grad->shape, args))) ||
         (grad->dtype == TENON_DTYPE_BF16 &&
          suits_transposed_amx(shapes_of(static_cast<const int64_t*>(args[2].v.p), weight->shape,
                                         grad->shape, args)));
}
int32_t weight_grad_takes_channels_last(const tenon_value* args, uint32_t) {
  const int64_t groups = args[6].v.i;
  const auto* grad = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* x = static_cast<const tenon_tensor*>(args[1].v.p);
  const auto* weight = static_cast<const int64_t*>(args[2].v.p);
  const bool depthwise = groups > 1 && weight[1] == 1;
  if (is_channels_last(args[0]) && is_channels_last(args[1]) && !depthwise &&
      is_pointwise(weight, x->dtype, grad->shape[2] * grad->shape[3], args)) {
    return true;
  }
  const auto readable = [](const tenon_value& value) {
    return is_channels_last(value) || is_dense(value);
  };
  if (readable(args[0]) && readable(args[1]) && x->ndim == 4 && grad->ndim == 4 &&
      (reads_channels_last(weight, x->dtype, args, false) ||
       (x->dtype == TENON_DTYPE_BF16 &&
        suits_amx(shapes_of(x->shape, weight, grad->shape, args))))) {
    return true;
  }
  const bool first = is_channels_last(args[0], groups), second = is_channels_last(args[1], groups);
  return groups > 1 && (first || second) && (first || is_dense(args[0])) &&
         (second || (is_dense(args[1]) && x->ndim == 4 && x->shape[1] == groups));
}

// Uses the algorithms that read nChw16c blocks, whatever the layout of the images. `*done` tells
// whether one of them computed the results.
template <class T>
tenon_status run_weight_grad_by_channels(tenon_ctx* ctx, const ConvShapes& s, Images grad,
                                         const Images& x, T* weight, bool* done, tenon_err* err) {
  if (s.is_depthwise()) {
    *done = true;
    if constexpr (VecMask<T>::kMasked) {
      if (suits_depthwise_rows_grad<T>(s, grad, x)) {
        return run_depthwise_rows_grad<T>(ctx, s, grad, x, weight, err);
      }
    }
    grad.channel *= s.group_filters();
    return run_depthwise_grad<T>(ctx, s, ChannelReader<T>(grad), ChannelReader<T>(x), weight, err);
  }
  if (!suits_winograd(s)) return TENON_OK;
  return run_winograd_grad<T>(ctx, s, ChannelReader<T>(grad), ChannelReader<T>(x), weight, done,
                              err);
}

// Computes weight[group]^T = im2col(x[group]) * grad[group]^T over all images at once and then
// transposes it. Images are dense unless the shapes suit nChw16c blocks.
template <class T>
tenon_status run_weight_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grads,
                             const Images& images, T* weight, tenon_err* err) {
  const T *grad = static_cast<const T*>(grads.data), *x = static_cast<const T*>(images.data);
  const int64_t filters = s.group_filters(), depth = s.depth(),
                accumulators = s.batch * s.results();
  if (accumulators == 0) return std::fill_n(weight, s.filters * depth, T(0)), TENON_OK;
  void* memory = nullptr;
  tenon_status status;
  if (suits_blocks(s)) return run_blocks_grad<T>(ctx, s, grads, images, weight, err);
  if (suits_direct_grad<T>(s)) {
    bool finite = false;
    status = run_direct_grad<T>(ctx, s, grad, x, weight, &finite, err);
    if (status != TENON_OK || finite) return status;
  }
  status = host->scratch(ctx, static_cast<uint64_t>(s.filters * depth) * sizeof(T), &memory, err);
  if (status != TENON_OK) return status;
  T* transposed = static_cast<T*>(memory);
  const BatchOffsets groups{
      1, {s.groups}, {s.group_channels() * s.pixels()}, {filters * s.results()}, {filters * depth}};
  const Tiles tiles(Type<Plain<T>>{}, depth, filters, accumulators, depth, filters, groups);
  status = parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), blocked_bytes<Plain<T>>(tiles.rows(), tiles.columns()), err,
      [&](int64_t t, void* own) {
        const OutputTile tile = tiles.at(t);
        multiply_blocked<Plain<T>>(
            tile.rows, tile.columns, accumulators, ImageRows<T>(s, x + tile.a, tile.i),
            Results<const T>(s, grad + tile.b + tile.j * s.results(), 0),
            MatrixEpilogue<T>{transposed + tile.c + tile.i * filters + tile.j, filters}, false,
            own);
      });
  if (status != TENON_OK) return status;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int side = 32 / sizeof(T);
  const int64_t bands = (filters + side - 1) / side;
  parallel(s.groups * bands, side * depth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t f = i % bands * side, group = i / bands * filters * depth;
      transpose_block<Bits>(reinterpret_cast<const Bits*>(transposed + group + f), filters,
                            reinterpret_cast<Bits*>(weight + group + f * depth), depth, depth,
                            std::min<int64_t>(side, filters - f));
    }
  });
  return TENON_OK;
}

// Calls f with the element type of a float dtype.
template <class F>
tenon_status with_float(int dtype, F&& f) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return f(Type<float>{});
    case TENON_DTYPE_F64:
      return f(Type<double>{});
    case TENON_DTYPE_F16:
      return f(Type<Float16>{});
    default:
      return f(Type<BFloat16>{});
  }
}

tenon_status conv2d(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                    const tenon_tensor* bias, const int64_t* stride, uint64_t stride_count,
                    const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                    uint64_t dilation_count, int64_t groups, tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  if (is_channels_last(*x) && !takes_results_last(*out)) {
    return run_channels_last(conv2d, ctx, err, x, weight, bias, stride, stride_count, padding,
                             padding_count, dilation, dilation_count, groups, out);
  }
  const ConvShapes s = shapes_of(x->shape, weight->shape, out->shape, stride, stride_count, padding,
                                 padding_count, dilation, dilation_count, groups);
  if (s.is_depthwise()) {
    Float32Call call(ctx, err);
    const tenon_tensor *w = call.argument(weight), *b = call.argument(bias);
    if (call.status() != TENON_OK) return call.status();
    trace("conv2d", "depthwise");
    const auto run = [&]<class T>(Type<T>) {
      return run_forward_depthwise<T>(ctx, s, images_of(x), data_of<T>(w),
                                      b ? data_of<T>(b) : nullptr, nullptr, out->data, err);
    };
    return x->dtype == TENON_DTYPE_F64 ? run(Type<double>{}) : run(Type<float>{});
  }
  if ((is_channels_last(*x) && s.sees_single_pixels()) || suits_pointwise(s, x->dtype)) {
    trace("conv2d", "pointwise GEMM");
    return with_float(x->dtype, [&]<class T>(Type<T>) {
      return run_pointwise<T>(ctx, s, images_of(x), data_of<T>(weight), false,
                              bias ? data_of<T>(bias) : nullptr, data_of<T>(out), err);
    });
  }
  if (is_low_precision(x->dtype)) {
#ifdef __AVX512F__
    if (x->dtype == TENON_DTYPE_BF16 && suits_amx(s)) {
      trace("conv2d", "AMX");
      return run_conv_amx(ctx, ConvPhases(s), images_of(x), data_of<BFloat16>(weight), false,
                          bias ? data_of<BFloat16>(bias) : nullptr, data_of<BFloat16>(out), err);
    }
    if (x->dtype == TENON_DTYPE_BF16 && suits_bfloat16(s)) {
      trace("conv2d", "AVX512-BF16");
      return run_forward_bfloat16(ctx, s, data_of<BFloat16>(x), data_of<BFloat16>(weight),
                                  bias ? data_of<BFloat16>(bias) : nullptr, data_of<BFloat16>(out),
                                  err);
    }
#endif
    return run_as_float32(conv2d, ctx, err, x, weight, bias, stride, stride_count, padding,
                          padding_count, dilation, dilation_count, groups, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    return run_forward<T>(ctx, s, images_of(x), data_of<T>(weight),
                          bias ? data_of<T>(bias) : nullptr, data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d(conv2d_boxed, conv2d);

tenon_status conv2d_input_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                               const tenon_tensor* weight, const int64_t* input_shape,
                               uint64_t input_shape_count, const int64_t* stride,
                               uint64_t stride_count, const int64_t* padding,
                               uint64_t padding_count, const int64_t* dilation,
                               uint64_t dilation_count, int64_t groups, tenon_tensor* out,
                               tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  if (is_channels_last(*grad_out) && !takes_results_last(*out)) {
    return run_channels_last(conv2d_input_grad, ctx, err, grad_out, weight, input_shape,
                             input_shape_count, stride, stride_count, padding, padding_count,
                             dilation, dilation_count, groups, out);
  }
  const ConvShapes s = shapes_of(out->shape, weight->shape, grad_out->shape, stride, stride_count,
                                 padding, padding_count, dilation, dilation_count, groups);
  if (s.is_depthwise() && s.group_filters() == 1 && s.stride[0] == 1 && s.stride[1] == 1) {
    Float32Call call(ctx, err);
    const tenon_tensor* w = call.argument(weight);
    if (call.status() != TENON_OK) return call.status();
    const auto run = [&]<class T>(Type<T>) {
      return run_depthwise_input_grad<T>(ctx, s, images_of(grad_out), data_of<T>(w), out->data,
                                         err);
    };
    return weight->dtype == TENON_DTYPE_F64 ? run(Type<double>{}) : run(Type<float>{});
  }
  if ((is_channels_last(*grad_out) && s.sees_single_pixels()) ||
      suits_pointwise(s, grad_out->dtype)) {
    return with_float(weight->dtype, [&]<class T>(Type<T>) {
      return run_pointwise_input_grad<T>(ctx, s, images_of(grad_out), data_of<T>(weight),
                                         data_of<T>(out), err);
    });
  }
  if (is_low_precision(weight->dtype)) {
#ifdef __AVX512F__
    if (weight->dtype == TENON_DTYPE_BF16 && suits_transposed_amx(s)) {
      return run_conv_amx(ctx, transposed_phases(s), images_of(grad_out), data_of<BFloat16>(weight),
                          true, nullptr, data_of<BFloat16>(out), err);
    }
    const bool enough = s.group_channels() >= 16 && s.group_filters() * s.taps() >= 16;
    if (weight->dtype == TENON_DTYPE_BF16 && enough && has_avx512_bf16()) {
      return run_input_grad<BFloat16>(ctx, s, images_of(grad_out), data_of<BFloat16>(weight),
                                      data_of<BFloat16>(out), err);
    }
#endif
    return run_as_float32(conv2d_input_grad, ctx, err, grad_out, weight, input_shape,
                          input_shape_count, stride, stride_count, padding, padding_count, dilation,
                          dilation_count, groups, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    return run_input_grad<T>(ctx, s, images_of(grad_out), data_of<T>(weight), data_of<T>(out), err);
  };
  return weight->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_input_grad(conv2d_input_grad_boxed, conv2d_input_grad);

tenon_status conv2d_weight_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* x,
                                const int64_t* weight_shape, uint64_t weight_shape_count,
                                const int64_t* stride, uint64_t stride_count,
                                const int64_t* padding, uint64_t padding_count,
                                const int64_t* dilation, uint64_t dilation_count, int64_t groups,
                                tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  const ConvShapes s = shapes_of(x->shape, out->shape, grad_out->shape, stride, stride_count,
                                 padding, padding_count, dilation, dilation_count, groups);
  const bool side_by_side =
      is_channels_last(*x) && is_channels_last(*grad_out) && s.sees_single_pixels();
#ifdef __AVX512F__
  if (x->dtype == TENON_DTYPE_BF16 && !side_by_side && suits_amx(s)) {
    bool finite = false;
    const tenon_status status = run_weight_grad_amx(ctx, s, images_of(grad_out), images_of(x),
                                                    data_of<BFloat16>(out), &finite, err);
    if (status != TENON_OK || finite) return status;
  }
#endif
  // 16-bit floats multiply as pairs or are widened by im2col; other algorithms would widen them
  // first.
  const int size = kDtypeSize[x->dtype];
  const bool products =
      size == 2 ? suits_pointwise(s, x->dtype) : size > 2 && suits_pointwise_grad(s);
  if (grad_out->numel > 0 && !s.is_depthwise() && (side_by_side || products)) {
    return with_float(x->dtype, [&]<class T>(Type<T>) {
      return run_pointwise_weight_grad<T>(ctx, s, images_of(grad_out), images_of(x),
                                          data_of<T>(out), err);
    });
  }
  if (grad_out->numel > 0 && (s.is_depthwise() || suits_winograd(s))) {
    Float32Call call(ctx, err);
    tenon_tensor* accumulators = call.argument(out);
    if (call.status() != TENON_OK) return call.status();
    bool done = false;
    const auto run = [&]<class T>(Type<T>) {
      return run_weight_grad_by_channels<T>(ctx, s, images_of(grad_out), images_of(x),
                                            data_of<T>(accumulators), &done, err);
    };
    const tenon_status status =
        out->dtype == TENON_DTYPE_F64 ? run(Type<double>{}) : run(Type<float>{});
    if (status != TENON_OK || done) return call.finish(status);
  }
  if (is_low_precision(x->dtype)) {
    return run_as_float32(conv2d_weight_grad, ctx, err, grad_out, x, weight_shape,
                          weight_shape_count, stride, stride_count, padding, padding_count,
                          dilation, dilation_count, groups, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    if (s.is_strided_pointwise() && s.results() > 0) {
      Images seen = images_of(x);
      const tenon_status status = gather_pixels<T>(ctx, s, &seen, err);
      if (status != TENON_OK) return status;
      return run_weight_grad<T>(ctx, flattened(without_stride(s)), images_of(grad_out), seen,
                                data_of<T>(out), err);
    }
    return run_weight_grad<T>(ctx, s, images_of(grad_out), images_of(x), data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_weight_grad(conv2d_weight_grad_boxed, conv2d_weight_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_conv2d(conv2d, nullptr, kFloats, 0, 0),
    TENON_KERNEL_conv2d_input_grad(conv2d_input_grad, nullptr, kFloats, 0, 0),
    TENON_KERNEL_conv2d_weight_grad(conv2d_weight_grad, nullptr, kFloats, 0, 0),
    with_can_run(TENON_KERNEL_conv2d(conv2d, nullptr, kFloats, kAnyStrides, 1),
                 takes_channels_last),
    with_can_run(
        TENON_KERNEL_conv2d_input_grad(conv2d_input_grad, nullptr, kFloats, kAnyStrides, 1),
        grad_takes_channels_last),
    with_can_run(TENON_KERNEL_conv2d_weight_grad(conv2d_weight_grad, nullptr, kFloats,
                                                 TENON_KERNEL_STRIDED, 1),
                 weight_grad_takes_channels_last)};

}  // namespace

KernelList conv2d_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
