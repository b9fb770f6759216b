/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "autograd", version 1: reverse-mode differentiation as a layer over operator calls.
 *
 *   const tenon_autograd_api* autograd = host->service_find("autograd", 1);
 *
 * Gradients are made by operator calls like any other, so they differentiate again. A gradient that
 * comes out wider than its input (broadcasting) or in another dtype (promotion) is summed and cast
 * by the engine: rules need not care. Section 6 of tenon/abi.h says what a boxed value is. */
#ifndef TENON_SERVICES_AUTOGRAD_H_
#define TENON_SERVICES_AUTOGRAD_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_AUTOGRAD_SERVICE "autograd"
#define TENON_AUTOGRAD_VERSION 1u

/* Compute gradients of one recorded call.
 *   args       as the operator was called. A tensor not in the rule's `saves_args` is NONE, unless it
 *              is in `shapes_args`: then it is a tensor of equal shape and dtype on the meta device.
 *   outs       outputs in `saves_outs`; others NULL.
 *   grad_outs  NULL where no gradient reached that output.
 *   needs      bit i: a gradient for argument i is wanted.
 *   grad_args  NONE on entry; set to an owned tensor, or left NONE for "zero". For a Tensor[]
 *              argument: TENSORS with an array from host->list_create. */
typedef tenon_status (*tenon_backward_fn)(const tenon_host*, const tenon_value* args,
                                          uint32_t nargs, tenon_tensor* const* outs,
                                          tenon_tensor* const* grad_outs, uint32_t nouts,
                                          uint64_t needs, tenon_value* grad_args, tenon_err*);

/* The same, with the rule's `self`, for rules made at run time. */
typedef tenon_status (*tenon_backward_self_fn)(const tenon_host*, const tenon_value* args,
                                               uint32_t nargs, tenon_tensor* const* outs,
                                               tenon_tensor* const* grad_outs, uint32_t nouts,
                                               uint64_t needs, tenon_value* grad_args, tenon_err*,
                                               void* self);

/* The differentiation rule of one operator. Lives as long as the process: recorded calls point at it. */
typedef struct tenon_grad_rule {
  uint32_t struct_size;
  uint32_t flags;       /* TENON_GRAD_RULE_* */
  const char* op;       /* "acme::swiglu" */
  uint64_t diff_args;   /* bit i: argument i is differentiable */
  uint64_t saves_args;  /* bit i: `backward` reads the data of argument i */
  uint64_t shapes_args; /* bit i: `backward` reads only shape or dtype of argument i */
  uint64_t saves_outs;  /* bit i: `backward` reads output i */
  tenon_backward_fn backward;
  /* (optional) [i]: what the gradient of argument i alone reads, as masks over arguments and outputs;
   * NULL: all of the above. Lets a call keep less when not every gradient is wanted. */
  const uint64_t* arg_reads;
  const uint64_t* out_reads;
  void* self;
  tenon_backward_self_fn backward_self; /* (optional) used if `backward` is NULL */
} tenon_grad_rule;
enum {
  /* Takes the place of a rule registered before, or, without a backward function, only takes that away. Calls
   * recorded before keep their rule. For operators that are defined anew. */
  TENON_GRAD_RULE_REPLACE = 1,
  /* The rule is right for complex tensors. The gradient of a complex tensor has the derivatives of the loss by the
   * real part and by the imaginary part as its parts. Without this flag or the next one, a gradient that
   * reaches a call with complex tensors is an error. */
  TENON_GRAD_RULE_COMPLEX = 2,
  /* The rule is that of a holomorphic function, written as for real numbers. For complex tensors the engine
   * conjugates the gradients of the outputs before, and those of the arguments after. */
  TENON_GRAD_RULE_HOLOMORPHIC = 4
};

/* Receives a gradient; may set `*replacement` to an owned tensor to be used instead. */
typedef tenon_status (*tenon_grad_hook_fn)(void* user, tenon_tensor* grad,
                                           tenon_tensor** replacement, tenon_err*);
/* Backward of a custom function: as many `grad_inputs` as record() was given inputs, owned or NULL. */
typedef tenon_status (*tenon_custom_backward_fn)(void* user, tenon_tensor* const* grad_outputs,
                                                 uint32_t noutputs, tenon_tensor** grad_inputs,
                                                 uint32_t ninputs, tenon_err*);

enum {
  TENON_BACKWARD_RETAIN_GRAPH = 1, /* keep saved tensors, so that backward may run again */
  TENON_BACKWARD_CREATE_GRAPH =
      2, /* record the backward pass itself, for higher derivatives; implies RETAIN */
  TENON_BACKWARD_ALLOW_UNUSED = 4 /* grad(): NULL for inputs that the outputs do not depend on */
};

/* Functions that keep the tensors which recorded calls of a thread save for backward in another form.
 * They are called with recording off, and without hooks of their own. */
typedef struct tenon_saved_hooks {
  uint32_t struct_size;
  /* `tensor` is borrowed and has no history. The node owns `*packed` from TENON_OK on. */
  tenon_status (*pack)(void* user, tenon_tensor* tensor, void** packed, tenon_err*);
  /* `*tensor` is owned, of the shape and dtype and on the device that pack was given. Called once in every
   * backward through the node, on its thread. No version is compared: a content that shares the memory of the
   * tensor has to notice writes itself. */
  tenon_status (*unpack)(void* packed, tenon_tensor** tensor, tenon_err*);
  void (*drop)(void* packed);
  void* user;
} tenon_saved_hooks;

typedef struct tenon_saved tenon_saved; /* a tensor kept for backward, with the version it had */

typedef struct tenon_autograd_api {
  uint32_t struct_size;
  uint32_t version;
  /* Rules are looked up by operator; the first registered wins, unless a later one has REPLACE. */
  tenon_status (*rule_register)(const tenon_grad_rule*, tenon_err*);
  /* -- tensors -------------------------------------------------------------------------------- */
  int32_t (*requires_grad)(const tenon_tensor*);
  /* Leaves only, floating or complex dtypes only. */
  tenon_status (*set_requires_grad)(tenon_tensor*, int32_t on, tenon_err*);
  int32_t (*is_leaf)(const tenon_tensor*);
  tenon_tensor* (*grad)(const tenon_tensor*);                              /* borrowed or NULL */
  tenon_status (*set_grad)(tenon_tensor*, tenon_tensor* grad, tenon_err*); /* NULL clears */
  const char* (*grad_fn)(const tenon_tensor*); /* operator that made it; NULL for leaves */
  tenon_status (*retain_grad)(tenon_tensor*, tenon_err*);
  /* Same storage, no history. `*out` owned. */
  tenon_status (*detach)(tenon_tensor*, tenon_tensor** out, tenon_err*);
  tenon_status (*hook_add)(tenon_tensor*, tenon_grad_hook_fn, void* user, tenon_drop_fn drop,
                           uint64_t* id, tenon_err*);
  tenon_status (*hook_remove)(tenon_tensor*, uint64_t id, tenon_err*);
  /* -- engine --------------------------------------------------------------------------------- */
  int32_t (*enabled)(void);           /* is recording on for this thread? */
  int32_t (*set_enabled)(int32_t on); /* returns the previous state */
  /* Accumulate into the .grad of leaves (and retained tensors). grads[i] NULL: ones, for a tensor of
   * one element only. */
  tenon_status (*backward)(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                           uint32_t flags, tenon_err*);
  /* Return gradients with respect to `inputs` in `results` (owned); .grad is left alone. */
  tenon_status (*gradients)(tenon_tensor* const* outputs, tenon_tensor* const* grads, uint32_t n,
                            tenon_tensor* const* inputs, uint32_t ninputs, tenon_tensor** results,
                            uint32_t flags, tenon_err*);
  /* -- custom functions ----------------------------------------------------------------------- */
  /* Attach history to `outputs`, computed from `inputs` with recording off. No-op if no input
   * requires grad or recording is off: turn it on again before. On TENON_OK `user` belongs to the
   * node; `drop(user)` runs when that dies, at once if nothing was recorded. Outputs that are also inputs count as
   * modified in place. */
  tenon_status (*record)(const char* name, tenon_tensor* const* inputs, uint32_t ninputs,
                         tenon_tensor* const* outputs, uint32_t noutputs, tenon_custom_backward_fn,
                         void* user, tenon_drop_fn drop, tenon_err*);
  tenon_status (*saved_create)(tenon_tensor*, int32_t is_output, tenon_saved** out, tenon_err*);
  /* Fails if the tensor was modified in place since. `*out` owned. */
  tenon_status (*saved_unpack)(tenon_saved*, tenon_tensor** out, tenon_err*);
  void (*saved_destroy)(tenon_saved*);
  /* -- appended to version 1: present if struct_size covers them -------------------------------- */
  /* A layer that changes how the forward pass computes, as mixed precision does, is off on a
   * thread while a backward pass runs there: gradients are computed as their rules say. What a hook or a
   * custom function enables by itself is on inside it. `layer` is an id of layer_register. */
  void (*turn_off_in_backward)(int32_t layer);
  /* What tells the recorded call apart that made a tensor, while it lives; NULL: none was recorded. */
  const void* (*node)(const tenon_tensor*);
  /* The recorded call whose gradient this thread computes; NULL outside of backward passes. */
  const void* (*running_node)(void);
  /* Make `hooks` those of this thread, NULL: none; returns the hooks before. `hooks` and `user` must
   * live until others are set. */
  const tenon_saved_hooks* (*set_saved_hooks)(const tenon_saved_hooks* hooks);
  /* Call the function with .grad when that has the whole gradient of a backward; no replacement is
   * read. Leaves only. Taken off by hook_remove. */
  tenon_status (*hook_add_after_accumulate)(tenon_tensor* leaf, tenon_grad_hook_fn, void* user,
                                            tenon_drop_fn drop, uint64_t* id, tenon_err*);
} tenon_autograd_api;

#ifdef __cplusplus
}
#endif
#endif /* TENON_SERVICES_AUTOGRAD_H_ */
