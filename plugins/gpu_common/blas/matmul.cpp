// SPDX-License-Identifier: Apache-2.0
// matmul and linear by cuBLASLt or hipBLASLt. What the library does not multiply is left to the kernels
// from source, and so is everything where the library is absent.
#include "blas/matmul.hpp"

#include <tenon/unbox.h>

#include <new>

#include "blas/blas_plan.hpp"
#include "libraries/algorithm_ranks.hpp"
#include "libraries/library_call.hpp"
#include "runtime/device.hpp"

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

// Where the product is written: into the result, or, where the library lists no algorithm for the result's address,
// into memory of the call, from where it is copied. A kernel is chosen before it sees the result (`can_run`), so that
// an address must not decide whether the call works.
struct Destination {
  std::optional<BatchedGemm> product;
  std::shared_ptr<const Plan> plan;
  void* data = nullptr;
};

uint64_t bytes_of(const tenon_tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel * (tensor.dl_dtype.bits / 8));
}

template <bool IsLinear>
tenon_status find_destination(const Operands& operands, const tenon_tensor* out, tenon_ctx* ctx,
                              Destination* to, tenon_err* err) {
  const tenon_device device = host->ctx_device(ctx);
  const auto find = [&](const tenon_tensor* written) {
    to->product = describe_call<IsLinear>(operands, written);
    to->plan = find_plan(device, to->product);
    return to->plan != nullptr;
  };
  to->data = out->data;
  if (find(out)) return TENON_OK;
  if (find(nullptr)) return host->scratch(ctx, bytes_of(*out), &to->data, err);
  return fail(err, TENON_UNSUPPORTED, "%s: %s lists no algorithm for it; it had one before",
              IsLinear ? "linear" : "matmul", vendor::kBlas);
}

template <bool IsLinear>
tenon_status multiply(const Operands& operands, size_t rank, tenon_ctx* ctx,
                      const tenon_tensor* out, tenon_err* err) {
  constexpr const char* kName = IsLinear ? "linear" : "matmul";
  const tenon_device device = host->ctx_device(ctx);
  Destination to;
  GPU_TRY(find_destination<IsLinear>(operands, out, ctx, &to, err));
  const HeuristicResult* algorithm = to.plan->algorithm(rank, device);
  if (!algorithm)
    return fail(err, TENON_UNSUPPORTED, "%s: %s lists no algorithm %zu for it", kName,
                vendor::kBlas, rank);
  void* workspace = nullptr;
  if (algorithm->workspace_bytes)
    GPU_TRY(host->scratch(ctx, algorithm->workspace_bytes, &workspace, err));
  const int64_t bytes = operands.x->dl_dtype.bits / 8;
  const auto at = [&](void* data, int64_t offset) {
    return static_cast<char*>(data) + offset * bytes;
  };
  Error copied = error::kSuccess;
  const auto queue = [&](Stream stream) {
    Status status = 0;
    to.product->each([&](int64_t x, int64_t y, int64_t offset) {
      if (status) return;
      status = to.plan->run(*algorithm, at(operands.x->data, x), at(operands.y->data, y),
                            operands.bias ? operands.bias->data : nullptr, at(to.data, offset),
                            workspace, stream);
    });
    if (!status && to.data != out->data)
      copied = driver.copy_on_device(out->data, to.data, bytes_of(*out), stream);
    return status;
  };
  const auto failed = [&](Status status) {
    return fail(err, rank == 0 ? TENON_INTERNAL : TENON_UNSUPPORTED, "%s: %s returned status %d",
                kName, vendor::kBlas, status);
  };
  GPU_TRY(queue_library_call(ctx, device, kName, queue, failed, err));
  return copied ? fail_device(device, nullptr, copied, err, "%s: copying the result", kName)
                : TENON_OK;
}

template <bool IsLinear, size_t Rank>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  if (!library())
    return fail(err, TENON_UNAVAILABLE, "%s: %s", IsLinear ? "linear" : "matmul",
                library_problem());
  return multiply<IsLinear>(operands_of<IsLinear>(args), Rank, ctx, tenon_out_tensor(&outs[0]),
                            err);
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
