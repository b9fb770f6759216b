// SPDX-License-Identifier: Apache-2.0
#include "record/layer.hpp"

#include <tenon/error.hpp>

#include <mutex>

#include "support/host.hpp"

namespace tenon::graph {

constinit thread_local ThreadState state;

namespace {

int32_t layer = -1;
std::mutex registration;

tenon_status call_below(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                        uint32_t nouts, tenon_err* err) {
  ++state.depth;
  const tenon_status status = host->op_call_below(layer, op, args, nargs, outs, nouts, err);
  --state.depth;
  return status;
}

// Results of a call that fails after all.
void drop_new(tenon_value* outs, uint32_t nouts, uint32_t given) {
  for (uint32_t i = 0; i < nouts; ++i) {
    if (given >> i & 1) continue;
    host->tensor_release(as_tensor(outs[i]));
    outs[i] = kNoValue;
  }
}

// Returns whether the call goes on although it cannot be recorded.
bool gives_up(Recording& recording, tenon_err* err) {
  if (err) recording.fail(host->err_text(err));
  if (!recording.is_over()) return false;
  if (err) host->err_clear(err);
  return true;
}

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  Recording* recording = current_recording();
  if (!recording) return host->op_call_below(layer, op, args, nargs, outs, nouts, err);
  if (recording->is_suspended()) {
    TENON_TRY(call_below(op, args, nargs, outs, nouts, err));
    return guarded(err, [&] { recording->see_unrecorded(outs, nouts); });
  }
  uint32_t given = 0;
  tenon_status status =
      guarded(err, [&] { given = recording->begin_call(op, args, nargs, outs, nouts); });
  if (status != TENON_OK)
    return gives_up(*recording, err) ? host->op_call_below(layer, op, args, nargs, outs, nouts, err)
                                     : status;
  TENON_TRY(call_below(op, args, nargs, outs, nouts, err));
  status = guarded(err, [&] { recording->end_call(outs); });
  if (status == TENON_OK || gives_up(*recording, err)) return TENON_OK;
  drop_new(outs, nouts, given);
  return status;
}

// Below gradients, so that what they call is seen; above the layers that watch kernels. As one of
// these it sees a composite as a whole where one kernel serves it.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_KERNELS | TENON_LAYER_NO_BIT,
    .name = "graph",
    .order = 900,
    .call = layer_call,
};

}  // namespace

tenon_status enable_layer(bool on, tenon_err* err) {
  std::lock_guard lock(registration);
  if (layer < 0) layer = host->layer_register(&kLayer, err);
  if (layer < 0) return host->err_code(err);
  host->layer_enable(layer, on);
  return TENON_OK;
}

}  // namespace tenon::graph
