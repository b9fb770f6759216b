// SPDX-License-Identifier: Apache-2.0
// Convolutions of aclnn and what pools windows, on images with two axes. Prototypes are those of the pages aclnn*.md
// of hicann/ops-nn.
#include <cmath>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

bool is_image(const aclTensor* tensor) {
  return tensor->shape.size() == 4 && tensor->format == kNchw &&
         is_one_of(tensor->dtype, {kF32, kF16, kBf16});
}
bool are_two(const aclIntArray* array, int64_t least) {
  return array->values.size() == 2 && array->values[0] >= least && array->values[1] >= least;
}

// How windows lie on an image, along its height and width.
struct Windows {
  int64_t kernel[2], stride[2], padding[2], dilation[2] = {1, 1};

  // Number of windows along an axis of that extent.
  int64_t count(int64_t extent, int axis) const {
    return (extent + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] +
           1;
  }
  // Where the k-th element of the i-th window lies.
  int64_t position(int64_t i, int64_t k, int axis) const {
    return i * stride[axis] - padding[axis] + k * dilation[axis];
  }
};

// f(row of the image, column, row of the window, column) for what a window has inside the image.
template <class F>
void for_window(const Windows& w, const std::vector<int64_t>& image, int64_t i, int64_t j, F f) {
  for (int64_t a = 0; a < w.kernel[0]; ++a)
    for (int64_t b = 0; b < w.kernel[1]; ++b) {
      const int64_t row = w.position(i, a, 0), column = w.position(j, b, 1);
      if (row >= 0 && row < image[2] && column >= 0 && column < image[3]) f(row, column, a, b);
    }
}

int check_convolution(const char* name, const aclTensor* x, const aclTensor* weight,
                      const aclTensor* y, const aclIntArray* stride, const aclIntArray* padding,
                      const aclIntArray* dilation, const aclIntArray* output_padding,
                      int64_t groups, Windows& w) {
  for (const aclIntArray* array : {stride, padding, dilation, output_padding})
    if (!is_alive(array)) return refuse(name, kNullPointer, "an array is nullptr or was destroyed");
  if (!is_image(x) || !is_image(weight) || !is_image(y))
    return refuse(name, kInvalid,
                  "expected float images in the format NCHW; others are not simulated");
  if (x->dtype != weight->dtype || x->dtype != y->dtype)
    return refuse(name, kInvalid, "several dtypes are not simulated");
  if (!are_two(stride, 1) || !are_two(padding, 0) || !are_two(dilation, 1) ||
      output_padding->values.size() != 2)
    return refuse(name, kInvalid, "a list has an unexpected length or value");
  for (size_t axis = 0; axis < 2; ++axis) {
    w.kernel[axis] = weight->shape[axis + 2];
    w.stride[axis] = stride->values[axis];
    w.padding[axis] = padding->values[axis];
    w.dilation[axis] = dilation->values[axis];
  }
  if (groups < 1 || x->shape[1] != weight->shape[1] * groups || weight->shape[0] % groups != 0)
    return refuse(name, kInvalid, "the channels do not agree with the groups");
  const std::vector<int64_t> expected = {x->shape[0], weight->shape[0], w.count(x->shape[2], 0),
                                         w.count(x->shape[3], 1)};
  if (y->shape != expected) return refuse(name, kInvalid, "the shapes do not agree");
  return 0;
}

// f(coordinates in x, coordinates in the weight, coordinates in y) for every product of a convolution.
template <class F>
void for_products(const Windows& w, int64_t groups, const std::vector<int64_t>& x,
                  const std::vector<int64_t>& weight, const std::vector<int64_t>& y, F f) {
  const int64_t inner = weight[1], filters = weight[0] / groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j)
          for (int64_t c = 0; c < inner; ++c)
            for_window(w, x, i, j, [&](int64_t row, int64_t column, int64_t a, int64_t b) {
              f(Coordinates{n, o / filters * inner + c, row, column}, Coordinates{o, c, a, b},
                Coordinates{n, o, i, j});
            });
}

// Sums in float64 of a tensor whose elements are given in any order.
struct Sums {
  const View& view;
  std::vector<double> values;

  explicit Sums(const View& to) : view(to), values(static_cast<size_t>(to.count()), 0.0) {}
  double& at(const Coordinates& coordinates) {
    int64_t i = 0;
    for (size_t axis = 0; axis < coordinates.size(); ++axis)
      i = i * view.of.shape[axis] + coordinates[axis];
    return values[static_cast<size_t>(i)];
  }
  void store(View& to) const {
    for (size_t i = 0; i < values.size(); ++i)
      to.store(to.offset(static_cast<int64_t>(i), to.of.shape), values[i]);
  }
};

ACLNN_EXPORT int aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
    const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation,
    bool transposed, const aclIntArray* output_padding, const int64_t groups, aclTensor* output,
    int8_t cube_math_type, uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(input, weight, output);
  REQUIRE(!transposed, "the transposed convolution is not simulated");
  REQUIRE(cube_math_type >= 0 && cube_math_type <= 3, "cubeMathType is 0 to 3");
  REQUIRE(input->dtype != kF32 || cube_math_type != 0, "float32 is not computed as such");
  REQUIRE(may_be(bias), "a tensor was destroyed");
  Windows w;
  if (const int error = check_convolution(__func__, input, weight, output, stride, padding,
                                          dilation, output_padding, groups, w))
    return error;
  REQUIRE(!bias || (bias->shape == std::vector<int64_t>{weight->shape[0]} && bias->format == kNd),
          "expected a bias for each filter");
  std::vector<const aclTensor*> tensors = {input, weight};
  if (bias) tensors.push_back(bias);
  tensors.push_back(output);
  return plan(
      "aclnnConvolution", tensors,
      [=, has_bias = bias != nullptr](std::vector<View>& views) {
        View& to = views.back();
        Sums sums(to);
        for_products(w, groups, views[0].of.shape, views[1].of.shape, to.of.shape,
                     [&](const Coordinates& x, const Coordinates& k, const Coordinates& y) {
                       sums.at(y) += views[0].number(offset_of(views[0], x)) *
                                     views[1].number(offset_of(views[1], k));
                     });
        if (has_bias)
          for (size_t i = 0; i < sums.values.size(); ++i)
            sums.values[i] += views[2].number(
                offset_of(views[2], {coordinates_of(static_cast<int64_t>(i), to.of.shape)[1]}));
        sums.store(to);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnConvolution)

// One of the gradients of input and weight; that of the bias is not simulated. The gradient of a tensor reads
// nothing but the shape of that tensor.
ACLNN_EXPORT int aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* grad_output, const aclTensor* input, const aclTensor* weight,
    const aclIntArray* bias_sizes, const aclIntArray* stride, const aclIntArray* padding,
    const aclIntArray* dilation, bool transposed, const aclIntArray* output_padding, int groups,
    const aclBoolArray* mask, int8_t cube_math_type, aclTensor* grad_input, aclTensor* grad_weight,
    aclTensor* grad_bias, uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(grad_output, input, weight);
  if (!is_alive(bias_sizes) || !is_alive(mask))
    return refuse(__func__, kNullPointer, "an array is nullptr or was destroyed");
  REQUIRE(!transposed, "the transposed convolution is not simulated");
  REQUIRE(cube_math_type >= 0 && cube_math_type <= 3, "cubeMathType is 0 to 3");
  REQUIRE(mask->values.size() == 3 && mask->values[0] != mask->values[1] && !mask->values[2],
          "expected a mask for one gradient, of the input or the weight");
  Windows w;
  if (const int error = check_convolution(__func__, input, weight, grad_output, stride, padding,
                                          dilation, output_padding, groups, w))
    return error;
  REQUIRE(bias_sizes->values == std::vector<int64_t>{weight->shape[0]}, "biasSizes is [filters]");
  const bool of_input = mask->values[0];
  aclTensor* out = of_input ? grad_input : grad_weight;
  const aclTensor* like = of_input ? input : weight;
  NEEDS(out);
  REQUIRE(!(of_input ? grad_weight : grad_input) && !grad_bias, "a gradient was not requested");
  REQUIRE(out->shape == like->shape && out->format == like->format && out->dtype == like->dtype,
          "the gradient has an unexpected shape, format or dtype");
  const std::vector<int64_t> x_shape = input->shape, weight_shape = weight->shape;
  return plan(
      "aclnnConvolutionBackward", {grad_output, of_input ? weight : input, out},
      [=](std::vector<View>& views) {
        Sums sums(views[2]);
        for_products(w, groups, x_shape, weight_shape, views[0].of.shape,
                     [&](const Coordinates& x, const Coordinates& k, const Coordinates& y) {
                       sums.at(of_input ? x : k) +=
                           views[0].number(offset_of(views[0], y)) *
                           views[1].number(offset_of(views[1], of_input ? k : x));
                     });
        sums.store(views[2]);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnConvolutionBackward)

// Fills `w`.
int check_pooling(const char* name, const aclTensor* x, const aclTensor* y,
                  const aclIntArray* kernel, const aclIntArray* stride, const aclIntArray* padding,
                  bool ceil, Windows& w) {
  for (const aclIntArray* array : {kernel, stride, padding})
    if (!is_alive(array)) return refuse(name, kNullPointer, "an array is nullptr or was destroyed");
  if (x->shape.size() != 4 || y->shape.size() != 4)
    return refuse(name, kInvalid, "images without a batch are not simulated");
  if (!are_two(kernel, 1) || !are_two(stride, 1) || !are_two(padding, 0))
    return refuse(name, kInvalid, "a list has an unexpected length or value");
  std::vector<int64_t> expected = {x->shape[0], x->shape[1]};
  for (size_t axis = 0; axis < 2; ++axis) {
    w.kernel[axis] = kernel->values[axis];
    w.stride[axis] = stride->values[axis];
    w.padding[axis] = padding->values[axis];
    if (w.padding[axis] * 2 > w.kernel[axis])
      return refuse(name, kInvalid, "there is too much padding");
    const int64_t extent = x->shape[axis + 2];
    int64_t count = w.count(extent + (ceil ? w.stride[axis] - 1 : 0), static_cast<int>(axis));
    if (ceil && (count - 1) * w.stride[axis] >= extent + w.padding[axis]) --count;
    expected.push_back(count);
  }
  if (x->dtype != y->dtype || y->shape != expected)
    return refuse(name, kInvalid, "the result has an unexpected dtype or shape");
  return 0;
}

ACLNN_EXPORT int aclnnMaxPoolGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernel,
                                              const aclIntArray* stride, const int64_t auto_pad,
                                              const aclIntArray* pads, const aclIntArray* dilations,
                                              const int64_t ceil, aclTensor* out, uint64_t* bytes,
                                              aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(auto_pad == 0, "autoPad is 0");
  REQUIRE(is_one_of(self->dtype, {kF32, kF16}), "a dtype is not served");
  REQUIRE(is_alive(dilations) && std::all_of(dilations->values.begin(), dilations->values.end(),
                                             [](int64_t one) { return one == 1; }),
          "dilations are 1");
  Windows w;
  if (const int error = check_pooling(__func__, self, out, kernel, stride, pads, ceil != 0, w))
    return error;
  return plan(
      "aclnnMaxPool", {self, out},
      [=](std::vector<View>& views) {
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          const Coordinates to = coordinates_of(i, views[1].of.shape);
          double most = -INFINITY;
          for_window(
              w, views[0].of.shape, to[2], to[3],
              [&](int64_t row, int64_t column, int64_t, int64_t) {
                const double x = views[0].number(offset_of(views[0], {to[0], to[1], row, column}));
                if (x != x || x > most) most = x;
              });
          views[1].store(offset_of(views[1], to), most);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnMaxPool)

// Over how many elements a window's mean is, without ceilMode.
double divisor(const Windows& w, const std::vector<int64_t>& image, int64_t i, int64_t j,
               bool count_padding) {
  if (count_padding) return static_cast<double>(w.kernel[0] * w.kernel[1]);
  int64_t inside = 0;
  for_window(w, image, i, j, [&](int64_t, int64_t, int64_t, int64_t) { ++inside; });
  return static_cast<double>(inside);
}

ACLNN_EXPORT int aclnnAvgPool2dGetWorkspaceSize(const aclTensor* self, const aclIntArray* kernel,
                                                const aclIntArray* stride,
                                                const aclIntArray* padding, const bool ceil,
                                                const bool count_padding,
                                                const int64_t divisor_override,
                                                const int8_t cube_math_type, aclTensor* out,
                                                uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, out);
  REQUIRE(!ceil && divisor_override == 0 && cube_math_type == 0, "this is not simulated");
  REQUIRE(is_image(self) && is_image(out), "expected float images in the format NCHW");
  Windows w;
  if (const int error = check_pooling(__func__, self, out, kernel, stride, padding, false, w))
    return error;
  return plan(
      "aclnnAvgPool2d", {self, out},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& image = views[0].of.shape;
        for (int64_t i = 0, n = views[1].count(); i < n; ++i) {
          const Coordinates to = coordinates_of(i, views[1].of.shape);
          double sum = 0;
          for_window(w, image, to[2], to[3], [&](int64_t row, int64_t column, int64_t, int64_t) {
            sum += views[0].number(offset_of(views[0], {to[0], to[1], row, column}));
          });
          views[1].store(offset_of(views[1], to),
                         sum / divisor(w, image, to[2], to[3], count_padding));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnAvgPool2d)

ACLNN_EXPORT int aclnnAvgPool2dBackwardGetWorkspaceSize(
    const aclTensor* grad_output, const aclTensor* self, const aclIntArray* kernel,
    const aclIntArray* stride, const aclIntArray* padding, bool ceil, bool count_padding,
    int64_t divisor_override, int8_t cube_math_type, aclTensor* grad_input, uint64_t* bytes,
    aclOpExecutor** executor) {
  NEEDS(grad_output, self, grad_input);
  REQUIRE(!ceil && divisor_override == 0 && cube_math_type == 0, "this is not simulated");
  REQUIRE(is_image(grad_output) && is_image(self) && is_image(grad_input),
          "expected float images in the format NCHW");
  REQUIRE(self->shape == grad_input->shape && self->dtype == grad_input->dtype,
          "the gradient has an unexpected shape or dtype");
  Windows w;
  if (const int error =
          check_pooling(__func__, self, grad_output, kernel, stride, padding, false, w))
    return error;
  return plan(
      "aclnnAvgPool2dBackward", {grad_output, grad_input},
      [=](std::vector<View>& views) {
        Sums sums(views[1]);
        for (int64_t i = 0, n = views[0].count(); i < n; ++i) {
          const Coordinates from = coordinates_of(i, views[0].of.shape);
          const double share = views[0].number(offset_of(views[0], from)) /
                               divisor(w, views[1].of.shape, from[2], from[3], count_padding);
          for_window(w, views[1].of.shape, from[2], from[3],
                     [&](int64_t row, int64_t column, int64_t, int64_t) {
                       sums.at({from[0], from[1], row, column}) += share;
                     });
        }
        sums.store(views[1]);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnAvgPool2dBackward)

// Windows along one of the last two axes.
ACLNN_EXPORT int aclnnUnfoldGradGetWorkspaceSize(const aclTensor* grad_out,
                                                 const aclIntArray* sizes, int64_t dim,
                                                 int64_t size, int64_t step,
                                                 const aclTensor* grad_in, uint64_t* bytes,
                                                 aclOpExecutor** executor) {
  NEEDS(grad_out, grad_in);
  if (!is_alive(sizes))
    return refuse(__func__, kNullPointer, "an array is nullptr or was destroyed");
  const auto ndim = static_cast<int64_t>(grad_in->shape.size());
  REQUIRE(sizes->values == grad_in->shape, "inputSizes is the shape of the result");
  REQUIRE(dim >= 0 && (dim == ndim - 1 || dim == ndim - 2), "dim is one of the last two axes");
  REQUIRE(is_one_of(grad_in->dtype, {kF32, kF16, kBf16}) && grad_out->dtype == grad_in->dtype,
          "a dtype is not served");
  const int64_t extent = grad_in->shape[static_cast<size_t>(dim)];
  REQUIRE(size > 0 && size <= extent && step > 0 && size <= 72 && step <= 72,
          "size or step is not served");
  std::vector<int64_t> expected = grad_in->shape;
  expected[static_cast<size_t>(dim)] = (extent - size) / step + 1;
  expected.push_back(size);
  REQUIRE(grad_out->shape == expected, "the gradient has an unexpected shape");
  return plan(
      "aclnnUnfoldGrad", {grad_out, grad_in},
      [=](std::vector<View>& views) {
        Sums sums(views[1]);
        for (int64_t i = 0, n = views[0].count(); i < n; ++i) {
          Coordinates coordinates = coordinates_of(i, views[0].of.shape);
          const double gradient = views[0].number(offset_of(views[0], coordinates));
          const int64_t inside = coordinates.back();
          coordinates.pop_back();
          int64_t& window = coordinates[static_cast<size_t>(dim)];
          window = window * step + inside;
          sums.at(coordinates) += gradient;
        }
        sums.store(views[1]);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnUnfoldGrad)

}  // namespace
}  // namespace simulated::aclnn
