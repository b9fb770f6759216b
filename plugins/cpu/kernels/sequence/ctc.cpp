// SPDX-License-Identifier: Apache-2.0
// ctc_loss and its gradient: the forward and backward recursions over the states of a target, its
// labels with blanks between them, in the logarithmic domain. Threads divide the sequences.
#include "index/indices.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/sequence.h>

#include <cmath>
#include <limits>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

template <class T>
constexpr T kImpossible = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)).
template <class T>
T log_sum(T a, T b, T c) {
  const T most = std::max(a, std::max(b, c));
  if (most == kImpossible<T>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// One sequence of a batch.
template <class T>
struct Sequence {
  const T* log_probs;  // of its first step
  int64_t stride;      // from one step to the next
  int64_t steps, length, blank;
  const int64_t* labels;

  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t state) const { return state % 2 == 0 ? blank : labels[state / 2]; }
  T emitted(int64_t t, int64_t state) const { return log_probs[t * stride + label(state)]; }
  // May `state` follow the one two before it?
  bool skips(int64_t state) const {
    return state > 1 && label(state) != blank && label(state) != label(state - 2);
  }

  void begin(T* alpha) const {
    for (int64_t s = 0; s < states(); ++s) alpha[s] = s < 2 ? emitted(0, s) : kImpossible<T>;
  }
  void forward(int64_t t, const T* before, T* alpha) const {
    for (int64_t s = 0; s < states(); ++s) {
      const T one = s > 0 ? before[s - 1] : kImpossible<T>;
      const T two = skips(s) ? before[s - 2] : kImpossible<T>;
      alpha[s] = log_sum(before[s], one, two) + emitted(t, s);
    }
  }
  void end(T* beta) const {
    for (int64_t s = 0; s < states(); ++s) beta[s] = s >= states() - 2 ? T(0) : kImpossible<T>;
  }
  // `beta` without, and `after` with what its step emits.
  void backward(const T* after, T* beta) const {
    const int64_t n = states();
    for (int64_t s = 0; s < n; ++s) {
      const T one = s + 1 < n ? after[s + 1] : kImpossible<T>;
      const T two = s + 2 < n && skips(s + 2) ? after[s + 2] : kImpossible<T>;
      beta[s] = log_sum(after[s], one, two);
    }
  }
  T likelihood(const T* alpha) const {
    const int64_t n = states();
    return log_sum(alpha[n - 1], n > 1 ? alpha[n - 2] : kImpossible<T>, kImpossible<T>);
  }
};

struct Batch {
  int64_t steps, count, classes, longest;
  const int64_t *targets, *input_lengths, *target_lengths;
  int64_t blank;

  template <class T>
  Sequence<T> at(const T* log_probs, int64_t n) const {
    return {log_probs + n * classes, count * classes, input_lengths[n],
            target_lengths[n],       blank,           targets + n * longest};
  }
};

// The numbers of an integer tensor as int64.
tenon_status read_numbers(tenon_ctx* ctx, const tenon_tensor* from, const int64_t** out,
                          tenon_err* err) {
  void* memory;
  const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(from->numel, 1)) * sizeof(int64_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK)
    return status;
  auto* to = static_cast<int64_t*>(memory);
  with_index_type(from, [&]<class P>(const P* numbers) {
    for (int64_t i = 0; i < from->numel; ++i) to[i] = signed_index(numbers[i]);
  });
  *out = to;
  return TENON_OK;
}

tenon_status check_lengths(const char* name, const int64_t* lengths, int64_t count, int64_t most,
                           tenon_err* err) {
  for (int64_t n = 0; n < count; ++n) {
    if (lengths[n] < 0 || lengths[n] > most)
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "[ctc_loss] expected %s from 0 to %lld, got %lld", name,
                         static_cast<long long>(most), static_cast<long long>(lengths[n]));
  }
  return TENON_OK;
}

tenon_status read_batch(tenon_ctx* ctx, const tenon_tensor* log_probs, const tenon_tensor* targets,
                        const tenon_tensor* input_lengths, const tenon_tensor* target_lengths,
                        int64_t blank, Batch* batch, tenon_err* err) {
  batch->steps = log_probs->shape[0];
  batch->count = log_probs->shape[1];
  batch->classes = log_probs->shape[2];
  batch->longest = targets->shape[1];
  batch->blank = blank;
  const auto read = [&](const tenon_tensor* from, const int64_t** to) {
    return read_numbers(ctx, from, to, err);
  };
  tenon_status status = read(targets, &batch->targets);
  if (status == TENON_OK) status = read(input_lengths, &batch->input_lengths);
  if (status == TENON_OK) status = read(target_lengths, &batch->target_lengths);
  if (status == TENON_OK)
    status = check_lengths("input_lengths", batch->input_lengths, batch->count, batch->steps, err);
  if (status == TENON_OK)
    status =
        check_lengths("target_lengths", batch->target_lengths, batch->count, batch->longest, err);
  if (status != TENON_OK) return status;
  for (int64_t n = 0; n < batch->count; ++n) {
    for (int64_t i = 0; i < batch->target_lengths[n]; ++i) {
      const int64_t label = batch->targets[n * batch->longest + i];
      if (label < 0 || label >= batch->classes)
        return fail_format(
            err, TENON_OUT_OF_RANGE, "[ctc_loss] expected targets from 0 to %lld, got %lld",
            static_cast<long long>(batch->classes - 1), static_cast<long long>(label));
    }
  }
  return TENON_OK;
}

template <class T>
T loss_of(const Sequence<T>& sequence, T* rows) {
  const int64_t n = sequence.states();
  if (sequence.steps == 0) return sequence.length == 0 ? T(0) : -kImpossible<T>;
  sequence.begin(rows);
  for (int64_t t = 1; t < sequence.steps; ++t)
    sequence.forward(t, rows + (t + 1) % 2 * n, rows + t % 2 * n);
  return -sequence.likelihood(rows + (sequence.steps + 1) % 2 * n);
}

tenon_status ctc_loss(tenon_ctx* ctx, const tenon_tensor* log_probs, const tenon_tensor* targets,
                      const tenon_tensor* input_lengths, const tenon_tensor* target_lengths,
                      int64_t blank, int32_t zero_infinity, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(log_probs->dtype))
    return run_as_float32(ctc_loss, ctx, err, log_probs, targets, input_lengths, target_lengths,
                          blank, zero_infinity, out);
  Batch batch;
  const tenon_status status =
      read_batch(ctx, log_probs, targets, input_lengths, target_lengths, blank, &batch, err);
  if (status != TENON_OK) return status;
  const int64_t states = 2 * batch.longest + 1;
  const auto run = [&]<class T>(Type<T>) {
    return parallel_for_with_scratch(
        ctx, batch.count, 64 * batch.steps * states, 2 * states * static_cast<int64_t>(sizeof(T)),
        err, [&](int64_t n, void* memory) {
          const T loss = loss_of(batch.at(data_of<T>(log_probs), n), static_cast<T*>(memory));
          data_of<T>(out)[n] = zero_infinity && loss == -kImpossible<T> ? T(0) : loss;
        });
  };
  return log_probs->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_ctc_loss(ctc_loss_boxed, ctc_loss);

// Subtracts `grad` times the probability of each state after each step from the gradient of its
// label. `alphas` has a row of states for each step, and two more.
template <class T>
void add_grad(const Sequence<T>& sequence, T grad, T* alphas, T* out) {
  const int64_t n = sequence.states(), steps = sequence.steps;
  if (steps == 0) return;
  sequence.begin(alphas);
  for (int64_t t = 1; t < steps; ++t) sequence.forward(t, alphas + (t - 1) * n, alphas + t * n);
  const T likelihood = sequence.likelihood(alphas + (steps - 1) * n);
  if (likelihood == kImpossible<T>) return;
  T *beta = alphas + steps * n, *after = beta + n;
  sequence.end(beta);
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t s = 0; s < n; ++s) {
      out[t * sequence.stride + sequence.label(s)] -=
          grad * std::exp(alphas[t * n + s] + beta[s] - likelihood);
      after[s] = beta[s] + sequence.emitted(t, s);
    }
    sequence.backward(after, beta);
  }
}

tenon_status ctc_loss_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                           const tenon_tensor* log_probs, const tenon_tensor* targets,
                           const tenon_tensor* input_lengths, const tenon_tensor* target_lengths,
                           int64_t blank, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(log_probs->dtype))
    return run_as_float32(ctc_loss_grad, ctx, err, grad_out, log_probs, targets, input_lengths,
                          target_lengths, blank, out);
  Batch batch;
  const tenon_status status =
      read_batch(ctx, log_probs, targets, input_lengths, target_lengths, blank, &batch, err);
  if (status != TENON_OK) return status;
  const int64_t states = 2 * batch.longest + 1;
  const auto run = [&]<class T>(Type<T>) {
    std::fill_n(data_of<T>(out), out->numel, T(0));
    return parallel_for_with_scratch(ctx, batch.count, 128 * batch.steps * states,
                                     (batch.steps + 2) * states * static_cast<int64_t>(sizeof(T)),
                                     err, [&](int64_t n, void* memory) {
                                       add_grad(batch.at(data_of<T>(log_probs), n),
                                                data_of<T>(grad_out)[n], static_cast<T*>(memory),
                                                data_of<T>(out) + n * batch.classes);
                                     });
  };
  return log_probs->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_ctc_loss_grad(ctc_loss_grad_boxed, ctc_loss_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_ctc_loss(ctc_loss, nullptr, kFloats, 0, 0),
    TENON_KERNEL_ctc_loss_grad(ctc_loss_grad, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList ctc_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
