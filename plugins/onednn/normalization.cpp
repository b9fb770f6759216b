// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, layer_norm and batch_norm, each by the primitive of the same name. Tensors are
// described with the fewest axes that the computation distinguishes.
#include "kernels.hpp"

namespace tenon::onednn {
namespace {

bool is_contiguous(const tenon_tensor* tensor) {
  return has_elements(tensor) && tensor->flags & TENON_TENSOR_CONTIGUOUS;
}

// oneDNN reads weight and bias in float32 for every dtype of x.
bool are_parameters_readable(const tenon_tensor* weight, const tenon_tensor* bias) {
  for (const tenon_tensor* each : {weight, bias})
    if (each && (each->dtype != TENON_DTYPE_F32 || !is_contiguous(each))) return false;
  return true;
}

int64_t product_of(const int64_t* shape, int begin, int end) {
  int64_t result = 1;
  for (int i = begin; i < end; ++i) result *= shape[i];
  return result;
}

// -- softmax and log_softmax: (x, axis) ------------------------------------------------------------

template <int Number, int Algorithm>
struct Softmax {
  static Key key_of(const tenon_value* args) {
    Key key(Number);
    return key.add(tenon_arg_tensor(&args[0])).add(tenon_arg_int(&args[1]));
  }
  static Build build_of(const tenon_value* args) {
    return [args](const Api& api) -> std::unique_ptr<Program> {
      const tenon_tensor* x = tenon_arg_tensor(&args[0]);
      if (!is_contiguous(x) || x->ndim == 0) return nullptr;
      int64_t axis = tenon_arg_int(&args[1]);
      if (axis < 0) axis += x->ndim;
      if (axis < 0 || axis >= x->ndim) return nullptr;
      const int at = static_cast<int>(axis);
      const int64_t inner = product_of(x->shape, at + 1, x->ndim);
      std::vector<int64_t> dims = {product_of(x->shape, 0, at), x->shape[at]};
      if (inner > 1) dims.push_back(inner);
      const Description data = describe(x->dtype, dims);
      const Layout layout = api.layout(data);
      if (!layout) return nullptr;
      const Operand operands[] = {{kSource, kNoQuery, false, data},
                                  {kDestination, kNoQuery, true, data}};
      return Program::make(api, api.softmax(Algorithm, layout, 1), operands);
    };
  }
  static int32_t can_run(const tenon_value* args, uint32_t) {
    return can_build(key_of(args), build_of(args));
  }
  static tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
    void* const data[] = {data_of(tenon_arg_tensor(&args[0])), data_of(tenon_out_tensor(&outs[0]))};
    return run_cached(key_of(args), build_of(args), ctx, data, err);
  }
};

// -- layer_norm: (x, weight, bias, normalized_ndim, eps) -------------------------------------------

Key layer_norm_key(const tenon_value* args) {
  Key key(kLayerNorm);
  for (int i = 0; i < 3; ++i) key.add(tenon_arg_tensor(&args[i]));
  return key.add(tenon_arg_int(&args[3])).add(tenon_arg_float(&args[4]));
}

Build layer_norm_build(const tenon_value* args) {
  return [args](const Api& api) -> std::unique_ptr<Program> {
    const tenon_tensor *x = tenon_arg_tensor(&args[0]), *weight = tenon_arg_tensor(&args[1]),
                       *bias = tenon_arg_tensor(&args[2]);
    if (!is_contiguous(x) || !are_parameters_readable(weight, bias)) return nullptr;
    const int64_t normalized = tenon_arg_int(&args[3]);
    if (normalized < 1 || normalized > x->ndim) return nullptr;
    const int first = x->ndim - static_cast<int>(normalized);
    const int64_t features = product_of(x->shape, first, x->ndim);
    const Description data = describe(x->dtype, {x->numel / features, features}),
                      parameters = describe(TENON_DTYPE_F32, {features});
    const Layout layout = api.layout(data);
    if (!layout) return nullptr;
    std::vector<Operand> operands = {{kSource, kNoQuery, false, data},
                                     {kDestination, kNoQuery, true, data}};
    if (weight) operands.push_back({kScale, kNoQuery, false, parameters});
    if (bias) operands.push_back({kShift, kNoQuery, false, parameters});
    const float eps = static_cast<float>(tenon_arg_float(&args[4]));
    return Program::make(api, api.layer_norm(layout, eps, weight, bias), operands);
  };
}

int32_t can_run_layer_norm(const tenon_value* args, uint32_t) {
  return can_build(layer_norm_key(args), layer_norm_build(args));
}

tenon_status run_layer_norm(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                            uint32_t, tenon_err* err) {
  std::vector<void*> data = {data_of(tenon_arg_tensor(&args[0])),
                             data_of(tenon_out_tensor(&outs[0]))};
  for (int i = 1; i < 3; ++i)
    if (const tenon_tensor* each = tenon_arg_tensor(&args[i])) data.push_back(data_of(each));
  return run_cached(layer_norm_key(args), layer_norm_build(args), ctx, data, err);
}

// -- batch_norm: (x, weight, bias, eps) -> (out, mean, var) ----------------------------------------

Key batch_norm_key(const tenon_value* args, const tenon_tensor* out) {
  Key key(kBatchNorm);
  for (int i = 0; i < 3; ++i) key.add(tenon_arg_tensor(&args[i]));
  return key.add(tenon_arg_float(&args[3])).add(out);
}

Build batch_norm_build(const tenon_value* args, const tenon_tensor* out) {
  return [args, out](const Api& api) -> std::unique_ptr<Program> {
    const tenon_tensor *x = tenon_arg_tensor(&args[0]), *weight = tenon_arg_tensor(&args[1]),
                       *bias = tenon_arg_tensor(&args[2]);
    if (!has_elements(x) || x->ndim < 2 || !are_parameters_readable(weight, bias)) return nullptr;
    Description data, results;
    if (x->flags & TENON_TENSOR_CONTIGUOUS) {
      data = describe(x->dtype, {x->shape[0], x->shape[1], 1, product_of(x->shape, 2, x->ndim)});
      results = data;
      // A result in another memory format cannot be described with the joined axes.
      if (out && !(out->flags & TENON_TENSOR_CONTIGUOUS)) return nullptr;
    } else if (is_channels_last(*x)) {
      data = describe(*x);
      if (!normalize_strides(data)) return nullptr;
      results = out ? describe(*out) : data;
      if (!normalize_strides(results)) return nullptr;
    } else {
      return nullptr;
    }
    const Description channels = describe(TENON_DTYPE_F32, {x->shape[1]});
    const Layout layout = api.layout(data);
    if (!layout) return nullptr;
    std::vector<Operand> operands = {{kSource, kQuerySource, false, data},
                                     {kDestination, kQueryDestination, true, results},
                                     {kMean, kNoQuery, true, channels},
                                     {kVariance, kNoQuery, true, channels}};
    if (weight) operands.push_back({kScale, kNoQuery, false, channels});
    if (bias) operands.push_back({kShift, kNoQuery, false, channels});
    const float eps = static_cast<float>(tenon_arg_float(&args[3]));
    return Program::make(api, api.batch_norm(layout, eps, weight, bias), operands);
  };
}

int32_t can_run_batch_norm(const tenon_value* args, uint32_t) {
  return can_build(batch_norm_key(args, nullptr), batch_norm_build(args, nullptr));
}

tenon_status run_batch_norm(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                            uint32_t, tenon_err* err) {
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  std::vector<void*> data = {data_of(tenon_arg_tensor(&args[0])), data_of(out),
                             data_of(tenon_out_tensor(&outs[1])),
                             data_of(tenon_out_tensor(&outs[2]))};
  for (int i = 1; i < 3; ++i)
    if (const tenon_tensor* each = tenon_arg_tensor(&args[i])) data.push_back(data_of(each));
  return run_cached(batch_norm_key(args, out), batch_norm_build(args, out), ctx, data, err);
}

}  // namespace

KernelList normalization_kernels() {
  using PlainSoftmax = Softmax<kSoftmaxKernel, kSoftmax>;
  using LogSoftmax = Softmax<kLogSoftmaxKernel, kLogSoftmax>;
  return {kernel_of("tenon::softmax", kFloats, 0, PlainSoftmax::run, PlainSoftmax::can_run),
          kernel_of("tenon::log_softmax", kFloats, 0, LogSoftmax::run, LogSoftmax::can_run),
          kernel_of("tenon::layer_norm", kFloats, 0, run_layer_norm, can_run_layer_norm),
          kernel_of("tenon::batch_norm", kFloats, TENON_KERNEL_STRIDED, run_batch_norm,
                    can_run_batch_norm)};
}

}  // namespace tenon::onednn
