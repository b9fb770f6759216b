// SPDX-License-Identifier: Apache-2.0
// svd and svdvals, by the QR iteration (gesvd), or of batches of small matrices by Jacobi's method (gesvdjBatched).
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

constexpr const char* kExpected = "matrices whose singular values converge";
constexpr const char* kHint = "scale the matrix, or use float64";

// cuSOLVER wants at least as many rows as columns. A matrix that has at least as many columns is therefore given by rows,
// which are the columns of its transpose x.T == u' @ diag(s) @ vh': x == vh'.T @ diag(s) @ u'.T, so that the memory of
// vh', read by rows, is u, and that of u' is vh. Others are given by columns, and u and vh are copied into rows.
struct Problem {
  int rows, columns;  // as the library sees them
  bool transposed;
  int width() const { return columns; }  // the number of singular values
};

Problem problem_of(const Batch& x) {
  const int rows = static_cast<int>(x.rows()), columns = static_cast<int>(x.columns());
  return columns >= rows ? Problem{columns, rows, true} : Problem{rows, columns, false};
}

// The singular values of each matrix go to `s`; vectors to `left` and `right`, if `job` is not 'N'.
tenon_status decompose(const SolverCall& call, const Batch& from, const Problem& problem,
                       signed char job, void* s, const Packed& left, const Packed& right) {
  const int64_t count = from.count();
  void *memory = nullptr, *work = nullptr, *real_work = nullptr;
  int size = 0, *infos = nullptr, *faults = nullptr;
  GPU_TRY(call.elements(from.size() * count, &memory));
  const Packed packed = problem.transposed ? by_rows(memory, from.rows(), from.columns())
                                           : by_columns(memory, from.rows(), from.columns());
  GPU_TRY(call.make_infos(count, &faults));
  GPU_TRY(call.pack(from, packed, {.faults = faults}));
  GPU_TRY(call.check_finite(faults, from));
  GPU_TRY(call.make_infos(count, &infos));
  GPU_TRY(call.elements(problem.width(), &real_work));
  GPU_TRY(call.workspace(
      [&](Handles& handles, int* wanted) {
        return call.routines().gesvd_size(handles.solver, problem.rows, problem.columns, wanted);
      },
      &work, &size));
  const int64_t real_bytes = host->dtype_size(real_of(call.dtype()));
  GPU_TRY(call.queue_each(count, [&](Handles& handles, int64_t index) {
    return call.routines().gesvd(handles.solver, job, job, problem.rows, problem.columns,
                                 call.matrix(packed, index), problem.rows,
                                 static_cast<char*>(s) + index * problem.width() * real_bytes,
                                 left.data ? call.matrix(left, index) : nullptr, problem.rows,
                                 right.data ? call.matrix(right, index) : nullptr, problem.columns,
                                 work, size, real_work, infos + index);
  }));
  return call.check_infos(infos, from, from.leading(), kExpected, kHint);
}

// Jacobi's method gives square u and v of each matrix, of which as many columns are copied as are wanted.
tenon_status decompose_small(const SolverCall& call, const Batch& from, const tenon_tensor* s,
                             const tenon_tensor* u, const tenon_tensor* vh) {
  const int m = static_cast<int>(from.rows()), n = static_cast<int>(from.columns()),
            batch = static_cast<int>(from.count());
  const int job = u ? number::kVectors : number::kValues;
  void *memory = nullptr, *left = nullptr, *right = nullptr, *work = nullptr;
  int size = 0, *infos = nullptr, *faults = nullptr;
  GPU_TRY(call.elements(from.size() * batch, &memory));
  GPU_TRY(call.elements(int64_t{m} * m * batch, &left));
  GPU_TRY(call.elements(int64_t{n} * n * batch, &right));
  GPU_TRY(call.make_infos(batch, &faults));
  GPU_TRY(call.pack(from, by_columns(memory, m, n), {.faults = faults}));
  GPU_TRY(call.check_finite(faults, from));
  GPU_TRY(call.make_infos(batch, &infos));
  GPU_TRY(call.workspace(
      [&](Handles& handles, int* wanted) {
        return call.routines().gesvdj_batched_size(handles.solver, job, m, n, memory, m, s->data,
                                                   left, m, right, n, wanted, handles.gesvdj,
                                                   batch);
      },
      &work, &size));
  GPU_TRY(call.queue([&](Handles& handles) {
    return call.routines().gesvdj_batched(handles.solver, job, m, n, memory, m, s->data, left, m,
                                          right, n, work, size, infos, handles.gesvdj, batch);
  }));
  if (u) {
    GPU_TRY(call.unpack(by_columns(left, m, m), Batch(u)));
    // The adjoint of what is stored by columns is the conjugate of what is read by rows.
    GPU_TRY(call.unpack(by_rows(right, n, n), Batch(vh), {.conjugates = is_complex(call.dtype())}));
  }
  return call.check_infos(infos, from, from.leading(), kExpected, kHint);
}

bool is_small(const Batch& x) {
  return x.count() > 1 && std::max(x.rows(), x.columns()) <= kMaxJacobiExtent;
}

tenon_status svd(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *u = tenon_out_tensor(&outs[0]),
                     *s = tenon_out_tensor(&outs[1]), *vh = tenon_out_tensor(&outs[2]);
  const bool full = tenon_arg_bool(&args[1]);
  const SolverCall call(ctx, "svd", x->dtype, err);
  const Batch from(x), to_u(u), to_vh(vh);
  if (x->numel == 0) {
    GPU_TRY(
        call.identity(u->dtype, u->data, to_u.rows(), to_u.columns(), u->numel ? to_u.count() : 0));
    return call.identity(vh->dtype, vh->data, to_vh.rows(), to_vh.columns(),
                         vh->numel ? to_vh.count() : 0);
  }
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  if (is_small(from)) return decompose_small(call, from, s, u, vh);
  const Problem problem = problem_of(from);
  const int width = full ? problem.rows : problem.columns;
  void *left_memory = vh->data, *right_memory = u->data;
  if (!problem.transposed) {
    GPU_TRY(call.elements(u->numel, &left_memory));
    GPU_TRY(call.elements(vh->numel, &right_memory));
  }
  const Packed left = by_columns(left_memory, problem.rows, width),
               right = by_columns(right_memory, problem.columns, problem.columns);
  GPU_TRY(decompose(call, from, problem, full ? 'A' : 'S', s->data, left, right));
  if (problem.transposed) return TENON_OK;
  GPU_TRY(call.unpack(left, to_u));
  return call.unpack(right, to_vh);
}

tenon_status svdvals(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *s = tenon_out_tensor(&outs[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "svdvals", x->dtype, err);
  const Batch from(x);
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  if (is_small(from)) return decompose_small(call, from, s, nullptr, nullptr);
  const Packed none = by_columns(nullptr, 0, 0);
  return decompose(call, from, problem_of(from), 'N', s->data, none, none);
}

constexpr tenon_kernel_def kSvdKernels[] = {definition("tenon::svd", boxed<svd>),
                                            definition("tenon::svdvals", boxed<svdvals>)};

}  // namespace

std::span<const tenon_kernel_def> svd_kernels() { return kSvdKernels; }

}  // namespace gpu::solver
