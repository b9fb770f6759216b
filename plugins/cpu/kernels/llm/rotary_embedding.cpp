// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding in one pass, with the bits of its decomposition.
#include "kernel.hpp"

#include <tenon/signatures/fused.h>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Where row `row` of x lies in a table that broadcasts: its axes are 1 or those of x.
int64_t table_offset(const tenon_tensor* x, const tenon_tensor* table, int64_t row) {
  int64_t offset = 0, step = table->shape[table->ndim - 1];
  for (int axis = x->ndim - 2, own = table->ndim - 2; own >= 0; --axis, --own) {
    if (table->shape[own] != 1) offset += row % x->shape[axis] * step;
    row /= x->shape[axis];
    step *= table->shape[own];
  }
  return offset;
}

template <class T>
void turn(const T* __restrict x, const T* __restrict cos, const T* __restrict sin, int64_t pairs,
          bool interleaved, T* __restrict out) {
  if (interleaved) {
    for (int64_t i = 0; i < pairs; ++i) {
      const T first = x[2 * i], second = x[2 * i + 1];
      out[2 * i] = first * cos[i] - second * sin[i];
      out[2 * i + 1] = second * cos[i] + first * sin[i];
    }
    return;
  }
  for (int64_t i = 0; i < pairs; ++i) {
    const T first = x[i], second = x[pairs + i];
    out[i] = first * cos[i] - second * sin[i];
    out[pairs + i] = second * cos[i] + first * sin[i];
  }
}

tenon_status rotary_embedding(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* cos,
                              const tenon_tensor* sin, int32_t interleaved, tenon_tensor* out,
                              tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(rotary_embedding, ctx, err, x, cos, sin, interleaved, out);
  if (out->numel == 0) return TENON_OK;
  const int64_t features = x->shape[x->ndim - 1];
  const auto run = [&]<class T>(Type<T>) {
    parallel(x->numel / features, 2 * features, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        turn(data_of<T>(x) + row * features, data_of<T>(cos) + table_offset(x, cos, row),
             data_of<T>(sin) + table_offset(x, sin, row), features / 2, interleaved != 0,
             data_of<T>(out) + row * features);
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_rotary_embedding(rotary_embedding_boxed, rotary_embedding);

// A composite operator: its arguments have not been checked yet.
int32_t rotary_embedding_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  if (x->ndim == 0 || x->shape[x->ndim - 1] % 2 != 0) return 0;
  for (int i = 1; i < 3; ++i) {
    const auto* table = static_cast<const tenon_tensor*>(args[i].v.p);
    if (table->dtype != x->dtype || table->ndim == 0 || table->ndim > x->ndim ||
        2 * table->shape[table->ndim - 1] != x->shape[x->ndim - 1])
      return 0;
    for (int own = 0; own < table->ndim - 1; ++own)
      if (table->shape[own] != 1 && table->shape[own] != x->shape[own + x->ndim - table->ndim])
        return 0;
  }
  return 1;
}

const tenon_kernel_def kKernels[] = {
    with_can_run(TENON_KERNEL_rotary_embedding(rotary_embedding, nullptr, kFloats, 0, 0),
                 rotary_embedding_fits)};

}  // namespace

KernelList rotary_embedding_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
