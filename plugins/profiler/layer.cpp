// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>

#include "recorder.hpp"

namespace tenon::profiler {

int32_t layer = -1;
constinit thread_local ThreadState state;

namespace {

constexpr uint32_t kMaxResults = 32;

// Results that the call allocated are the caller's only if it succeeds.
void drop_new(tenon_value* outs, const tenon_value* given, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; ++i) {
    if (given[i].tag != TENON_VALUE_NONE) continue;
    if (outs[i].tag == TENON_VALUE_TENSOR)
      host->tensor_release(static_cast<tenon_tensor*>(outs[i].v.p));
    if (outs[i].tag == TENON_VALUE_TENSORS)
      host->list_release(static_cast<tenon_tensor**>(outs[i].v.p), outs[i].aux);
    outs[i] = kNoValue;
  }
}

tenon_status call_observed(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                           uint32_t nouts, tenon_err* err) {
  tenon_value given[kMaxResults];
  std::copy_n(outs, std::min(nouts, kMaxResults), given);
  const tenon_status status = host->op_call_below(layer, op, args, nargs, outs, nouts, err);
  const tenon_observer observer = state.observer;
  state.is_observing = true;
  const tenon_status seen =
      observer.after(observer.user, op, args, nargs, outs, nouts, status, err);
  state.is_observing = false;
  if (status != TENON_OK || seen == TENON_OK) return status;
  drop_new(outs, given, std::min(nouts, kMaxResults));
  return seen;
}

tenon_status call_below(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                        uint32_t nouts, tenon_err* err) {
  if (state.observer.after) return call_observed(op, args, nargs, outs, nouts, err);
  return host->op_call_below(layer, op, args, nargs, outs, nouts, err);
}

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  if (state.is_observing) return host->op_call_below(layer, op, args, nargs, outs, nouts, err);
  if (!state.recorder) return call_below(op, args, nargs, outs, nouts, err);
  const uint64_t begin = ticks();
  const tenon_status status = call_below(op, args, nargs, outs, nouts, err);
  if (state.recorder)  // what ran may have stopped it
    state.recorder->add_call(begin, ticks(), op, args, nargs, outs, nouts, status);
  return status;
}

}  // namespace tenon::profiler
