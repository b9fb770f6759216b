/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "calls", version 1: calls whose arguments the caller has checked already.
 *
 * The host itself offers it, to language bindings and to C++ programs alike. Every function gives what
 * op_call gives, and does less to get there; the host alone decides whether that is possible. A
 * function that answers "no" has done nothing, and the caller calls the operator.
 *
 * The generated C++ functions (tenon/ops.hpp) use op_call instead: a package may be older than the operator
 * that is loaded, and op_call is what checks the arguments against the operator's schema. */
#ifndef TENON_SERVICES_CALLS_H_
#define TENON_SERVICES_CALLS_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_CALLS_SERVICE "calls"
#define TENON_CALLS_VERSION 1u

/* What the elements of a created tensor hold. */
enum {
  TENON_CREATION_EMPTY = 1, /* anything */
  TENON_CREATION_ZEROS = 2
};

/* A call that was decided once, to be run on pieces of its tensors. It may be used by several threads. */
typedef struct tenon_piecewise tenon_piecewise;

typedef struct tenon_calls_api {
  uint32_t struct_size;
  uint32_t version;
  /* op_call with complete arguments: `args` holds one value for each parameter, of the parameter's kind
   * or its default or NONE where that is optional, and `outs` one for each result. The operator is
   * defined. Nothing of this is checked. */
  tenon_status (*call)(const tenon_op*, tenon_value* args, tenon_value* outs, tenon_err*);
  /* Can the result of the operator be a view of its first argument? */
  int32_t (*may_view)(const tenon_op*);
  /* The result of an operator for which `may_view` holds, with complete arguments, if it is a view. 1: `*out` is the view.
   * 0: the call has to compute, a layer wants to see it, or it is wrong; then use `call`. No kernel runs
   * here, so a caller may hold a lock (Python's GIL). */
  int32_t (*view)(const tenon_op*, const tenon_value* args, tenon_tensor** out);
  /* tensor_view_of, where no layer wants to see a view of `base`. Otherwise `*out` is NULL, and the
   * caller calls operators that make the view. */
  tenon_status (*view_of)(tenon_tensor* base, int32_t dtype, int32_t ndim, const int64_t* shape,
                          const int64_t* strides, int64_t offset, tenon_tensor** out, tenon_err*);
  /* The address of element `index` (within the bounds) of a tensor of one axis, for a caller that writes
   * it and then calls tensor_bump_version. NULL: the tensor is read-only, the host cannot write its
   * memory, or a layer wants to see the write; then call an operator. */
  void* (*element)(tenon_tensor*, int64_t index);
  /* Was the operator declared as a creation? */
  int32_t (*is_creation)(const tenon_op*);
  /* A small tensor on the host device from an operator that was declared as a creation, with a shape and
   * defaults otherwise. 1: `*out` is the tensor. 0: the shape is invalid or large, or a layer wants to
   * see the call; then use `call`. */
  int32_t (*create)(const tenon_op*, int32_t ndim, const int64_t* shape, tenon_tensor** out);
  /* Declares an operator of the starting plugin as a creation: given only a shape, its result on the host
   * device is a new tensor of this dtype and content (TENON_CREATION_*). [init] */
  tenon_status (*declare_creation)(const tenon_op*, int32_t dtype, int32_t content, tenon_err*);
  /* (appended) For callers that run a chain of operators block by block, so that what passes between them stays in a
   * cache. `args` are the complete arguments of the whole call; texts and lists in them outlive the result. NULL where a piece could
   * not be run alone: the operator is not elementwise and its kernel takes no rows (TENON_KERNEL_ROWS), a layer wants to
   * see the call, a tensor would have to be converted, or no single kernel serves the call. */
  tenon_piecewise* (*piecewise)(const tenon_op*, const tenon_value* args);
  /* What was decided: the kernel, and in `*args` the arguments as it gets them, numbers for tensors as 0-d host
   * scalars; borrowed. For plugins that make one kernel of several calls. */
  const tenon_kernel_def* (*piecewise_kernel)(const tenon_piecewise*, const tenon_value** args);
  /* Runs the kernel once, on a device whose memory is the host's. `tensors` take the place of the call's tensors, in their order, `results` those of its
   * results; they need not be tensors of the host, only valid as such: of the dtypes of the whole call, and of
   * shapes that broadcast to that of the results, which share no memory with the tensors unless one is the same. Those
   * of a kernel that takes rows have as many axes as the call's, and whole rows; the results are others than the tensors. */
  tenon_status (*piecewise_run)(const tenon_piecewise*, tenon_tensor* const* tensors,
                                tenon_tensor* const* results, tenon_err*);
  void (*piecewise_release)(tenon_piecewise*);
  /* (appended) 1: what was decided is still so for a call of `tensors`, of the same types and layouts, by this thread. 0: another
   * kernel may serve it by now, or a layer wants to see it; decide again. A call that is kept from run to run is asked before each. */
  int32_t (*piecewise_holds)(const tenon_piecewise*, tenon_tensor* const* tensors, uint32_t count);
} tenon_calls_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_CALLS_H_ */
