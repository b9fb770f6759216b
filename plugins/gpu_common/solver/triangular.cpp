// SPDX-License-Identifier: Apache-2.0
// triangular_solve, by trsm of BLAS.
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

// a @ x == b is x.T @ a.T == b.T, and the library sees the transpose of what rows hold: the side and the triangle change.
tenon_status triangular_solve(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                              tenon_err* err) {
  const tenon_tensor *a = tenon_arg_tensor(&args[0]), *b = tenon_arg_tensor(&args[1]),
                     *out = tenon_out_tensor(&outs[0]);
  const bool upper = tenon_arg_bool(&args[2]), left = tenon_arg_bool(&args[3]),
             unit = tenon_arg_bool(&args[4]);
  if (out->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "triangular_solve", out->dtype, err);
  const Batch matrices(a), right(b), to(out);
  const int64_t n = matrices.rows();
  const bool joins = !left && matrices.count() == 1;  // all rows are those of one matrix
  const int64_t rows = joins ? to.rows() * to.count() : to.rows(), count = joins ? 1 : to.count();
  GPU_TRY(call.expect_int({n, rows, to.columns(), count}));
  void* memory = a->data;
  if (!matrices.is_contiguous()) GPU_TRY(call.elements(a->numel, &memory));
  const Packed triangles = by_rows(memory, n, n),
               result = by_rows(out->data, to.rows(), to.columns());
  if (!matrices.is_contiguous()) GPU_TRY(call.pack(matrices, triangles));
  GPU_TRY(call.pack(right, to.leading(), result));
  const int side = left ? number::kRight : number::kLeft,
            uplo = upper ? number::kLower : number::kUpper,
            diagonal = unit ? number::kUnit : number::kNonUnit;
  const int height = static_cast<int>(to.columns()), width = static_cast<int>(rows),
            lda = static_cast<int>(n);
  if (count > 1 && n <= kMaxBatchedExtent) {
    void **from = nullptr, **sides = nullptr;
    GPU_TRY(call.addresses(matrices, to.leading(), triangles, &from));
    GPU_TRY(call.addresses(to, to.leading(), result, &sides));
    return call.queue([&](Handles& handles) {
      return call.routines().trsm_batched(handles.blas, side, uplo, number::kNotTransposed,
                                          diagonal, height, width, number_of(out->dtype, 1), from,
                                          lda, sides, height, static_cast<int>(count));
    });
  }
  return call.queue_each(count, [&](Handles& handles, int64_t index) {
    const int64_t own = joins ? 0 : matrices.index_in(to.leading(), index);
    return call.routines().trsm(handles.blas, side, uplo, number::kNotTransposed, diagonal, height,
                                width, number_of(out->dtype, 1), call.matrix(triangles, own), lda,
                                call.matrix(result, index), height);
  });
}

constexpr tenon_kernel_def kTriangularKernels[] = {
    definition("tenon::triangular_solve", boxed<triangular_solve>)};

}  // namespace

std::span<const tenon_kernel_def> triangular_kernels() { return kTriangularKernels; }

}  // namespace gpu::solver
