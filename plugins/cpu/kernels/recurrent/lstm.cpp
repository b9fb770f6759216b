// SPDX-License-Identifier: Apache-2.0
// lstm_recurrence and its gradient. Loop order: threads divide the batch, and each runs all steps
// of its part, so that no synchronisation is needed between steps. The backward pass runs the steps
// in reverse and computes dweight by one GEMM over all steps at the end.
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
  int64_t gates() const { return 4 * features; }
};

// Inputs of the backward step of one item: activations of the forward pass and gradients of the
// outputs.
template <class T>
struct StepOfItem {
  const T *gates, *cells, *c_before;
  const T *grad_out, *grad_cells, *grad_gates;
};

// Applies the activations to the gates of one item, in place, and computes the new cell state from
// `c`.
template <class T>
void activate(T* gates, const T* c, T* cells, T* out, int64_t n) {
  T *input = gates, *forget = gates + n, *cell = gates + 2 * n, *output = gates + 3 * n;
  for (int64_t j = 0; j < 2 * n; ++j) gates[j] = math::sigmoid(gates[j]);
  for (int64_t j = 0; j < n; ++j) cell[j] = math::tanh(cell[j]);
  for (int64_t j = 0; j < n; ++j) output[j] = math::sigmoid(output[j]);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    cells[j] = forget[j] * c[j] + input[j] * cell[j];
    out[j] = output[j] * math::tanh(cells[j]);
  }
}

// Computes dx from the gradients of the state; dc becomes the gradient of the cell state of the
// step before.
template <class T>
void step_back(const StepOfItem<T>& s, const T* dh, T* dc, T* dx, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T input = s.gates[j], forget = s.gates[n + j], cell = s.gates[2 * n + j],
            output = s.gates[3 * n + j];
    const T shown = math::tanh(s.cells[j]);
    const T from_out = dh[j] + s.grad_out[j];
    const T from_cell = dc[j] + s.grad_cells[j] + from_out * output * (1 - shown * shown);
    dx[j] = (from_cell * cell + s.grad_gates[j]) * input * (1 - input);
    dx[n + j] = (from_cell * s.c_before[j] + s.grad_gates[n + j]) * forget * (1 - forget);
    dx[2 * n + j] = (from_cell * input + s.grad_gates[2 * n + j]) * (1 - cell * cell);
    dx[3 * n + j] = (from_out * shown + s.grad_gates[3 * n + j]) * output * (1 - output);
    dc[j] = from_cell * forget;
  }
}

tenon_status lstm_recurrence(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                             const tenon_tensor* h, const tenon_tensor* c, tenon_tensor* out,
                             tenon_tensor* cells, tenon_tensor* gates, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(lstm_recurrence, ctx, err, x, weight, h, c, out, cells, gates);
  }
  const Sizes size(out);
  if (out->numel == 0) return TENON_OK;
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    const int64_t n = size.features, wide = size.gates();
    Panels<T> panels;
    const tenon_status status =
        lay_out<T>(ctx, {data_of<T>(weight), 1, n}, n, wide, &panels, err);  // transposed
    if (status != TENON_OK) return status;
    for_parts_of_batch(size.batch, x->numel * n / 8, [&](int64_t first, int64_t count) {
      const T *h_before = data_of<T>(h) + first * n, *c_before = data_of<T>(c) + first * n;
      for (int64_t t = 0; t < size.steps; ++t) {
        const int64_t at = t * size.batch + first;
        T *gate = data_of<T>(gates) + at * wide, *cell = data_of<T>(cells) + at * n;
        T* state = data_of<T>(out) + at * n;
        panels.multiply(count, h_before, gate, {data_of<T>(x) + at * wide, wide});
        for (int64_t i = 0; i < count; ++i) {
          activate(gate + i * wide, c_before + i * n, cell + i * n, state + i * n, n);
        }
        h_before = state;
        c_before = cell;
      }
    });
    return TENON_OK;
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_lstm_recurrence(lstm_recurrence_boxed, lstm_recurrence);

tenon_status lstm_recurrence_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                                  const tenon_tensor* grad_cells, const tenon_tensor* grad_gates,
                                  const tenon_tensor* weight, const tenon_tensor* h,
                                  const tenon_tensor* c, const tenon_tensor* out,
                                  const tenon_tensor* cells, const tenon_tensor* gates,
                                  tenon_tensor* dx, tenon_tensor* dweight, tenon_tensor* dh,
                                  tenon_tensor* dc, tenon_err* err) {
  const Sizes size(out);
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    const int64_t n = size.features, wide = size.gates();
    std::fill_n(data_of<T>(dh), dh->numel, T(0));
    std::fill_n(data_of<T>(dc), dc->numel, T(0));
    Panels<T> panels;
    const tenon_status status = lay_out<T>(ctx, {data_of<T>(weight), n, 1}, wide, n, &panels, err);
    if (status != TENON_OK) return status;
    for_parts_of_batch(size.batch, gates->numel * n / 8, [&](int64_t first, int64_t count) {
      T *state = data_of<T>(dh) + first * n, *memory = data_of<T>(dc) + first * n;
      for (int64_t t = size.steps; t-- > 0;) {
        const int64_t at = t * size.batch + first;
        T* sums = data_of<T>(dx) + at * wide;
        const T* before =
            t > 0 ? data_of<T>(cells) + (at - size.batch) * n : data_of<T>(c) + first * n;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t item = (at + i) * n, gate = (at + i) * wide;
          const StepOfItem<T> step = {data_of<T>(gates) + gate,
                                      data_of<T>(cells) + item,
                                      before + i * n,
                                      data_of<T>(grad_out) + item,
                                      data_of<T>(grad_cells) + item,
                                      data_of<T>(grad_gates) + gate};
          step_back(step, state + i * n, memory + i * n, sums + i * wide, n);
        }
        panels.multiply(count, sums, state, {});
      }
    });
    // dweight: every step's dx against the state before it, `h` and then the results but the last.
    const int64_t rest = std::max<int64_t>(size.steps - 1, 0) * size.batch;
    const T* sums = data_of<T>(dx);
    const tenon_status done =
        gemm<T>(ctx, wide, n, size.steps > 0 ? size.batch : 0, {sums, 1, wide},
                {data_of<T>(h), n, 1}, data_of<T>(dweight), n, false, {}, err);
    if (done != TENON_OK || rest == 0) return done;
    return gemm<T>(ctx, wide, n, rest, {sums + size.batch * wide, 1, wide}, {data_of<T>(out), n, 1},
                   data_of<T>(dweight), n, true, {}, err);
  };
  return out->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_lstm_recurrence_grad(lstm_recurrence_grad_boxed, lstm_recurrence_grad);

// The gradient has more tensors than Float32Call holds. For low precision dtypes the operator
// is decomposed.
constexpr uint64_t kInPlace = dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_lstm_recurrence(lstm_recurrence, nullptr, kFloats, 0, 0),
    TENON_KERNEL_lstm_recurrence_grad(lstm_recurrence_grad, nullptr, kInPlace, 0, 0)};

}  // namespace

KernelList lstm_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
