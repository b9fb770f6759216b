// SPDX-License-Identifier: Apache-2.0
// ldl_factor of symmetric matrices (sytrf). The libraries have none for Hermitian ones, which for real numbers are the same.
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

tenon_status ldl_factor(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *ld = tenon_out_tensor(&outs[0]),
                     *rows = tenon_out_tensor(&outs[1]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "ldl_factor", x->dtype, err);
  const Batch from(x);
  const int64_t count = from.count();
  GPU_TRY(call.expect_int({from.rows(), count}));
  const int n = static_cast<int>(from.rows());
  void *memory = nullptr, *work = nullptr;
  int size = 0, *pivots = nullptr, *infos = nullptr;
  GPU_TRY(call.elements(x->numel, &memory));
  const Packed packed = by_columns(memory, n, n);
  GPU_TRY(call.pack(from, packed));
  GPU_TRY(call.scratch(count * n, &pivots));
  GPU_TRY(call.make_infos(count, &infos));  // singular matrices have factors too
  GPU_TRY(call.workspace(
      [&](Handles& handles, int* wanted) {
        return call.routines().sytrf_size(handles.solver, n, packed.data, n, wanted);
      },
      &work, &size));
  GPU_TRY(call.queue_each(count, [&](Handles& handles, int64_t index) {
    return call.routines().sytrf(handles.solver, number::kLower, n, call.matrix(packed, index), n,
                                 pivots + index * n, work, size, infos + index);
  }));
  GPU_TRY(call.unpack(packed, Batch(ld), {.triangle = kLower}));
  return call.widen(pivots, static_cast<int64_t*>(rows->data), rows->numel, 0);
}

int32_t can_factor(const tenon_value* args, uint32_t count) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  return x && !(tenon_arg_bool(&args[1]) && is_complex(x->dtype)) && can_run(args, count);
}

constexpr tenon_kernel_def kLdlKernels[] = {
    definition("tenon::ldl_factor", boxed<ldl_factor>, kDtypes, can_factor)};

}  // namespace

std::span<const tenon_kernel_def> ldl_kernels() { return kLdlKernels; }

}  // namespace gpu::solver
