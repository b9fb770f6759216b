// SPDX-License-Identifier: Apache-2.0
// cholesky.
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

// A row of the lower triangle is a column of the upper one to the library. Of a Hermitian matrix it sees the conjugate,
// x.T == conj(u.mH @ u) there, so that the memory of u read by rows is the factor.
tenon_status cholesky(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  const bool upper = tenon_arg_bool(&args[1]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "cholesky", x->dtype, err);
  const Batch from(x), to(out);
  const int64_t count = from.count();
  GPU_TRY(call.expect_int({from.rows(), count}));
  const int n = static_cast<int>(from.rows());
  const int uplo = upper ? number::kLower : number::kUpper;
  const Packed result = by_rows(out->data, n, n);
  GPU_TRY(call.pack(from, result));
  int* infos = nullptr;
  GPU_TRY(call.make_infos(count, &infos));
  if (count > 1 && n <= kMaxBatchedExtent) {
    void** matrices = nullptr;
    GPU_TRY(call.addresses(to, to.leading(), result, &matrices));
    GPU_TRY(call.queue([&](Handles& handles) {
      return call.routines().potrf_batched(handles.solver, uplo, n, matrices, n, infos,
                                           static_cast<int>(count));
    }));
  } else {
    void* work = nullptr;
    int size = 0;
    GPU_TRY(call.workspace(
        [&](Handles& handles, int* wanted) {
          return call.routines().potrf_size(handles.solver, uplo, n, result.data, n, wanted);
        },
        &work, &size));
    GPU_TRY(call.queue_each(count, [&](Handles& handles, int64_t index) {
      return call.routines().potrf(handles.solver, uplo, n, call.matrix(result, index), n, work,
                                   size, infos + index);
    }));
  }
  GPU_TRY(call.unpack(result, to, {.triangle = upper ? kUpper : kLower}));
  return call.check_infos(infos, from, from.leading(),
                          "positive definite matrices, got a leading minor that is not positive",
                          "add a small multiple of the identity, or use eigh or lu_factor");
}

constexpr tenon_kernel_def kCholeskyKernels[] = {definition("tenon::cholesky", boxed<cholesky>)};

}  // namespace

std::span<const tenon_kernel_def> cholesky_kernels() { return kCholeskyKernels; }

}  // namespace gpu::solver
