// SPDX-License-Identifier: Apache-2.0
// The host's side of attention.cu. What the kernel does not take (other dtypes and extents) is left
// to the decomposition into matrix products and softmax.
#include "kernels/attention.hpp"

#include <tenon/unbox.h>

#include <new>

#include "kernels/attention_operands.hpp"

namespace gpu::kernels {

namespace text {
extern const char attention[];
}  // namespace text

namespace {

std::optional<AttentionOperands> describe(const tenon_value* args, Arrives arrives) {
  const std::array<const tenon_tensor*, 3> tensors = {
      tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1]), tenon_arg_tensor(&args[2])};
  return attention_operands(tensors, tenon_arg_tensor(&args[3]), arrives, tenon_arg_bool(&args[4]),
                            tenon_arg_float(&args[5]));
}

tenon_kernel kernel_of(tenon_device device, const AttentionOperands& operands) {
  return programs_of(device).kernel(operands.variant(), "tenon_attention", [&] {
    // Two stages fit 48 KiB of shared memory, and a mask needs registers.
    const bool is_wide = operands.features == 64 && operands.mask == Mask::kNone;
    return std::string("#define KEYS ") + (is_wide ? "64\n" : "32\n") + operands.source() +
           text::attention;
  });
}

template <Arrives arrives>
int32_t can_run(const tenon_value* args, uint32_t) try {
  const tenon_device device = device_with_tensor_cores(tenon_arg_tensor(&args[0]));
  if (!device) return 0;
  const std::optional<AttentionOperands> operands = describe(args, arrives);
  return operands && kernel_of(device, *operands);
} catch (const std::bad_alloc&) {
  return 0;
}

tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  const tenon_device device = host->ctx_device(ctx);
  const std::optional<AttentionOperands> operands = describe(args, Arrives::kStrided);
  const tenon_kernel kernel = operands ? kernel_of(device, *operands) : nullptr;
  if (!kernel)
    return fail(err, TENON_UNSUPPORTED,
                "attention: expected operands that the kernel for tensor cores takes");
  Arguments arguments;
  for (int i = 0; i < 3; ++i) arguments.buffer(tenon_arg_tensor(&args[i])->data);
  for (int i = 0; i < 2; ++i) arguments.buffer(tenon_out_tensor(&outs[i])->data);
  for (size_t i = 0; i < 3; ++i) arguments.value(operands->strides[i]);
  arguments.value(operands->counts);
  arguments.value(operands->rows);
  arguments.value(operands->keys);
  arguments.value(operands->scale);
  if (operands->mask != Mask::kNone) {
    arguments.buffer(tenon_arg_tensor(&args[3])->data);
    arguments.value(operands->mask_strides);
  }
  return arguments.launch(device, kernel, operands->blocks(operands->rows),
                          {kAttentionThreads, 1, 1}, host->ctx_stream(ctx), err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// Operands whose strides the kernel cannot read are made contiguous.
constexpr tenon_kernel_def kKernels[] = {
    attention_kernel_def("tenon::attention", TENON_KERNEL_STRIDED, kAttentionScore, run,
                         can_run<Arrives::kStrided>),
    attention_kernel_def("tenon::attention", 0, kAttentionScore - 1, run,
                         can_run<Arrives::kContiguous>)};

}  // namespace

std::span<const tenon_kernel_def> attention_kernels() { return kKernels; }

}  // namespace gpu::kernels
