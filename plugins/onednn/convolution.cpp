// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients. oneDNN chooses the memory formats in which it computes (nChw16c and the
// like); the program reorders tensors into and out of them.
#include "kernels.hpp"

namespace tenon::onednn {
namespace {

struct Convolution {
  Description images, filters, results;
  ConvolutionWindow window;
};

int64_t out_extent(int64_t extent, int64_t kernel, const ConvolutionWindow& window, int axis) {
  const int64_t reach = (window.dilates[axis] + 1) * (kernel - 1);
  return (extent + 2 * window.padding[axis] - reach - 1) / window.strides[axis] + 1;
}

// Filters [O, C / groups, KH, KW] are [groups, O / groups, C / groups, KH, KW] to oneDNN.
Description group_filters(Description filters, int64_t groups) {
  if (groups == 1) return filters;
  filters.dims[0] /= groups;
  filters.dims.insert(filters.dims.begin(), groups);
  filters.strides.insert(filters.strides.begin(), filters.dims[1] * filters.strides[0]);
  return filters;
}

// args[first ...]: stride, padding, dilation, groups.
ConvolutionWindow read_window(const tenon_value* args, int64_t* groups) {
  ConvolutionWindow window;
  read_pair(args[0], window.strides);
  read_pair(args[1], window.padding);
  read_pair(args[2], window.dilates);
  for (int64_t& dilate : window.dilates) --dilate;
  *groups = tenon_arg_int(&args[3]);
  return window;
}

// The operands have the same dtype and are contiguous or channels last.
bool is_possible(const tenon_tensor* images, const tenon_tensor* filters) {
  return has_elements(images) && has_elements(filters) && images->dtype == filters->dtype &&
         is_dense_image(*images) && is_dense_image(*filters);
}

struct AnyLayouts {
  Layout images, filters, results;
  AnyLayouts(const Api& api, const Convolution& c)
      : images(api.any_layout(c.images)),
        filters(api.any_layout(c.filters)),
        results(api.any_layout(c.results)) {}
  explicit operator bool() const { return images && filters && results; }
};

// -- forward ---------------------------------------------------------------------------------------

bool read_forward(const tenon_value* args, Convolution& c) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *weight = tenon_arg_tensor(&args[1]),
                     *bias = tenon_arg_tensor(&args[2]);
  if (!is_possible(x, weight)) return false;
  if (bias && (bias->dtype != x->dtype || !(bias->flags & TENON_TENSOR_CONTIGUOUS))) return false;
  int64_t groups;
  c.window = read_window(args + 3, &groups);
  c.images = describe(*x);
  normalize_strides(c.images);
  c.filters = describe(*weight);
  normalize_strides(c.filters);
  c.filters = group_filters(c.filters, groups);
  const int64_t height = out_extent(x->shape[2], weight->shape[2], c.window, 0),
                width = out_extent(x->shape[3], weight->shape[3], c.window, 1);
  if (height <= 0 || width <= 0) return false;
  c.results = describe_image_like(*x, {x->shape[0], weight->shape[0], height, width});
  return true;
}

Key forward_key(const tenon_value* args, const tenon_tensor* out) {
  Key key(kConv2d);
  for (int i = 0; i < 3; ++i) key.add(tenon_arg_tensor(&args[i]));
  int64_t groups;
  const ConvolutionWindow window = read_window(args + 3, &groups);
  for (int i = 0; i < 2; ++i)
    key.add(window.strides[i]).add(window.padding[i]).add(window.dilates[i]);
  return key.add(groups).add(out);
}

Build forward_build(const tenon_value* args, const tenon_tensor* out) {
  return [args, out](const Api& api) -> std::unique_ptr<Program> {
    Convolution c;
    if (!read_forward(args, c)) return nullptr;
    const AnyLayouts any(api, c);
    const tenon_tensor* bias = tenon_arg_tensor(&args[2]);
    const Layout bias_layout = bias ? api.layout(describe(*bias)) : Layout();
    if (!any || (bias && !bias_layout)) return nullptr;
    if (out) {
      c.results = describe(*out);
      if (!normalize_strides(c.results)) return nullptr;
    }
    std::vector<Operand> operands = {{kSource, kQuerySource, false, c.images},
                                     {kWeights, kQueryWeights, false, c.filters},
                                     {kDestination, kQueryDestination, true, c.results}};
    if (bias) operands.push_back({kBias, kNoQuery, false, describe(*bias)});
    return Program::make(
        api, api.convolution(any.images, any.filters, bias_layout, any.results, c.window),
        operands);
  };
}

int32_t can_run_forward(const tenon_value* args, uint32_t) {
  return can_build(forward_key(args, nullptr), forward_build(args, nullptr));
}

tenon_status run_forward(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) {
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  std::vector<void*> data = {data_of(tenon_arg_tensor(&args[0])),
                             data_of(tenon_arg_tensor(&args[1])), data_of(out)};
  if (const tenon_tensor* bias = tenon_arg_tensor(&args[2])) data.push_back(data_of(bias));
  return run_cached(forward_key(args, out), forward_build(args, out), ctx, data, err);
}

// -- gradients -------------------------------------------------------------------------------------

// Of the images: (grad_out, weight, input_shape, stride, padding, dilation, groups); of the filters:
// (grad_out, x, weight_shape, ...).
template <int Number>
struct Gradient {
  static constexpr bool kOfImages = Number == kConv2dInputGrad;

  static bool read(const tenon_value* args, Convolution& c) {
    const tenon_tensor *grad_out = tenon_arg_tensor(&args[0]), *other = tenon_arg_tensor(&args[1]);
    if (!is_possible(grad_out, other)) return false;
    if (tenon_arg_count(&args[2]) != 4) return false;
    const int64_t* sizes = tenon_arg_ints(&args[2]);
    const std::vector<int64_t> shape(sizes, sizes + 4);
    for (int64_t extent : shape)
      if (extent <= 0) return false;
    int64_t groups;
    c.window = read_window(args + 3, &groups);
    c.results = describe(*grad_out);
    Description given = describe(*other);
    normalize_strides(c.results);
    normalize_strides(given);
    c.images = kOfImages ? describe_image_like(*grad_out, shape) : given;
    c.filters = group_filters(kOfImages ? given : describe(grad_out->dtype, shape), groups);
    return true;
  }

  static Key key_of(const tenon_value* args, const tenon_tensor* out) {
    Key key(Number);
    key.add(tenon_arg_tensor(&args[0])).add(tenon_arg_tensor(&args[1]));
    const int64_t* sizes = tenon_arg_ints(&args[2]);
    for (uint64_t i = 0; i < tenon_arg_count(&args[2]); ++i) key.add(sizes[i]);
    int64_t groups;
    const ConvolutionWindow window = read_window(args + 3, &groups);
    for (int i = 0; i < 2; ++i)
      key.add(window.strides[i]).add(window.padding[i]).add(window.dilates[i]);
    return key.add(groups).add(kOfImages ? out : nullptr);
  }

  static Build build_of(const tenon_value* args, const tenon_tensor* out) {
    return [args, out](const Api& api) -> std::unique_ptr<Program> {
      Convolution c;
      if (!read(args, c)) return nullptr;
      const AnyLayouts any(api, c);
      if (!any) return nullptr;
      const PrimitiveDesc forward =
          api.convolution(any.images, any.filters, Layout(), any.results, c.window);
      if (!forward) return nullptr;
      if (kOfImages && out) {
        c.images = describe(*out);
        if (!normalize_strides(c.images)) return nullptr;
      }
      const Operand result = {kDestinationGradient, kQueryDestinationGradient, false, c.results};
      if constexpr (kOfImages) {
        const Operand operands[] = {result,
                                    {kWeights, kQueryWeights, false, c.filters},
                                    {kSourceGradient, kQuerySourceGradient, true, c.images}};
        return Program::make(api,
                             api.convolution_source_gradient(any.images, any.filters, any.results,
                                                             c.window, forward),
                             operands);
      } else {
        const Operand operands[] = {result,
                                    {kSource, kQuerySource, false, c.images},
                                    {kWeightsGradient, kQueryWeightsGradient, true, c.filters}};
        return Program::make(api,
                             api.convolution_weights_gradient(any.images, any.filters, any.results,
                                                              c.window, forward),
                             operands);
      }
    };
  }

  static int32_t can_run(const tenon_value* args, uint32_t) {
    return can_build(key_of(args, nullptr), build_of(args, nullptr));
  }
  static tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
    const tenon_tensor* out = tenon_out_tensor(&outs[0]);
    void* const data[] = {data_of(tenon_arg_tensor(&args[0])), data_of(tenon_arg_tensor(&args[1])),
                          data_of(out)};
    return run_cached(key_of(args, out), build_of(args, out), ctx, data, err);
  }
};

}  // namespace

KernelList convolution_kernels() {
  constexpr uint32_t kAnyStrides = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT;
  using InputGradient = Gradient<kConv2dInputGrad>;
  using WeightGradient = Gradient<kConv2dWeightGrad>;
  return {kernel_of("tenon::conv2d", kFloats, kAnyStrides, run_forward, can_run_forward),
          kernel_of("tenon::conv2d_input_grad", kFloats, kAnyStrides, InputGradient::run,
                    InputGradient::can_run),
          kernel_of("tenon::conv2d_weight_grad", kFloats, TENON_KERNEL_STRIDED, WeightGradient::run,
                    WeightGradient::can_run)};
}

}  // namespace tenon::onednn
