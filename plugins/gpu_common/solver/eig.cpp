// SPDX-License-Identifier: Apache-2.0
// eig and eigvals, by the QR algorithm (Xgeev), where the library has it. Real matrices are computed with as complex ones, so
// that values and vectors have one form.
#include "blas/blas.hpp"
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

tenon_status decompose(const SolverCall& call, const Batch& from, const tenon_tensor* w,
                       const tenon_tensor* vectors) {
  const int64_t n = from.rows(), count = from.count(), elements = from.size() * count;
  const int dtype = complex_of(call.dtype()), type = blas::data_type(dtype);
  const int64_t bytes = host->dtype_size(dtype);
  const int job = vectors ? number::kVectors : number::kValues;
  void *own = nullptr, *matrices = nullptr, *found = nullptr, *work = nullptr;
  int *infos = nullptr, *faults = nullptr;
  GPU_TRY(call.expect_int({n, count}));
  GPU_TRY(call.elements(elements, &own));
  GPU_TRY(call.make_infos(count, &faults));
  GPU_TRY(call.pack(from, by_columns(own, n, n), {.faults = faults}));
  GPU_TRY(call.check_finite(faults, from));
  matrices = own;
  if (!is_complex(call.dtype())) {
    GPU_TRY(call.scratch(static_cast<uint64_t>(elements * bytes), &matrices));
    GPU_TRY(call.complex_of_real(dtype, own, matrices, elements));
  }
  if (vectors) GPU_TRY(call.scratch(static_cast<uint64_t>(elements * bytes), &found));
  GPU_TRY(call.make_infos(count, &infos));
  const auto at = [&](void* data, int64_t element) {
    return data ? static_cast<char*>(data) + element * bytes : nullptr;
  };
  size_t device_bytes = 0, host_bytes = 0;
  GPU_TRY(call.ask([&](Handles& handles) {
    return library()->geev_size(handles.solver, handles.geev, number::kValues, job, n, type,
                                matrices, n, type, w->data, type, nullptr, n, type, found, n, type,
                                &device_bytes, &host_bytes);
  }));
  GPU_TRY(call.scratch(device_bytes, &work));
  std::vector<char> on_host(host_bytes);
  // The algorithm works on the host as well, in memory that all matrices share.
  for (int64_t index = 0; index < count; ++index) {
    GPU_TRY(call.queue([&](Handles& handles) {
      return library()->geev(handles.solver, handles.geev, number::kValues, job, n, type,
                             at(matrices, index * n * n), n, type, at(w->data, index * n), type,
                             nullptr, n, type, at(found, index * n * n), n, type, work,
                             device_bytes, on_host.data(), host_bytes, infos + index);
    }));
    if (host_bytes > 0) GPU_TRY(call.wait());
  }
  if (vectors) {
    const SolverCall of_vectors(call.ctx(), call.op(), dtype, call.err());
    GPU_TRY(of_vectors.unpack(by_columns(found, n, n), Batch(vectors)));
  }
  return call.check_infos(infos, from, from.leading(), "matrices whose eigenvalues converge",
                          "scale the matrix, or use float64");
}

tenon_status eig(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "eig", x->dtype, err);
  return decompose(call, Batch(x), tenon_out_tensor(&outs[0]), tenon_out_tensor(&outs[1]));
}

tenon_status eigvals(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "eigvals", x->dtype, err);
  return decompose(call, Batch(x), tenon_out_tensor(&outs[0]), nullptr);
}

int32_t can_decompose(const tenon_value* args, uint32_t count) {
  return library() && library()->has_geev() && can_run(args, count);
}

constexpr tenon_kernel_def kEigKernels[] = {
    definition("tenon::eig", boxed<eig>, kDtypes, can_decompose),
    definition("tenon::eigvals", boxed<eigvals>, kDtypes, can_decompose)};

}  // namespace

std::span<const tenon_kernel_def> eig_kernels() { return kEigKernels; }

}  // namespace gpu::solver
