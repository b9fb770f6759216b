/* SPDX-License-Identifier: Apache-2.0
 * The generated signatures are C11. */
#include <tenon/unbox.h>

#if __has_include(<tenon/op_signatures.h>)
#include <tenon/op_signatures.h>

/* A typed kernel of an operator that every case with signatures for `tenon` has. */
#ifdef TENON_HASH_add
static tenon_status add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                        tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)x, (void)y, (void)out, (void)err;
  return TENON_OK;
}
TENON_BOX_add(add_boxed, add) const tenon_kernel_def tenon_test_kernel =
    TENON_KERNEL_add(add, "acme", 1, TENON_KERNEL_STRIDED, 10);
#endif
#endif

#if __has_include(<acme/op_signatures.h>)
#include <acme/op_signatures.h>

static tenon_status swiglu(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* gate,
                           tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)x, (void)gate, (void)out, (void)err;
  return TENON_OK;
}
ACME_BOX_swiglu(swiglu_boxed,
                swiglu) const tenon_kernel_def acme_test_kernel = ACME_KERNEL_swiglu(swiglu, 0, 1,
                                                                                     0, 0);
#endif
