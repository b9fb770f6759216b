// SPDX-License-Identifier: Apache-2.0
// eigh and eigvalsh, by divide and conquer (syevd, heevd), or of batches of small matrices by Jacobi's method (syevjBatched).
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

// The library sees x.T, the conjugate of x: the same eigenvalues, and conjugate eigenvectors.
tenon_status decompose(const SolverCall& call, const Batch& from, bool upper, const tenon_tensor* w,
                       const tenon_tensor* vectors) {
  const int64_t count = from.count();
  GPU_TRY(call.expect_int({from.rows(), count}));
  const int n = static_cast<int>(from.rows());
  const int job = vectors ? number::kVectors : number::kValues,
            uplo = upper ? number::kLower : number::kUpper;
  void *memory = nullptr, *work = nullptr;
  int size = 0, *infos = nullptr, *faults = nullptr;
  GPU_TRY(call.elements(from.size() * count, &memory));
  const Packed packed = by_rows(memory, n, n);
  GPU_TRY(call.make_infos(count, &faults));
  GPU_TRY(call.pack(from, packed, {.triangle = upper ? kUpper : kLower, .faults = faults}));
  GPU_TRY(call.check_finite(faults, from));
  GPU_TRY(call.make_infos(count, &infos));
  if (count > 1 && n <= kMaxJacobiExtent) {
    const int batch = static_cast<int>(count);
    GPU_TRY(call.workspace(
        [&](Handles& handles, int* wanted) {
          return call.routines().syevj_batched_size(handles.solver, job, uplo, n, memory, n,
                                                    w->data, wanted, handles.syevj, batch);
        },
        &work, &size));
    GPU_TRY(call.queue([&](Handles& handles) {
      return call.routines().syevj_batched(handles.solver, job, uplo, n, memory, n, w->data, work,
                                           size, infos, handles.syevj, batch);
    }));
  } else {
    GPU_TRY(call.workspace(
        [&](Handles& handles, int* wanted) {
          return call.routines().syevd_size(handles.solver, job, uplo, n, memory, n, w->data,
                                            wanted);
        },
        &work, &size));
    const int64_t real_bytes = host->dtype_size(real_of(call.dtype()));
    GPU_TRY(call.queue_each(count, [&](Handles& handles, int64_t index) {
      return call.routines().syevd(handles.solver, job, uplo, n, call.matrix(packed, index), n,
                                   static_cast<char*>(w->data) + index * n * real_bytes, work, size,
                                   infos + index);
    }));
  }
  if (vectors)
    GPU_TRY(call.unpack(by_columns(memory, n, n), Batch(vectors),
                        {.conjugates = is_complex(call.dtype())}));
  return call.check_infos(infos, from, from.leading(), "matrices whose eigenvalues converge",
                          "scale the matrix, or use float64");
}

tenon_status eigh(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "eigh", x->dtype, err);
  return decompose(call, Batch(x), tenon_arg_bool(&args[1]), tenon_out_tensor(&outs[0]),
                   tenon_out_tensor(&outs[1]));
}

tenon_status eigvalsh(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "eigvalsh", x->dtype, err);
  return decompose(call, Batch(x), tenon_arg_bool(&args[1]), tenon_out_tensor(&outs[0]), nullptr);
}

constexpr tenon_kernel_def kEighKernels[] = {definition("tenon::eigh", boxed<eigh>),
                                             definition("tenon::eigvalsh", boxed<eigvalsh>)};

}  // namespace

std::span<const tenon_kernel_def> eigh_kernels() { return kEighKernels; }

}  // namespace gpu::solver
