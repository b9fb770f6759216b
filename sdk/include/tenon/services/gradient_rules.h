/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "gradient_rules", version 1: what the service "autograd" knows of operators and keeps of calls, for another way
 * of differentiation (service "forward"). Offered by the same plugin. */
#ifndef TENON_SERVICES_GRADIENT_RULES_H_
#define TENON_SERVICES_GRADIENT_RULES_H_

#include <tenon/services/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_GRADIENT_RULES_SERVICE "gradient_rules"
#define TENON_GRADIENT_RULES_VERSION 1u

typedef struct tenon_gradient_rules_api {
  uint32_t struct_size;
  uint32_t version;
  /* The rule of an operator; NULL: it has none. Lives as long as the process. */
  const tenon_grad_rule* (*rule)(const tenon_op*);
  /* Call a rule that rule() returned: as tenon_backward_fn. */
  tenon_status (*run)(const tenon_grad_rule*, const tenon_value* args, uint32_t nargs,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t needs, tenon_value* grad_args, tenon_err*);
  /* The tensors that stand in for a result in the call that was recorded have in the extension slot
   * what `copy` makes of the result's value (NULL: nothing); `drop` gets a value that another takes the place of. At
   * most 4 slots. [init] */
  tenon_status (*slot_of_stand_ins)(int32_t slot, void* (*copy)(const void*), tenon_drop_fn drop,
                                    tenon_err*);
  /* `result` has got values in such slots since the call returned: its stand-ins get them now. */
  void (*update_stand_ins)(const tenon_tensor* result);
  /* Does this thread keep saved tensors in another form? Then there are no stand-ins. */
  int32_t (*has_saved_hooks)(void);
} tenon_gradient_rules_api;

#ifdef __cplusplus
}
#endif
#endif /* TENON_SERVICES_GRADIENT_RULES_H_ */
