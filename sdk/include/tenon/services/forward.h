/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "forward", version 1: forward-mode differentiation as a layer over operator calls.
 *
 *   const tenon_forward_api* forward = host->service_find("forward", 1);
 *
 * A dual tensor is a tensor as any other, with a tangent in an extension slot: the derivative of its elements in one
 * direction. Calls that take duals give duals. A level is one differentiation; levels nest, and each tensor has a tangent
 * of its own for each. Tangents come from operator calls like any other, so that they are differentiated by the service
 * "autograd" and by outer levels. Tensors that share memory with a dual and no operator made (detach) are constants, and so
 * are views through which no gradient passes (stop_gradient) and views of those. */
#ifndef TENON_SERVICES_FORWARD_H_
#define TENON_SERVICES_FORWARD_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_FORWARD_SERVICE "forward"
#define TENON_FORWARD_VERSION 1u

typedef struct tenon_forward_api {
  uint32_t struct_size;
  uint32_t version;
  /* Begin a level on this thread, within those that have begun; its number is not that of any other. Ended by pop(). */
  tenon_status (*push)(uint64_t* level, tenon_err*);
  void (*pop)(void);
  /* The innermost level of this thread; 0: there is none. */
  uint64_t (*level)(void);
  /* Make `tensor` a dual with `tangent`, a tensor of its shape, dtype and device; NULL: a constant of this level. */
  tenon_status (*set_tangent)(tenon_tensor* tensor, uint64_t level, tenon_tensor* tangent,
                              tenon_err*);
  /* `*out` owned, or NULL where the tensor does not depend on what the level differentiates by. */
  tenon_status (*tangent)(tenon_tensor* tensor, uint64_t level, tenon_tensor** out, tenon_err*);
  /* Has it a tangent at a level of this thread? */
  int32_t (*is_dual)(const tenon_tensor*);
  /* Give `to`, a tensor with the memory of `from`, the tangents of `from` at all levels. */
  tenon_status (*copy)(const tenon_tensor* from, tenon_tensor* to, tenon_err*);
} tenon_forward_api;

#ifdef __cplusplus
}
#endif
#endif /* TENON_SERVICES_FORWARD_H_ */
