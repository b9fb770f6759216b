// SPDX-License-Identifier: Apache-2.0
// Normalisation of aclnn, and the loss that normalises. Prototypes are those of the pages aclnn*.md of
// hicann/ops-math and ops-nn.
#include <cmath>
#include <string>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

bool is_served(const aclTensor* tensor) { return is_one_of(tensor->dtype, {kF32, kF16, kBf16}); }

// A tensor of one value for each row, like mean and rstd, has the shape of x with ones at its end.
std::vector<int64_t> rows_of(const aclTensor* x, size_t normalized) {
  std::vector<int64_t> shape = x->shape;
  std::fill(shape.end() - static_cast<std::ptrdiff_t>(normalized), shape.end(), 1);
  return shape;
}

ACLNN_EXPORT int aclnnLayerNormGetWorkspaceSize(const aclTensor* x, const aclIntArray* normalized,
                                                const aclTensor* weight, const aclTensor* bias,
                                                double eps, aclTensor* out, aclTensor* mean,
                                                aclTensor* rstd, uint64_t* bytes,
                                                aclOpExecutor** executor) {
  NEEDS(x, out);
  if (!is_alive(normalized) || !may_be(weight) || !may_be(bias))
    return refuse("aclnnLayerNorm", kNullPointer, "a parameter is nullptr or was destroyed");
  REQUIRE(!mean && !rstd, "mean and rstd are not simulated");
  const std::vector<int64_t>& extents = normalized->values;
  REQUIRE(!extents.empty() && extents.size() <= x->shape.size() &&
              std::equal(extents.rbegin(), extents.rend(), x->shape.rbegin()),
          "normalizedShape is not the end of the shape");
  for (const aclTensor* one : {weight, bias}) {
    if (!one) continue;
    const bool may_be_float = weight && bias && weight->dtype == bias->dtype;
    REQUIRE(one->shape == extents, "a weight or bias has an unexpected shape");
    REQUIRE(one->dtype == x->dtype || (may_be_float && one->dtype == kF32),
            "a weight or bias has an unexpected dtype");
  }
  REQUIRE(is_served(x) && out->dtype == x->dtype && out->shape == x->shape,
          "a dtype or shape is not served");
  std::vector<const aclTensor*> tensors = {x};
  if (weight) tensors.push_back(weight);
  if (bias) tensors.push_back(bias);
  tensors.push_back(out);
  int64_t length = 1;
  for (int64_t extent : extents) length *= extent;
  return plan(
      "aclnnLayerNorm", tensors,
      [=, has_weight = weight != nullptr, has_bias = bias != nullptr](std::vector<View>& views) {
        const View& from = views[0];
        for (int64_t start = 0, n = from.count(); start < n; start += length) {
          double sum = 0, squares = 0;
          const auto at = [&](int64_t k) {
            return from.number(from.offset(start + k, from.of.shape));
          };
          for (int64_t k = 0; k < length; ++k) sum += at(k);
          const double average = sum / static_cast<double>(length);
          for (int64_t k = 0; k < length; ++k) squares += (at(k) - average) * (at(k) - average);
          const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
          for (int64_t k = 0; k < length; ++k) {
            double y = (at(k) - average) * scale;
            const View& shift = views[has_weight ? 2 : 1];
            if (has_weight) y *= views[1].number(views[1].offset(k, views[1].of.shape));
            if (has_bias) y += shift.number(shift.offset(k, shift.of.shape));
            views.back().store(views.back().offset(start + k, from.of.shape), y);
          }
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnLayerNorm)

ACLNN_EXPORT int aclnnRmsNormGetWorkspaceSize(const aclTensor* x, const aclTensor* gamma,
                                              double eps, const aclTensor* y, const aclTensor* rstd,
                                              uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(x, gamma, y, rstd);
  const size_t normalized = gamma->shape.size();
  REQUIRE(normalized >= 1 && normalized <= x->shape.size() &&
              std::equal(gamma->shape.rbegin(), gamma->shape.rend(), x->shape.rbegin()),
          "gamma does not have the shape of the end of x");
  REQUIRE(is_served(x) && (gamma->dtype == x->dtype || gamma->dtype == kF32) &&
              y->dtype == x->dtype && y->shape == x->shape,
          "a dtype or shape is not served");
  REQUIRE(rstd->dtype == kF32 && rstd->shape == rows_of(x, normalized),
          "rstd has an unexpected dtype or shape");
  return plan(
      "aclnnRmsNorm", {x, gamma, y, rstd},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[0].of.shape;
        const int64_t length = views[1].count();
        for (int64_t start = 0, n = views[0].count(); start < n; start += length) {
          double squares = 0;
          const auto at = [&](int64_t k) {
            return views[0].number(views[0].offset(start + k, shape));
          };
          for (int64_t k = 0; k < length; ++k) squares += at(k) * at(k);
          const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
          views[3].store(views[3].offset(start / length, views[3].of.shape), scale);
          for (int64_t k = 0; k < length; ++k)
            views[2].store(views[2].offset(start + k, shape),
                           at(k) * scale * views[1].number(views[1].offset(k, views[1].of.shape)));
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnRmsNorm)

ACLNN_EXPORT int aclnnGroupNormGetWorkspaceSize(const aclTensor* self, const aclTensor* gamma,
                                                const aclTensor* beta, int64_t n, int64_t c,
                                                int64_t hxw, int64_t groups, double eps,
                                                aclTensor* out, aclTensor* mean, aclTensor* rstd,
                                                uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(self, gamma, beta, out, mean, rstd);
  REQUIRE(is_served(self) && self->shape.size() >= 2 && self->shape[0] == n && self->shape[1] == c,
          "a dtype, shape, N or C is not as it has to be");
  REQUIRE(groups > 0 && c % groups == 0 && eps > 0, "group or eps is not served");
  int64_t behind = 1;
  for (size_t axis = 2; axis < self->shape.size(); ++axis) behind *= self->shape[axis];
  REQUIRE(behind == hxw, "HxW is not the product of the other extents");
  for (const aclTensor* one : {gamma, beta})
    REQUIRE(one->shape == std::vector<int64_t>{c} && one->dtype == self->dtype,
            "expected one number for each channel");
  for (const aclTensor* one : {mean, rstd})
    REQUIRE(one->shape == (std::vector<int64_t>{n, groups}) && one->dtype == self->dtype,
            "expected one number for each group");
  REQUIRE(out->shape == self->shape && out->dtype == self->dtype, "the result differs");
  return plan(
      "aclnnGroupNorm", {self, gamma, beta, out, mean, rstd},
      [=](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[0].of.shape;
        const int64_t length = c / groups * hxw;
        for (int64_t group = 0; group < n * groups; ++group) {
          const auto at = [&](int64_t k) {
            return views[0].number(views[0].offset(group * length + k, shape));
          };
          double sum = 0, squares = 0;
          for (int64_t k = 0; k < length; ++k) sum += at(k);
          const double average = sum / static_cast<double>(length);
          for (int64_t k = 0; k < length; ++k) squares += (at(k) - average) * (at(k) - average);
          const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
          for (int64_t k = 0; k < length; ++k) {
            const int64_t i = group * length + k, channel = i / hxw % c;
            views[3].store(
                views[3].offset(i, shape),
                (at(k) - average) * scale * views[1].number(offset_of(views[1], {channel})) +
                    views[2].number(offset_of(views[2], {channel})));
          }
          const Coordinates coordinates = {group / groups, group % groups};
          views[4].store(offset_of(views[4], coordinates), average);
          views[5].store(offset_of(views[5], coordinates), scale);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnGroupNorm)

// Inference; training is not simulated.
ACLNN_EXPORT int aclnnBatchNormGetWorkspaceSize(const aclTensor* x, const aclTensor* weight,
                                                const aclTensor* bias, aclTensor* mean,
                                                aclTensor* var, bool training, double momentum,
                                                double eps, aclTensor* out, aclTensor* save_mean,
                                                aclTensor* save_invstd, uint64_t* bytes,
                                                aclOpExecutor** executor) {
  NEEDS(x, mean, var, out, save_mean, save_invstd);
  REQUIRE(!training && momentum >= 0, "training is not simulated");
  REQUIRE(x->shape.size() >= 2 && out->shape == x->shape && out->dtype == x->dtype && is_served(x),
          "a dtype or shape is not served");
  const size_t ndim = x->shape.size();
  const int format = ndim == 2   ? kNc
                     : ndim == 3 ? kNcl
                     : ndim == 4 ? kNchw
                     : ndim == 5 ? kNcdhw
                                 : kNd;
  REQUIRE(x->format == format && out->format == format, "a format does not name the axes");
  for (const aclTensor* one :
       {weight, bias, static_cast<const aclTensor*>(mean), static_cast<const aclTensor*>(var)}) {
    REQUIRE(may_be(one), "a tensor was destroyed");
    REQUIRE(!one || (one->shape == std::vector<int64_t>{x->shape[1]} && is_served(one)),
            "expected one number for each channel");
  }
  std::vector<const aclTensor*> tensors = {x};
  if (weight) tensors.push_back(weight);
  if (bias) tensors.push_back(bias);
  tensors.insert(tensors.end(), {mean, var, out});
  return plan(
      "aclnnBatchNorm", tensors,
      [=, has_weight = weight != nullptr, has_bias = bias != nullptr](std::vector<View>& views) {
        const std::vector<int64_t>& shape = views[0].of.shape;
        for (int64_t i = 0, n = views[0].count(); i < n; ++i) {
          const int64_t channel = coordinates_of(i, shape)[1];
          const auto of = [&](const View& view) { return view.number(offset_of(view, {channel})); };
          View& to = views.back();
          double y = (views[0].number(views[0].offset(i, shape)) - of(views[views.size() - 3])) /
                     std::sqrt(of(views[views.size() - 2]) + eps);
          if (has_weight) y *= of(views[1]);
          if (has_bias) y += of(views[has_weight ? 2 : 1]);
          to.store(to.offset(i, shape), y);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnBatchNorm)

// Without weights, smoothing and the loss z.
ACLNN_EXPORT int aclnnCrossEntropyLossGetWorkspaceSize(
    const aclTensor* x, const aclTensor* target, const aclTensor* weight, char* reduction,
    int64_t ignore_index, double smoothing, double z_scale, bool return_z, const aclTensor* loss,
    const aclTensor* log_prob, const aclTensor* z_loss, const aclTensor* lse, uint64_t* bytes,
    aclOpExecutor** executor) {
  NEEDS(x, target, loss, log_prob, z_loss, lse);
  if (!reduction) return refuse("aclnnCrossEntropyLoss", kNullPointer, "reduction is nullptr");
  const std::string how = reduction;
  REQUIRE(how == "none" || how == "mean" || how == "sum", "reduction is none, mean or sum");
  REQUIRE(!weight && smoothing == 0 && z_scale == 0 && !return_z, "this is not simulated");
  REQUIRE(is_served(x) && is_one_of(target->dtype, {kI32, kI64}), "a dtype is not served");
  REQUIRE(x->shape.size() == 2 && target->shape == std::vector<int64_t>{x->shape[0]},
          "expected [N, C] and [N]");
  const std::vector<int64_t> expected = {how == "none" ? x->shape[0] : 1};
  REQUIRE(loss->shape == expected && z_loss->shape == expected && lse->shape == target->shape &&
              log_prob->shape == x->shape,
          "a result has an unexpected shape");
  for (const aclTensor* one : {loss, log_prob, z_loss, lse})
    REQUIRE(one->dtype == x->dtype, "a result has an unexpected dtype");
  return plan(
      "aclnnCrossEntropyLoss", {x, target, loss, log_prob},
      [=](std::vector<View>& views) {
        const int64_t rows = views[0].of.shape[0], classes = views[0].of.shape[1];
        double sum = 0, counted = 0;
        for (int64_t i = 0; i < rows; ++i) {
          const auto at = [&](int64_t c) { return views[0].number(offset_of(views[0], {i, c})); };
          double most = -INFINITY, total = 0;
          for (int64_t c = 0; c < classes; ++c) most = std::fmax(most, at(c));
          for (int64_t c = 0; c < classes; ++c) total += std::exp(at(c) - most);
          const double log_total = most + std::log(total);
          for (int64_t c = 0; c < classes; ++c)
            views[3].store(offset_of(views[3], {i, c}), at(c) - log_total);
          const int64_t label = views[1].integer(offset_of(views[1], {i}));
          const bool counts = label != ignore_index && label >= 0 && label < classes;
          const double one = counts ? log_total - at(label) : 0;
          if (how == "none") views[2].store(offset_of(views[2], {i}), one);
          sum += one, counted += counts;
        }
        if (how != "none") views[2].store(views[2].of.offset, how == "mean" ? sum / counted : sum);
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnCrossEntropyLoss)

}  // namespace
}  // namespace simulated::aclnn
