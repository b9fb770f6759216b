// SPDX-License-Identifier: Apache-2.0
// qr, geqrf and householder_product. Batches of small matrices are one call, and their products a kernel from source, for which the
// libraries have none.
#include "solver/factorizations.hpp"
#include "solver/matrices.hpp"

namespace gpu::solver {
namespace {

// Householder reflections of matrices by columns, packed as those of `of`, whose scales `tau` has `k` of each.
class Reflections {
 public:
  Reflections(const SolverCall& call, const Batch& of, const Packed& packed, int k, void* tau)
      : call_(call),
        of_(of),
        packed_(packed),
        count_(of.count()),
        m_(static_cast<int>(of.rows())),
        k_(k),
        tau_(tau),
        is_small_(count_ > 1 && std::max(of.rows(), of.columns()) <= kMaxBatchedExtent) {}

  // Of the first `n` columns.
  tenon_status factor(int n) const {
    if (is_small_) {
      void **matrices = nullptr, **scales = nullptr;
      GPU_TRY(call_.addresses(of_, of_.leading(), packed_, &matrices));
      GPU_TRY(call_.addresses(of_, of_.leading(), by_columns(tau_, k_, 1), &scales));
      return call_.queue([&](Handles& handles) {
        int refused = 0;
        const Status status = call_.routines().geqrf_batched(
            handles.blas, m_, n, matrices, m_, scales, &refused, static_cast<int>(count_));
        return status ? status : refused;
      });
    }
    void* work = nullptr;
    int size = 0, *info = nullptr;
    GPU_TRY(call_.make_infos(1, &info));
    GPU_TRY(call_.workspace(
        [&](Handles& handles, int* wanted) {
          return call_.routines().geqrf_size(handles.solver, m_, n, packed_.data, m_, wanted);
        },
        &work, &size));
    return call_.queue_each(count_, [&](Handles& handles, int64_t index) {
      return call_.routines().geqrf(handles.solver, m_, n, call_.matrix(packed_, index), m_,
                                    tau(index), work, size, info);
    });
  }

  // The first columns of their product, as many as `to` has, which is contiguous.
  tenon_status multiply(const Batch& to) const {
    const int columns = static_cast<int>(to.columns());
    if (is_small_)
      return call_.reflect(call_.dtype(), packed_.data, tau_, to.data(), m_, columns, k_,
                           packed_.pitch, count_);
    GPU_TRY(multiply_in_place(columns));
    return call_.unpack(packed_, to);
  }

 private:
  tenon_status multiply_in_place(int columns) const {
    void* work = nullptr;
    int size = 0, *info = nullptr;
    GPU_TRY(call_.make_infos(1, &info));
    GPU_TRY(call_.workspace(
        [&](Handles& handles, int* wanted) {
          return call_.routines().orgqr_size(handles.solver, m_, columns, k_, packed_.data, m_,
                                             tau_, wanted);
        },
        &work, &size));
    return call_.queue_each(count_, [&](Handles& handles, int64_t index) {
      return call_.routines().orgqr(handles.solver, m_, columns, k_, call_.matrix(packed_, index),
                                    m_, tau(index), work, size, info);
    });
  }

  void* tau(int64_t index) const { return call_.at(tau_, index * k_); }

  const SolverCall& call_;
  const Batch& of_;
  const Packed packed_;
  const int64_t count_;
  const int m_, k_;
  void* const tau_;
  const bool is_small_;
};

tenon_status qr(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *q = tenon_out_tensor(&outs[0]),
                     *r = tenon_out_tensor(&outs[1]);
  const SolverCall call(ctx, "qr", x->dtype, err);
  const Batch from(x), to_q(q), to_r(r);
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  const int m = static_cast<int>(from.rows()), n = static_cast<int>(from.columns());
  const int k = std::min(m, n), of_q = q->numel == 0 ? 0 : static_cast<int>(to_q.columns());
  const int64_t count = from.count();
  if (count == 0) return TENON_OK;
  if (k == 0) return of_q ? call.identity(q->dtype, q->data, m, of_q, count) : TENON_OK;
  void *memory = nullptr, *tau = nullptr;
  Packed packed = by_columns(nullptr, m, n);
  packed.pitch = int64_t{m} * std::max(n, of_q);
  GPU_TRY(call.elements(packed.pitch * count, &memory));
  GPU_TRY(call.elements(int64_t{k} * count, &tau));
  packed.data = memory;
  GPU_TRY(call.pack(from, packed));
  const Reflections reflections(call, from, packed, k, tau);
  GPU_TRY(reflections.factor(n));
  GPU_TRY(call.unpack(packed, to_r, {.triangle = kUpper}));
  return of_q == 0 ? TENON_OK : reflections.multiply(to_q);
}

tenon_status geqrf(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *a = tenon_out_tensor(&outs[0]),
                     *tau = tenon_out_tensor(&outs[1]);
  if (x->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "geqrf", x->dtype, err);
  const Batch from(x);
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  const int m = static_cast<int>(from.rows()), n = static_cast<int>(from.columns());
  void* memory = nullptr;
  GPU_TRY(call.elements(x->numel, &memory));
  const Packed packed = by_columns(memory, m, n);
  GPU_TRY(call.pack(from, packed));
  GPU_TRY(Reflections(call, from, packed, std::min(m, n), tau->data).factor(n));
  return call.unpack(packed, Batch(a));
}

tenon_status householder_product(tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                                 tenon_err* err) {
  const tenon_tensor *a = tenon_arg_tensor(&args[0]), *tau = tenon_arg_tensor(&args[1]),
                     *out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  const SolverCall call(ctx, "householder_product", a->dtype, err);
  const Batch from(a), scales(tau, true), to(out);
  GPU_TRY(call.expect_int({from.rows(), from.columns(), from.count()}));
  const int m = static_cast<int>(from.rows()), n = static_cast<int>(from.columns()),
            k = static_cast<int>(scales.rows());
  if (k == 0) return call.identity(out->dtype, out->data, m, n, to.count());
  void *memory = nullptr, *own = nullptr;
  GPU_TRY(call.elements(a->numel, &memory));
  GPU_TRY(call.elements(tau->numel, &own));
  const Packed packed = by_columns(memory, m, n);
  GPU_TRY(call.pack(from, packed));
  GPU_TRY(call.pack(scales, by_columns(own, k, 1)));
  return Reflections(call, from, packed, k, own).multiply(to);
}

constexpr tenon_kernel_def kQrKernels[] = {
    definition("tenon::qr", boxed<qr>), definition("tenon::geqrf", boxed<geqrf>),
    definition("tenon::householder_product", boxed<householder_product>)};

}  // namespace

std::span<const tenon_kernel_def> qr_kernels() { return kQrKernels; }

}  // namespace gpu::solver
