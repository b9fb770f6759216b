// SPDX-License-Identifier: Apache-2.0
// matmul and linear by cuBLASLt or hipBLASLt. What the library does not multiply is left to the kernels
// from source, and so is everything where the library is absent.
#include "matmul.hpp"

#include <tenon/unbox.h>

#include <new>

#include "blas_plan.hpp"
#include "device.hpp"
#include "library_call.hpp"

namespace gpu::blas {
namespace {

// Above the kernels for every device that compiles source.
constexpr int32_t kScore = 50;

struct Operands {
  const tenon_tensor *x, *y, *bias;
};

template <bool IsLinear>
Operands operands_of(const tenon_value* args) {
  return {tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1]),
          IsLinear ? tenon_arg_tensor(&args[2]) : nullptr};
}

template <bool IsLinear>
std::optional<BatchedGemm> describe_call(const Operands& operands, const tenon_tensor* out) {
  return describe(operands.x, operands.y, operands.bias, IsLinear, out);
}

std::shared_ptr<const Plan> find_plan(tenon_device device,
                                      const std::optional<BatchedGemm>& product) {
  if (!product) return nullptr;
  Current current(device);
  Plans* plans = device->library_state<Plans>(kBlasLibrary,
                                              [] { return std::make_unique<Plans>(*library()); });
  return plans->find(product->gemm);
}

template <bool IsLinear>
int32_t can_run(const tenon_value* args, uint32_t) try {
  const Operands operands = operands_of<IsLinear>(args);
  if (!library() || !operands.x) return 0;
  const tenon_device device = open_device(TENON_DEVICE_INDEX(operands.x->device));
  return device && find_plan(device, describe_call<IsLinear>(operands, nullptr)) != nullptr;
} catch (const std::bad_alloc&) {
  return 0;
}

template <bool IsLinear>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  constexpr const char* kName = IsLinear ? "linear" : "matmul";
  const tenon_device device = host->ctx_device(ctx);
  const Operands operands = operands_of<IsLinear>(args);
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (!library()) return fail(err, TENON_UNAVAILABLE, "%s: %s", kName, library_problem());
  const std::optional<BatchedGemm> product = describe_call<IsLinear>(operands, out);
  const std::shared_ptr<const Plan> plan = find_plan(device, product);
  if (!plan)
    return fail(
        err, TENON_UNSUPPORTED,
        "%s: expected a result whose address %s can write to, got %p; pass a tensor of its own "
        "as out",
        kName, vendor::kBlas, out->data);
  void* workspace = nullptr;
  if (plan->workspace_bytes())
    GPU_TRY(host->scratch(ctx, plan->workspace_bytes(), &workspace, err));
  const int64_t bytes = operands.x->dl_dtype.bits / 8;
  const auto at = [&](const tenon_tensor* tensor, int64_t offset) {
    return static_cast<char*>(tensor->data) + offset * bytes;
  };
  const auto queue = [&](Stream stream) {
    Status status = 0;
    product->each([&](int64_t x, int64_t y, int64_t to) {
      if (status) return;
      status =
          plan->run(at(operands.x, x), at(operands.y, y),
                    operands.bias ? operands.bias->data : nullptr, at(out, to), workspace, stream);
    });
    return status;
  };
  const auto failed = [&](Status status) {
    return fail(err, TENON_INTERNAL, "%s: %s returned status %d", kName, vendor::kBlas, status);
  };
  return queue_library_call(ctx, device, kName, queue, failed, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

template <bool IsLinear>
constexpr tenon_kernel_def definition(const char* op) {
  constexpr uint64_t kDtypes = uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64 |
                               uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16 |
                               uint64_t{1} << TENON_DTYPE_C64 | uint64_t{1} << TENON_DTYPE_C128;
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = TENON_KERNEL_STRIDED,
          .op = op,
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = kDtypes,
          .score = kScore,
          .reserved = 0,
          .boxed = run<IsLinear>,
          .typed = nullptr,
          .can_run = can_run<IsLinear>};
}

constexpr tenon_kernel_def kKernels[] = {definition<false>("tenon::matmul"),
                                         definition<true>("tenon::linear")};

}  // namespace

std::span<const tenon_kernel_def> matmul_kernels() { return kKernels; }

const tenon_kernel_library_api kKernelLibrary = {.struct_size = sizeof(tenon_kernel_library_api),
                                                 .version = TENON_KERNEL_LIBRARY_VERSION,
                                                 .name = library_name,
                                                 .problem = library_problem};

}  // namespace gpu::blas
