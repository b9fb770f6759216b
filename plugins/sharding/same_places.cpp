// SPDX-License-Identifier: Apache-2.0
// The commonest call, without the lists that others need: an elementwise operator of tensors that lie where the others lie.
// Nothing moves, whatever its rules say of sums, and the result lies there, too.
#include <algorithm>

#include "operators.hpp"
#include "same_places.hpp"

namespace tenon::sharding {

tenon_status call_in_same_places(const tenon_op* op, const tenon_op_def& def,
                                 const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                 uint32_t nouts, tenon_err* err) {
  constexpr uint32_t kMaxArguments = 8,
                     kOthers = TENON_OP_COMPOSITE | TENON_OP_RANDOM | TENON_OP_VIEW;
  if (!(def.flags & TENON_OP_ELEMENTWISE) || def.flags & kOthers || nouts != 1 ||
      outs[0].tag != TENON_VALUE_NONE || nargs > kMaxArguments ||
      def.shape != TENON_SHAPE_BROADCAST)
    return TENON_LAYER_DECLINED;
  tenon_value local[kMaxArguments];
  const tenon_tensor* first = nullptr;
  View at;
  for (uint32_t i = 0; i < nargs; ++i) {
    local[i] = args[i];
    if (args[i].tag == TENON_VALUE_TENSORS) return TENON_LAYER_DECLINED;
    if (args[i].tag != TENON_VALUE_TENSOR) continue;
    const auto* tensor = static_cast<const tenon_tensor*>(args[i].v.p);
    if (!tensor) continue;
    const View view = tensor == first ? at : view_of(tensor);
    if (!view.mesh) return TENON_LAYER_DECLINED;
    if (!first) {
      for (uint32_t a = 0; a < view.mesh->ndim; ++a)
        if (view.at[a].is_partial()) return TENON_LAYER_DECLINED;
      first = tensor, at = view;
    } else if (tensor != first &&
               (view.mesh != at.mesh || view.at != at.at || tensor->ndim != first->ndim ||
                !std::equal(first->shape, first->shape + first->ndim, tensor->shape))) {
      return TENON_LAYER_DECLINED;
    }
    local[i] = boxed(view.local);
  }
  if (!first) return TENON_LAYER_DECLINED;
  tenon_value result = kNoValue;
  TENON_TRY(host->op_call_below(layer, op, local, nargs, &result, 1, err));
  const Tensor part = Tensor::adopt(static_cast<tenon_tensor*>(result.v.p));
  tenon_tensor* made;
  TENON_TRY(create_at(*at.mesh, first->ndim, first->shape, part.get(), at.at, false, &made, err));
  outs[0] = boxed(made);
  return TENON_OK;
}

}  // namespace tenon::sharding
