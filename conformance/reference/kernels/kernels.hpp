// SPDX-License-Identifier: Apache-2.0
// Native kernels: typed functions with the signatures that tenon-codegen writes, and their table.
// They are few. What is not here, the host compiles from Kernel C (group `compile`) or takes apart.
#pragma once

#include <tenon/op_signatures.h>

#include <cstdint>

namespace reference {

extern const tenon_kernel_def kKernels[];
inline constexpr uint32_t kKernelCount = 11;

tenon_status add(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                 tenon_err*);
tenon_status multiply(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                      tenon_err*);
tenon_status maximum(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                     tenon_err*);
tenon_status exponential(tenon_ctx*, const tenon_tensor* x, tenon_tensor* out, tenon_err*);
tenon_status where(tenon_ctx*, const tenon_tensor* condition, const tenon_tensor* x,
                   const tenon_tensor* y, tenon_tensor* out, tenon_err*);
tenon_status sum(tenon_ctx*, const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
                 int32_t keepdim, tenon_tensor* out, tenon_err*);
tenon_status cumsum(tenon_ctx*, const tenon_tensor* x, int64_t axis, int32_t reverse,
                    tenon_tensor* out, tenon_err*);
tenon_status matmul(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                    tenon_err*);
tenon_status cast(tenon_ctx*, const tenon_tensor* x, int32_t dtype, tenon_tensor* out, tenon_err*);
tenon_status clone(tenon_ctx*, const tenon_tensor* x, tenon_tensor* out, tenon_err*);
tenon_status uniform(tenon_ctx*, const int64_t* shape, uint64_t shape_count, double low,
                     double high, int32_t dtype, int32_t device, tenon_tensor* out, tenon_err*);

}  // namespace reference
