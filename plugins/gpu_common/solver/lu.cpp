// SPDX-License-Identifier: Apache-2.0
// What Gaussian elimination gives: lu_factor, solve, inv; and lu_permutation.
#include "solver/lu.hpp"

#include "solver/factorizations.hpp"

namespace gpu::solver {

tenon_status factor(const SolverCall& call, const Batch& of, const Packed& packed, int m, int n,
                    Pivots* pivots) {
  const int64_t count = of.count();
  const int k = std::min(m, n);
  GPU_TRY(call.scratch(count * k, &pivots->rows));
  GPU_TRY(call.make_infos(count, &pivots->infos));
  if (m == n && count > 1 && n <= kMaxBatchedExtent) {
    void** matrices = nullptr;
    GPU_TRY(call.addresses(of, of.leading(), packed, &matrices));
    return call.queue([&](Handles& handles) {
      return call.routines().getrf_batched(handles.blas, n, matrices, n, pivots->rows,
                                           pivots->infos, static_cast<int>(count));
    });
  }
  void* work = nullptr;
  int size = 0;
  GPU_TRY(call.workspace(
      [&](Handles& handles, int* wanted) {
        return call.routines().getrf_size(handles.solver, m, n, packed.data, m, wanted);
      },
      &work, &size));
  return call.queue_each(count, [&](Handles& handles, int64_t index) {
    return call.routines().getrf(handles.solver, m, n, call.matrix(packed, index), m, work,
                                 pivots->rows + index * k, pivots->infos + index);
  });
}

tenon_status solve_factored(const SolverCall& call, const Batch& of, const Packed& factors,
                            const Pivots& pivots, std::span<const int64_t> batch, int64_t count,
                            const Packed& b, int n, int64_t columns) {
  int* info = nullptr;
  GPU_TRY(call.make_infos(1, &info));
  if (of.count() == 1) {  // all right-hand sides are columns of one matrix
    GPU_TRY(call.expect_int({columns * count}));
    return call.queue([&](Handles& handles) {
      return call.routines().getrs(handles.solver, number::kNotTransposed, n,
                                   static_cast<int>(columns * count), factors.data, n, pivots.rows,
                                   b.data, n, info);
    });
  }
  const int width = static_cast<int>(columns);
  if (of.count() == count && n <= kMaxBatchedExtent) {
    void **matrices = nullptr, **sides = nullptr;
    GPU_TRY(call.addresses(of, of.leading(), factors, &matrices));
    GPU_TRY(call.addresses(of, of.leading(), b, &sides));
    return call.queue([&](Handles& handles) {
      int refused = 0;
      const Status status =
          call.routines().getrs_batched(handles.blas, number::kNotTransposed, n, width, matrices, n,
                                        pivots.rows, sides, n, &refused, static_cast<int>(count));
      return status ? status : refused;
    });
  }
  return call.queue_each(count, [&](Handles& handles, int64_t index) {
    const int64_t own = of.index_in(batch, index);
    return call.routines().getrs(handles.solver, number::kNotTransposed, n, width,
                                 call.matrix(factors, own), n, pivots.rows + own * n,
                                 call.matrix(b, index), n, info);
  });
}

namespace {

constexpr const char* kSingular = "invertible matrices, got a singular one";

tenon_status lu_factor(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *lu = tenon_out_tensor(&outs[0]),
                     *rows = tenon_out_tensor(&outs[1]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "lu_factor", x->dtype, err);
  const Batch from(x);
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  const int m = static_cast<int>(from.rows()), n = static_cast<int>(from.columns());
  void* memory = nullptr;
  GPU_TRY(call.elements(x->numel, &memory));
  const Packed packed = by_columns(memory, m, n);
  GPU_TRY(call.pack(from, packed));
  Pivots pivots;  // singular matrices have factors too, so that nothing is read of their infos
  GPU_TRY(factor(call, from, packed, m, n, &pivots));
  GPU_TRY(call.unpack(packed, Batch(lu)));
  return call.widen(pivots.rows, static_cast<int64_t*>(rows->data), rows->numel, -1);
}

tenon_status lu_permutation(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                            tenon_err* err) {
  const tenon_tensor *pivots = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  const int64_t rows = tenon_arg_int(&args[1]);
  if (out->numel == 0) return TENON_OK;
  const ArrayCall call(ctx, "lu_permutation", err);
  int64_t *fault = nullptr, found = 0;
  GPU_TRY(call.scratch(1, &fault));
  GPU_TRY(call.fill(fault, sizeof *fault, 0));
  GPU_TRY(call.permutation(static_cast<const int64_t*>(pivots->data),
                           static_cast<int64_t*>(out->data), pivots->shape[pivots->ndim - 1], rows,
                           out->numel / rows, fault));
  GPU_TRY(call.read(&found, fault, sizeof found));
  if (found == 0) return TENON_OK;
  return tenon::fail_format(
      err, TENON_OUT_OF_RANGE, "[lu_permutation] expected pivots in [0, %lld), got %lld",
      static_cast<long long>(rows), static_cast<long long>(found > 0 ? found - 1 : found));
}

tenon_status solve(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *a = tenon_arg_tensor(&args[0]), *b = tenon_arg_tensor(&args[1]),
                     *out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "solve", a->dtype, err);
  const bool vector = b->ndim == 1;
  const Batch matrices(a), right(b, vector), to(out, vector);
  GPU_TRY(call.expect_int({matrices.rows(), right.columns(), to.count()}));
  const int n = static_cast<int>(matrices.rows());
  void *factors_memory = nullptr, *sides_memory = nullptr;
  GPU_TRY(call.elements(a->numel, &factors_memory));
  GPU_TRY(call.elements(out->numel, &sides_memory));
  const Packed factors = by_columns(factors_memory, n, n),
               sides = by_columns(sides_memory, n, right.columns());
  GPU_TRY(call.pack(matrices, factors));
  GPU_TRY(call.pack(right, to.leading(), sides));
  Pivots pivots;
  GPU_TRY(factor(call, matrices, factors, n, n, &pivots));
  GPU_TRY(solve_factored(call, matrices, factors, pivots, to.leading(), to.count(), sides, n,
                         right.columns()));
  GPU_TRY(call.unpack(sides, to));
  return call.check_infos(pivots.infos, matrices, to.leading(), kSingular, "use lstsq");
}

// The inverse of the transpose is the transpose of the inverse, so that rows may stand for columns.
tenon_status inv(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "inv", x->dtype, err);
  const Batch from(x);
  GPU_TRY(call.expect_int({from.rows(), from.count()}));
  const int n = static_cast<int>(from.rows());
  void* memory = nullptr;
  GPU_TRY(call.elements(x->numel, &memory));
  const Packed factors = by_rows(memory, n, n), result = by_rows(out->data, n, n);
  GPU_TRY(call.pack(from, factors));
  GPU_TRY(call.identity(x->dtype, out->data, n, n, from.count()));
  Pivots pivots;
  GPU_TRY(factor(call, from, factors, n, n, &pivots));
  GPU_TRY(solve_factored(call, from, factors, pivots, from.leading(), from.count(), result, n, n));
  return call.check_infos(pivots.infos, from, from.leading(), kSingular, "use pinv");
}

int32_t can_permute(const tenon_value* args, uint32_t) {  // which needs no library
  const tenon_tensor* pivots = tenon_arg_tensor(&args[0]);
  const tenon_device device = pivots ? open_device(TENON_DEVICE_INDEX(pivots->device)) : nullptr;
  return device && has_array_kernels(device);
}

constexpr tenon_kernel_def permutation_definition() {
  tenon_kernel_def kernel = definition("tenon::lu_permutation", boxed<lu_permutation>,
                                       uint64_t{1} << TENON_DTYPE_I64, can_permute);
  kernel.traits = 0;
  return kernel;
}

constexpr tenon_kernel_def kLuKernels[] = {
    definition("tenon::lu_factor", boxed<lu_factor>), permutation_definition(),
    definition("tenon::solve", boxed<solve>), definition("tenon::inv", boxed<inv>)};

}  // namespace

std::span<const tenon_kernel_def> lu_kernels() { return kLuKernels; }

}  // namespace gpu::solver
