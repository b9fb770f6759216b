// SPDX-License-Identifier: Apache-2.0
// The host's side of attention_grad.cu. What the kernels do not take is left to the decomposition,
// and so are masks: a row of huge numbers has lost its sum in the logarithm that the forward pass leaves.
#include <tenon/unbox.h>

#include <new>

#include "kernels/attention.hpp"
#include "kernels/attention_operands.hpp"

namespace gpu::kernels {

namespace text {
extern const char attention_grad[];
}  // namespace text

namespace {

// The arguments of attention_grad in order.
enum { kGradOut, kQuery, kKey, kValue, kMask, kOut, kLogsumexp, kCausal, kScale };

std::optional<AttentionOperands> describe_grad(const tenon_value* args, Arrives arrives) {
  const auto tensor = [&](int i) { return tenon_arg_tensor(&args[i]); };
  const std::array<const tenon_tensor*, 5> tensors = {tensor(kQuery), tensor(kKey), tensor(kValue),
                                                      tensor(kGradOut), tensor(kOut)};
  const tenon_tensor* logsumexp = tensor(kLogsumexp);
  if (tensor(kMask) || !logsumexp) return std::nullopt;
  const bool is_dense =
      arrives == Arrives::kContiguous || (logsumexp->flags & TENON_TENSOR_CONTIGUOUS);
  if (!is_dense || logsumexp->dtype != TENON_DTYPE_F32) return std::nullopt;
  return attention_operands(tensors, nullptr, arrives, tenon_arg_bool(&args[kCausal]),
                            tenon_arg_float(&args[kScale]));
}

struct Kernels {
  tenon_kernel delta, query, keys;
  explicit operator bool() const { return delta && query && keys; }
};

Kernels kernels_of(tenon_device device, const AttentionOperands& operands) {
  constexpr int kVariants = 1 << 12;  // those of attention.cpp come before
  const auto kernel = [&](const char* name) {
    return programs_of(device).kernel(kVariants + operands.variant(), name, [&] {
      // As many rows as registers allow without spilling.
      return std::string("#define TILE ") + (operands.features == 64 ? "32\n" : "16\n") +
             operands.source() + text::attention_grad;
    });
  };
  return {kernel("tenon_attention_grad_delta"), kernel("tenon_attention_grad_query"),
          kernel("tenon_attention_grad_keys")};
}

template <Arrives arrives>
int32_t can_run_grad(const tenon_value* args, uint32_t) try {
  const tenon_device device = device_with_tensor_cores(tenon_arg_tensor(&args[kQuery]));
  if (!device) return 0;
  const std::optional<AttentionOperands> operands = describe_grad(args, arrives);
  return operands && kernels_of(device, *operands);
} catch (const std::bad_alloc&) {
  return 0;
}

tenon_status run_grad(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) try {
  const tenon_device device = host->ctx_device(ctx);
  const std::optional<AttentionOperands> operands = describe_grad(args, Arrives::kStrided);
  const Kernels kernels = operands ? kernels_of(device, *operands) : Kernels{};
  if (!kernels)
    return fail(err, TENON_UNSUPPORTED,
                "attention_grad: expected operands that the kernels for tensor cores take");
  const auto data = [&](int i) { return tenon_arg_tensor(&args[i])->data; };
  const auto result = [&](int i) { return tenon_out_tensor(&outs[i])->data; };
  const auto launch = [&](tenon_kernel kernel, const Arguments& arguments,
                          const std::array<uint32_t, 3>& blocks) {
    return arguments.launch(device, kernel, blocks, {kAttentionThreads, 1, 1},
                            host->ctx_stream(ctx), err);
  };
  const auto& strides = operands->strides;  // of query, key, value, grad_out and out

  void* delta = nullptr;  // of every row
  const int64_t count = operands->matrices * operands->rows;
  GPU_TRY(host->scratch(ctx, static_cast<uint64_t>(count) * sizeof(float), &delta, err));
  Arguments of_delta;
  for (const void* memory : {data(kGradOut), data(kOut), delta}) of_delta.buffer(memory);
  of_delta.value(strides[3]);
  of_delta.value(strides[4]);
  of_delta.value(operands->counts);
  of_delta.value(operands->rows);
  const int64_t rows_of_block = kAttentionThreads * 8 / operands->features;
  GPU_TRY(launch(kernels.delta, of_delta, operands->blocks(operands->rows, rows_of_block)));

  const auto arguments = [&](std::span<void* const> results) {
    Arguments all;
    for (int i : {kQuery, kKey, kValue, kGradOut, kLogsumexp}) all.buffer(data(i));
    all.buffer(delta);
    for (void* memory : results) all.buffer(memory);
    for (size_t i = 0; i < 4; ++i) all.value(strides[i]);
    all.value(operands->counts);
    all.value(operands->rows);
    all.value(operands->keys);
    all.value(operands->scale);
    return all;
  };
  const std::array<void*, 1> of_query = {result(0)};
  const std::array<void*, 2> of_keys = {result(1), result(2)};
  GPU_TRY(launch(kernels.query, arguments(of_query), operands->blocks(operands->rows)));
  return launch(kernels.keys, arguments(of_keys), operands->blocks(operands->keys));
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// Operands whose strides the kernels cannot read, such as the expanded gradient of a sum, are made contiguous.
constexpr tenon_kernel_def kGradKernels[] = {
    attention_kernel_def("tenon::attention_grad", TENON_KERNEL_STRIDED, kAttentionScore, run_grad,
                         can_run_grad<Arrives::kStrided>),
    attention_kernel_def("tenon::attention_grad", 0, kAttentionScore - 1, run_grad,
                         can_run_grad<Arrives::kContiguous>)};

}  // namespace

std::span<const tenon_kernel_def> attention_grad_kernels() { return kGradKernels; }

}  // namespace gpu::kernels
