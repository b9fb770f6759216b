// SPDX-License-Identifier: Apache-2.0
// qr, geqrf and householder_product.
#include "kernels.hpp"

#include <tenon/signatures/factorization.h>

#include <string_view>

namespace tenon::lapack {
namespace {

// The two routines with the size of their scratch memory.
template <class T>
struct Reflections {
  const Library& lapack;
  Int m, n, k, columns;  // the matrix, its reflections, and the columns of q
  Int lwork;

  Reflections(const Library& library, Int rows, Int of_x, Int of_q, Int reflections)
      : lapack(library), m(rows), n(of_x), k(reflections), columns(of_q) {
    T unread{};
    const int64_t factor = best_lwork<T>([&](T* work, In size, Int* info) {
      lapack.routines<T>().geqrf(&m, &n, &unread, &m, &unread, work, size, info);
    });
    const int64_t product = columns == 0 ? 1 : best_lwork<T>([&](T* work, In size, Int* info) {
      lapack.routines<T>().orgqr(&m, &columns, &k, &unread, &m, &unread, work, size, info);
    });
    lwork = std::max(factor, product);
  }
  int64_t factor(T* x, T* tau, T* work) const {
    Int info = 0;
    lapack.routines<T>().geqrf(&m, &n, x, &m, tau, work, &lwork, &info);
    return lapack.read(info);
  }
  int64_t product(T* x, const T* tau, T* work) const {
    Int info = 0;
    lapack.routines<T>().orgqr(&m, &columns, &k, x, &m, tau, work, &lwork, &info);
    return lapack.read(info);
  }
};

template <class T>
void set_identity(const Matrix<T>& x) {
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j) x(i, j) = T(i == j);
}

tenon_status qr(tenon_ctx* ctx, const tenon_tensor* x, const char*, uint64_t, tenon_tensor* q,
                tenon_tensor* r, tenon_err* err) {
  const Library* lapack = library("qr", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to_q(q), to_r(r);
    const Int m = from.rows(), n = from.columns(), k = std::min(m, n);
    const int64_t of_q = q->numel == 0 ? 0 : to_q.columns();
    if (k == 0) {
      for (int64_t i = 0; of_q > 0 && i < to_q.count(); ++i) set_identity(to_q[i]);
      return TENON_OK;
    }
    const Reflections<T> reflections(*lapack, m, n, of_q, k);
    const int64_t size = m * std::max(n, of_q);
    const int64_t bytes =
        Scratch::bytes<T>(size) + Scratch::bytes<T>(k) + Scratch::bytes<T>(reflections.lwork);
    return for_batch(ctx, from.count(), 2.0 * static_cast<double>(m * n * k), bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> packed = by_columns(scratch.take<T>(size), m, n);
                       T* tau = scratch.take<T>(k);
                       T* work = scratch.take<T>(reflections.lwork);
                       copy(from[index], packed);
                       reflections.factor(packed.data, tau, work);
                       const Matrix<T> upper = to_r[index];
                       for (int64_t i = 0; i < upper.rows; ++i)
                         for (int64_t j = 0; j < n; ++j) upper(i, j) = j < i ? T{} : packed(i, j);
                       if (of_q > 0) {
                         reflections.product(packed.data, tau, work);
                         copy(by_columns(packed.data, m, of_q), to_q[index]);
                       }
                       return 0;
                     });
  });
}
TENON_BOX_qr(qr_boxed, qr);

tenon_status geqrf(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* a, tenon_tensor* tau,
                   tenon_err* err) {
  const Library* lapack = library("geqrf", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(x->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(x), to(a);
    const Int m = from.rows(), n = from.columns(), k = std::min(m, n);
    if (x->numel == 0) return TENON_OK;
    const Reflections<T> reflections(*lapack, m, n, 0, k);
    const int64_t bytes = Scratch::bytes<T>(m * n) + Scratch::bytes<T>(reflections.lwork);
    return for_batch(ctx, from.count(), static_cast<double>(m * n * k), bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> packed = by_columns(scratch.take<T>(m * n), m, n);
                       copy(from[index], packed);
                       reflections.factor(packed.data, static_cast<T*>(tau->data) + index * k,
                                          scratch.take<T>(reflections.lwork));
                       copy(packed, to[index]);
                       return 0;
                     });
  });
}
TENON_BOX_geqrf(geqrf_boxed, geqrf);

tenon_status householder_product(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* tau,
                                 tenon_tensor* out, tenon_err* err) {
  const Library* lapack = library("householder_product", err);
  if (!lapack) return TENON_UNAVAILABLE;
  Failure failure;
  return with_type(a->dtype, [&]<class T>(T) -> tenon_status {
    const Batch<T> from(a), scales(tau, true), to(out);
    const Int m = from.rows(), n = from.columns(), k = scales.rows();
    if (out->numel == 0) return TENON_OK;
    const Reflections<T> reflections(*lapack, m, n, n, k);
    const int64_t bytes =
        Scratch::bytes<T>(m * n) + Scratch::bytes<T>(k) + Scratch::bytes<T>(reflections.lwork);
    return for_batch(ctx, from.count(), static_cast<double>(m * n * n), bytes, failure, err,
                     [&](int64_t index, Scratch scratch) {
                       const Matrix<T> packed = by_columns(scratch.take<T>(m * n), m, n);
                       T* own = scratch.take<T>(k);
                       copy(from[index], packed);
                       copy(scales[index], by_columns(own, k, 1));
                       reflections.product(packed.data, own, scratch.take<T>(reflections.lwork));
                       copy(packed, to[index]);
                       return 0;
                     });
  });
}
TENON_BOX_householder_product(householder_product_boxed, householder_product);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_qr(qr, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_geqrf(geqrf, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_householder_product(householder_product, "cpu", kDtypes, TENON_KERNEL_STRIDED, 0)};

}  // namespace

KernelList qr_kernels() { return kKernels; }

}  // namespace tenon::lapack
