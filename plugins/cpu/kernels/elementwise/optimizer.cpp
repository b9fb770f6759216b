// SPDX-License-Identifier: Apache-2.0
// Optimiser updates in one pass over memory. Called with the results in place of the arguments.
#include "kernel.hpp"

#include <tenon/signatures/optimizer.h>

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// f(i) for every element, with T the type of `param`.
template <class F>
void update(const tenon_tensor* param, int64_t work, F&& f) {
  with_type(param->dtype, [&]<class T>(Type<T> type) {
    if constexpr (std::is_floating_point_v<T>)
      parallel(param->numel, work, [&](int64_t begin, int64_t end) { f(type, begin, end); });
  });
}

tenon_status sgd_update(tenon_ctx* ctx, const tenon_tensor* param, const tenon_tensor* grad,
                        double lr, double weight_decay, tenon_tensor* new_param, tenon_err* err) {
  if (is_low_precision(param->dtype))
    return run_as_float32(sgd_update, ctx, err, param, grad, lr, weight_decay, new_param);
  update(param, 2, [&]<class T>(Type<T>, int64_t begin, int64_t end) {
    const T *p = data_of<T>(param), *g = data_of<T>(grad), rate = static_cast<T>(lr),
            decay = static_cast<T>(weight_decay);
    T* to = data_of<T>(new_param);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) to[i] = p[i] - (g[i] + p[i] * decay) * rate;
  });
  return TENON_OK;
}
TENON_BOX_sgd_update(sgd_update_boxed, sgd_update);

tenon_status momentum_update(tenon_ctx* ctx, const tenon_tensor* param, const tenon_tensor* grad,
                             const tenon_tensor* velocity, double lr, double momentum,
                             double dampening, double weight_decay, int32_t nesterov,
                             tenon_tensor* new_param, tenon_tensor* new_velocity, tenon_err* err) {
  if (is_low_precision(param->dtype))
    return run_as_float32(momentum_update, ctx, err, param, grad, velocity, lr, momentum, dampening,
                          weight_decay, nesterov, new_param, new_velocity);
  update(param, 4, [&]<class T>(Type<T>, int64_t begin, int64_t end) {
    const T *p = data_of<T>(param), *g = data_of<T>(grad), *v = data_of<T>(velocity);
    T *to = data_of<T>(new_param), *v_to = data_of<T>(new_velocity);
    const T rate = static_cast<T>(lr), keep = static_cast<T>(momentum),
            take = static_cast<T>(1 - dampening), decay = static_cast<T>(weight_decay);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T slope = g[i] + p[i] * decay;
      const T speed = v[i] * keep + slope * take;
      v_to[i] = speed;
      to[i] = p[i] - (nesterov ? slope + speed * keep : speed) * rate;
    }
  });
  return TENON_OK;
}
TENON_BOX_momentum_update(momentum_update_boxed, momentum_update);

// Adam (Kingma and Ba, 2015). With `decoupled`, weight decay acts on the parameter itself (AdamW,
// Loshchilov and Hutter, 2019); otherwise it is added to the gradient.
template <bool kDecoupled>
tenon_status adam(tenon_ctx* ctx, const tenon_tensor* param, const tenon_tensor* grad,
                  const tenon_tensor* m, const tenon_tensor* v, int64_t step, double lr,
                  double beta1, double beta2, double eps, double weight_decay,
                  tenon_tensor* new_param, tenon_tensor* new_m, tenon_tensor* new_v,
                  tenon_err* err) {
  if (is_low_precision(param->dtype))
    return run_as_float32(adam<kDecoupled>, ctx, err, param, grad, m, v, step, lr, beta1, beta2,
                          eps, weight_decay, new_param, new_m, new_v);
  if (step < 1)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[adam_update] expected step of at least 1, got %lld",
                       static_cast<long long>(step));
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  update(param, 12, [&]<class T>(Type<T>, int64_t begin, int64_t end) {
    const T *p = data_of<T>(param), *g = data_of<T>(grad), *m_from = data_of<T>(m),
            *v_from = data_of<T>(v);
    T *to = data_of<T>(new_param), *m_to = data_of<T>(new_m), *v_to = data_of<T>(new_v);
    const T b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2),
            one_minus_beta1 = static_cast<T>(1 - beta1),
            one_minus_beta2 = static_cast<T>(1 - beta2), rate = static_cast<T>(lr / correction1),
            scale = static_cast<T>(1 / std::sqrt(correction2)), small = static_cast<T>(eps),
            decay = static_cast<T>(kDecoupled ? 0.0 : weight_decay),
            shrink = static_cast<T>(kDecoupled ? 1 - lr * weight_decay : 1.0);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T slope = g[i] + p[i] * decay;
      const T mean = m_from[i] * b1 + slope * one_minus_beta1;
      const T square = v_from[i] * b2 + slope * slope * one_minus_beta2;
      m_to[i] = mean;
      v_to[i] = square;
      to[i] = p[i] * shrink - rate * mean / (std::sqrt(square) * scale + small);
    }
  });
  return TENON_OK;
}
constexpr auto& adam_update = adam<false>;
constexpr auto& adamw_update = adam<true>;
TENON_BOX_adam_update(adam_update_boxed, adam_update);
TENON_BOX_adamw_update(adamw_update_boxed, adamw_update);

tenon_status rmsprop_update(tenon_ctx* ctx, const tenon_tensor* param, const tenon_tensor* grad,
                            const tenon_tensor* v, double lr, double alpha, double eps,
                            double weight_decay, tenon_tensor* new_param, tenon_tensor* new_v,
                            tenon_err* err) {
  if (is_low_precision(param->dtype))
    return run_as_float32(rmsprop_update, ctx, err, param, grad, v, lr, alpha, eps, weight_decay,
                          new_param, new_v);
  update(param, 10, [&]<class T>(Type<T>, int64_t begin, int64_t end) {
    const T *p = data_of<T>(param), *g = data_of<T>(grad), *v_from = data_of<T>(v);
    T *to = data_of<T>(new_param), *v_to = data_of<T>(new_v);
    const T rate = static_cast<T>(lr), keep = static_cast<T>(alpha),
            take = static_cast<T>(1 - alpha), small = static_cast<T>(eps),
            decay = static_cast<T>(weight_decay);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T slope = g[i] + p[i] * decay;
      const T square = v_from[i] * keep + slope * slope * take;
      v_to[i] = square;
      to[i] = p[i] - rate * slope / (std::sqrt(square) + small);
    }
  });
  return TENON_OK;
}
TENON_BOX_rmsprop_update(rmsprop_update_boxed, rmsprop_update);

tenon_status adagrad_update(tenon_ctx* ctx, const tenon_tensor* param, const tenon_tensor* grad,
                            const tenon_tensor* v, double lr, double eps, double weight_decay,
                            tenon_tensor* new_param, tenon_tensor* new_v, tenon_err* err) {
  if (is_low_precision(param->dtype))
    return run_as_float32(adagrad_update, ctx, err, param, grad, v, lr, eps, weight_decay,
                          new_param, new_v);
  update(param, 10, [&]<class T>(Type<T>, int64_t begin, int64_t end) {
    const T *p = data_of<T>(param), *g = data_of<T>(grad), *v_from = data_of<T>(v);
    T *to = data_of<T>(new_param), *v_to = data_of<T>(new_v);
    const T rate = static_cast<T>(lr), small = static_cast<T>(eps),
            decay = static_cast<T>(weight_decay);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const T slope = g[i] + p[i] * decay;
      const T square = v_from[i] + slope * slope;
      v_to[i] = square;
      to[i] = p[i] - rate * slope / (std::sqrt(square) + small);
    }
  });
  return TENON_OK;
}
TENON_BOX_adagrad_update(adagrad_update_boxed, adagrad_update);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_sgd_update(sgd_update, nullptr, kFloats, 0, 0),
    TENON_KERNEL_momentum_update(momentum_update, nullptr, kFloats, 0, 0),
    TENON_KERNEL_adam_update(adam_update, nullptr, kFloats, 0, 0),
    TENON_KERNEL_adamw_update(adamw_update, nullptr, kFloats, 0, 0),
    TENON_KERNEL_rmsprop_update(rmsprop_update, nullptr, kFloats, 0, 0),
    TENON_KERNEL_adagrad_update(adagrad_update, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList optimizer_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
