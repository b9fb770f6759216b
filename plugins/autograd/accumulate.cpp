// SPDX-License-Identifier: Apache-2.0
#include "accumulate.hpp"

#include "operators.hpp"

namespace tenon::autograd {
namespace {

tenon_status sum_to_shape(Tensor& gradient, const Form& form, const char* operation,
                          tenon_err* err) {
  int64_t axes[TENON_MAX_NDIM];
  uint32_t count = 0;
  int32_t extra = gradient->ndim - form.ndim;
  bool fits = extra >= 0;
  for (int32_t axis = 0; fits && axis < gradient->ndim; ++axis) {
    if (axis < extra) {
      axes[count++] = axis;
    } else if (gradient->shape[axis] != form.sizes[axis - extra]) {
      if (form.sizes[axis - extra] != 1) fits = false;
      axes[count++] = axis;
    }
  }
  if (!fits)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "gradient of [%s]: expected shape %s or one that broadcasting made of it, got %s; "
        "return a gradient of "
        "the input's shape",
        operation, shape_text(form.ndim, form.sizes).c_str(),
        shape_text(gradient->ndim, gradient->shape).c_str());
  // Axes that broadcasting added go with the sum, if it is over no others.
  bool keeps_axes = count != static_cast<uint32_t>(extra);
  if (count) {
    Tensor summed;
    TENON_TRY(sum(gradient, axes, count, keeps_axes, &summed, err));
    gradient = std::move(summed);
  }
  if (extra && keeps_axes) {
    Tensor shaped;
    TENON_TRY(reshape(gradient, form.ndim, form.sizes, &shaped, err));
    gradient = std::move(shaped);
  }
  return TENON_OK;
}

// Nothing is added in place to a tensor that is composed of others: beside a dense one the sum is dense.
bool is_composed(const tenon_tensor& tensor) { return tensor.flags & TENON_TENSOR_COMPOSED; }

bool is_dense(const tenon_tensor& tensor) { return tensor.flags & TENON_TENSOR_CONTIGUOUS; }

// Makes a tensor that can be a .grad: dense, not shared, and without a history unless requested.
tenon_status make_own(Tensor& gradient, bool creates_graph, tenon_err* err) {
  bool has_history = gradient->layers & place.bit;
  uint64_t bytes = static_cast<uint64_t>(gradient->numel) * host->dtype_size(gradient->dtype);
  if (is_dense(*gradient.get()) && (creates_graph || !has_history) && is_unshared(gradient.get()) &&
      host->tensor_storage_bytes(gradient.get()) == bytes)
    return TENON_OK;
  Tensor copy;
  TENON_TRY(clone(gradient, &copy, err));
  gradient = std::move(copy);
  return TENON_OK;
}

}  // namespace

tenon_status fit(Tensor& gradient, const Form& form, const char* operation, tenon_err* err) {
  TENON_TRY(sum_to_shape(gradient, form, operation, err));
  if (gradient->dtype == form.dtype) return TENON_OK;
  Tensor converted;
  TENON_TRY(convert(gradient, form.dtype, &converted, err));
  gradient = std::move(converted);
  return TENON_OK;
}

tenon_status add_to(tenon_tensor*& sum, bool& is_own, Tensor gradient, bool creates_graph,
                    tenon_err* err) {
  if (!sum) {
    sum = gradient.release();
    is_own = false;
    return TENON_OK;
  }
  if (!creates_graph) {
    // Nor is what is composed as a whole added to a plain tensor in place.
    const bool is_plain = !is_composed_below(*sum) && !is_composed_below(*gradient.get());
    if (is_plain && (is_own || (is_dense(*sum) && is_unshared(sum))))
      return add_into(sum, gradient, err);
    if (is_plain && is_dense(*gradient.get()) && is_unshared(gradient.get())) {
      TENON_TRY(add_into(gradient.get(), Tensor::borrow(sum), err));
      host->tensor_release(sum);
      sum = gradient.release();
      return TENON_OK;
    }
  }
  Tensor total;
  TENON_TRY(add(Tensor::borrow(sum), gradient, &total, err));
  host->tensor_release(sum);
  sum = total.release();
  is_own = !creates_graph && !is_composed(*sum);
  return TENON_OK;
}

tenon_status accumulate_grad(std::atomic<tenon_tensor*>& grad, Tensor gradient, bool creates_graph,
                             tenon_err* err) {
  // A thread that adds exchanges the sum for NULL meanwhile. A thread that finds NULL stores its
  // gradient, and one that finds another sum when it stores its own adds again. No lock is held
  // while an operator runs.
  Tensor found = Tensor::adopt(grad.exchange(nullptr, std::memory_order_acq_rel));
  if (!found) TENON_TRY(make_own(gradient, creates_graph, err));
  bool is_first = true;
  for (;;) {
    if (found) {
      tenon_status status;
      const bool makes_new =
          creates_graph || is_composed(*found.get()) || is_composed_below(*gradient.get());
      if (makes_new) {
        Tensor total;
        status = add(found, gradient, &total, err);
        if (status == TENON_OK) gradient = std::move(total);
      } else {
        if (is_first) std::swap(found, gradient);  // .grad stays the same tensor
        status = add_into(gradient.get(), found, err);
      }
      if (status != TENON_OK) {
        // Of a .grad that was there before, keep what can be kept.
        tenon_tensor* empty = nullptr;
        tenon_tensor* before = makes_new ? found.release() : gradient.release();
        if (!grad.compare_exchange_strong(empty, before, std::memory_order_acq_rel))
          host->tensor_release(before);
        return status;
      }
    }
    is_first = false;
    tenon_tensor* empty = nullptr;
    if (grad.compare_exchange_strong(empty, gradient.get(), std::memory_order_acq_rel)) {
      gradient.release();
      return TENON_OK;
    }
    found = Tensor::adopt(grad.exchange(nullptr, std::memory_order_acq_rel));
  }
}

}  // namespace tenon::autograd
