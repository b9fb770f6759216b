// SPDX-License-Identifier: Apache-2.0
// gru_recurrence and its gradient. Loop order as in lstm.cpp: threads divide the batch, and each runs all steps of its part.
// What the step before adds is computed aside, as the reset gate is applied to a third of it alone.
#include "kernel.hpp"
#include "recurrent/panels.hpp"
#include "simd/vector_math.hpp"

#include <tenon/signatures/recurrent.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

struct Sizes {
  int64_t steps, batch, features;
  Sizes(const tenon_tensor* out)
      : steps(out->shape[0]), batch(out->shape[1]), features(out->shape[2]) {}
  int64_t sums() const { return 3 * features; }
  int64_t gates() const { return 4 * features; }
};

// The forward step of one item: `x` and `before` are what the input and the state `h` add.
template <class T>
void activate(const T* x, const T* before, const T* h, T* gates, T* out, int64_t n) {
  for (int64_t j = 0; j < 2 * n; ++j) gates[j] = math::sigmoid(x[j] + before[j]);
  const T *reset = gates, *update = gates + n;
  T *fresh = gates + 2 * n, *added = gates + 3 * n;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    added[j] = before[2 * n + j];
    fresh[j] = math::tanh(x[2 * n + j] + reset[j] * added[j]);
    out[j] = fresh[j] + update[j] * (h[j] - fresh[j]);
  }
}

// Inputs of the backward step of one item: gates and state of the forward pass, and gradients of the outputs.
template <class T>
struct StepOfItem {
  const T *gates, *before;
  const T *grad_out, *grad_gates;
};

// Computes dx and the gradient of what the state before added, dsums; dh becomes the part of its gradient that does not go
// through the weight.
template <class T>
void step_back(const StepOfItem<T>& s, T* dh, T* dx, T* dsums, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T reset = s.gates[j], update = s.gates[n + j], fresh = s.gates[2 * n + j],
            added = s.gates[3 * n + j];
    const T from_out = dh[j] + s.grad_out[j], kept = from_out * update;
    const T dfresh = (from_out - kept + s.grad_gates[2 * n + j]) * (1 - fresh * fresh);
    const T dupdate =
        (from_out * (s.before[j] - fresh) + s.grad_gates[n + j]) * update * (1 - update);
    const T dreset = (dfresh * added + s.grad_gates[j]) * reset * (1 - reset);
    dx[j] = dreset;
    dx[n + j] = dupdate;
    dx[2 * n + j] = dfresh;
    dsums[j] = dreset;
    dsums[n + j] = dupdate;
    dsums[2 * n + j] = dfresh * reset + s.grad_gates[3 * n + j];
    dh[j] = kept;
  }
}

template <class T>
tenon_status scratch_of(tenon_ctx* ctx, int64_t count, T** out, tenon_err* err) {
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(T);
  const tenon_status status = host->scratch(ctx, bytes, &memory, err);
  *out = static_cast<T*>(memory);
  return status;
}

tenon_status gru_recurrence(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                            const tenon_tensor* bias, const tenon_tensor* h, tenon_tensor* out,
                            tenon_tensor* gates, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(gru_recurrence, ctx, err, x, weight, bias, h, out, gates);
  const Sizes size(out);
  if (out->numel == 0) return TENON_OK;
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    const int64_t n = size.features, wide = size.sums(), all = size.gates();
    Panels<T> panels;
    tenon_status status =
        lay_out<T>(ctx, {data_of<T>(weight), 1, n}, n, wide, &panels, err);  // transposed
    if (status != TENON_OK) return status;
    T* added;
    status = scratch_of(ctx, size.batch * wide, &added, err);
    if (status != TENON_OK) return status;
    for_parts_of_batch(size.batch, x->numel * n / 8, [&](int64_t first, int64_t count) {
      const T* before = data_of<T>(h) + first * n;
      T* sums = added + first * wide;
      for (int64_t t = 0; t < size.steps; ++t) {
        const int64_t at = t * size.batch + first;
        const T* given = data_of<T>(x) + at * wide;
        T *gate = data_of<T>(gates) + at * all, *state = data_of<T>(out) + at * n;
        panels.multiply(count, before, sums, {data_of<T>(bias), 0});
        for (int64_t i = 0; i < count; ++i) {
          activate(given + i * wide, sums + i * wide, before + i * n, gate + i * all, state + i * n,
                   n);
        }
        before = state;
      }
    });
    return TENON_OK;
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_gru_recurrence(gru_recurrence_boxed, gru_recurrence);

tenon_status gru_recurrence_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                                 const tenon_tensor* grad_gates, const tenon_tensor* weight,
                                 const tenon_tensor* h, const tenon_tensor* out,
                                 const tenon_tensor* gates, tenon_tensor* dx, tenon_tensor* dweight,
                                 tenon_tensor* dbias, tenon_tensor* dh, tenon_err* err) {
  const Sizes size(out);
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    const int64_t n = size.features, wide = size.sums(), all = size.gates();
    std::fill_n(data_of<T>(dh), dh->numel, T(0));
    Panels<T> panels;
    tenon_status status = lay_out<T>(ctx, {data_of<T>(weight), n, 1}, wide, n, &panels, err);
    if (status != TENON_OK) return status;
    T* dsums;
    status = scratch_of(ctx, dx->numel, &dsums, err);
    if (status != TENON_OK) return status;
    for_parts_of_batch(size.batch, gates->numel * n / 8, [&](int64_t first, int64_t count) {
      T* state = data_of<T>(dh) + first * n;
      for (int64_t t = size.steps; t-- > 0;) {
        const int64_t at = t * size.batch + first;
        const T* before =
            t > 0 ? data_of<T>(out) + (at - size.batch) * n : data_of<T>(h) + first * n;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t item = (at + i) * n, gate = (at + i) * all, sum = (at + i) * wide;
          const StepOfItem<T> step = {data_of<T>(gates) + gate, before + i * n,
                                      data_of<T>(grad_out) + item, data_of<T>(grad_gates) + gate};
          step_back(step, state + i * n, data_of<T>(dx) + sum, dsums + sum, n);
        }
        panels.multiply(count, dsums + at * wide, state, {state, n});
      }
    });
    T* sums = data_of<T>(dbias);
    std::fill_n(sums, wide, T(0));
    for (int64_t item = 0; item < size.steps * size.batch; ++item)
      for (int64_t j = 0; j < wide; ++j) sums[j] += dsums[item * wide + j];
    // dweight: every step's dsums against the state before it, `h` and then the results but the last.
    const int64_t rest = std::max<int64_t>(size.steps - 1, 0) * size.batch;
    status = gemm<T>(ctx, wide, n, size.steps > 0 ? size.batch : 0, {dsums, 1, wide},
                     {data_of<T>(h), n, 1}, data_of<T>(dweight), n, false, {}, err);
    if (status != TENON_OK || rest == 0) return status;
    return gemm<T>(ctx, wide, n, rest, {dsums + size.batch * wide, 1, wide},
                   {data_of<T>(out), n, 1}, data_of<T>(dweight), n, true, {}, err);
  };
  return out->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_gru_recurrence_grad(gru_recurrence_grad_boxed, gru_recurrence_grad);

// For low precision dtypes the gradient is decomposed, as that of lstm_recurrence.
constexpr uint64_t kWide = dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_gru_recurrence(gru_recurrence, nullptr, kFloats, 0, 0),
    TENON_KERNEL_gru_recurrence_grad(gru_recurrence_grad, nullptr, kWide, 0, 0)};

}  // namespace

KernelList gru_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
