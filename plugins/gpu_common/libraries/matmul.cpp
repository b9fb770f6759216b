// SPDX-License-Identifier: Apache-2.0
// matmul and linear by cuBLASLt or hipBLASLt. What the library does not multiply is left to the kernels
// from source, and so is everything where the library is absent.
#include "matmul.hpp"

#include <tenon/unbox.h>

#include <new>

#include "algorithm_ranks.hpp"
#include "blas_plan.hpp"
#include "device.hpp"
#include "library_call.hpp"

namespace gpu::blas {
namespace {

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

template <bool IsLinear, size_t Rank>
int32_t can_run(const tenon_value* args, uint32_t) try {
  const Operands operands = operands_of<IsLinear>(args);
  if (!library() || !operands.x) return 0;
  const tenon_device device = open_device(TENON_DEVICE_INDEX(operands.x->device));
  if (!device) return 0;
  const std::shared_ptr<const Plan> plan =
      find_plan(device, describe_call<IsLinear>(operands, nullptr));
  return plan && plan->algorithm(Rank, device);
} catch (const std::bad_alloc&) {
  return 0;
}

tenon_status multiply(const char* name, const Operands& operands,
                      const std::optional<BatchedGemm>& product, size_t rank, tenon_ctx* ctx,
                      const tenon_tensor* out, tenon_err* err) {
  const tenon_device device = host->ctx_device(ctx);
  const std::shared_ptr<const Plan> plan = find_plan(device, product);
  if (!plan)
    return fail(
        err, TENON_UNSUPPORTED,
        "%s: expected a result whose address %s can write to, got %p; pass a tensor of its own "
        "as out",
        name, vendor::kBlas, out->data);
  const HeuristicResult* algorithm = plan->algorithm(rank, device);
  if (!algorithm)
    return fail(err, TENON_UNSUPPORTED, "%s: %s lists no algorithm %zu for it", name, vendor::kBlas,
                rank);
  void* workspace = nullptr;
  if (algorithm->workspace_bytes)
    GPU_TRY(host->scratch(ctx, algorithm->workspace_bytes, &workspace, err));
  const int64_t bytes = operands.x->dl_dtype.bits / 8;
  const auto at = [&](const tenon_tensor* tensor, int64_t offset) {
    return static_cast<char*>(tensor->data) + offset * bytes;
  };
  const auto queue = [&](Stream stream) {
    Status status = 0;
    product->each([&](int64_t x, int64_t y, int64_t to) {
      if (status) return;
      status =
          plan->run(*algorithm, at(operands.x, x), at(operands.y, y),
                    operands.bias ? operands.bias->data : nullptr, at(out, to), workspace, stream);
    });
    return status;
  };
  const auto failed = [&](Status status) {
    return fail(err, rank == 0 ? TENON_INTERNAL : TENON_UNSUPPORTED, "%s: %s returned status %d",
                name, vendor::kBlas, status);
  };
  return queue_library_call(ctx, device, name, queue, failed, err);
}

template <bool IsLinear, size_t Rank>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  constexpr const char* kName = IsLinear ? "linear" : "matmul";
  const Operands operands = operands_of<IsLinear>(args);
  const tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (!library()) return fail(err, TENON_UNAVAILABLE, "%s: %s", kName, library_problem());
  return multiply(kName, operands, describe_call<IsLinear>(operands, out), Rank, ctx, out, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

template <bool IsLinear>
constexpr auto kernels_of(const char* op) {
  constexpr uint64_t kDtypes = uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64 |
                               uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16 |
                               uint64_t{1} << TENON_DTYPE_C64 | uint64_t{1} << TENON_DTYPE_C128;
  return kernels_of_ranks<kMaxAlgorithms>([=]<size_t Rank>() {
    return tenon_kernel_def{.struct_size = sizeof(tenon_kernel_def),
                            .traits = TENON_KERNEL_STRIDED,
                            .op = op,
                            .device = nullptr,
                            .schema_hash = 0,
                            .dtype_mask = kDtypes,
                            .score = score_of_rank(Rank),
                            .reserved = 0,
                            .boxed = run<IsLinear, Rank>,
                            .typed = nullptr,
                            .can_run = can_run<IsLinear, Rank>};
  });
}

}  // namespace

std::vector<tenon_kernel_def> matmul_kernels() {
  std::vector<tenon_kernel_def> kernels;
  for (const auto& list : {kernels_of<false>("tenon::matmul"), kernels_of<true>("tenon::linear")})
    kernels.insert(kernels.end(), list.begin(), list.end());
  return kernels;
}

std::string describe_algorithm(bool is_linear, size_t rank, const tenon_value* args) {
  const Operands operands = is_linear ? operands_of<true>(args) : operands_of<false>(args);
  const tenon_device device = open_device(TENON_DEVICE_INDEX(operands.x->device));
  const std::optional<BatchedGemm> product =
      describe(operands.x, operands.y, operands.bias, is_linear, nullptr);
  const std::shared_ptr<const Plan> plan =
      library() && device ? find_plan(device, product) : nullptr;
  const HeuristicResult* algorithm = plan ? plan->algorithm(rank, device) : nullptr;
  if (!algorithm) return {};
  return "place " + std::to_string(rank + 1) + " in the list of " + vendor::kBlas +
         workspace_text(algorithm->workspace_bytes);
}

}  // namespace gpu::blas
