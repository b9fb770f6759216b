// SPDX-License-Identifier: Apache-2.0
// Losses and distances of sequences of labels.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// Labels [N, ...] and two lengths [N].
tenon_status check_batch(const char* op, int64_t batch, const tenon_tensor& labels,
                         const tenon_value* lengths, tenon_err* err) {
  const tenon_tensor &input = tensor_of(lengths[0]), &target = tensor_of(lengths[1]);
  const int64_t wanted[] = {batch};
  if (labels.ndim == 2 && labels.shape[0] == batch && std::ranges::equal(shape_of(input), wanted) &&
      std::ranges::equal(shape_of(target), wanted))
    return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected targets [%lld, S], input_lengths [%lld] and target_lengths [%lld], "
                      "got shapes %s, %s and %s",
                      ll(batch), ll(batch), ll(batch), shape_text(labels).c_str(),
                      shape_text(input).c_str(), shape_text(target).c_str());
}

}  // namespace

TENON_INFER(ctc_loss) {
  const char* op = "ctc_loss";
  const tenon_tensor& log_probs = tensor_of(args[0]);
  TENON_TRY(expect_ndim(op, "log_probs", log_probs, 3, "[T, N, C]", err));
  TENON_TRY(check_batch(op, log_probs.shape[1], tensor_of(args[1]), args + 2, err));
  const int64_t blank = int_of(args[4]), classes = log_probs.shape[2];
  if (blank < 0 || blank >= classes)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a blank from 0 to %lld, got %lld", ll(classes - 1), ll(blank));
  const int64_t shape[] = {log_probs.shape[1]};
  set_new(outs[0], log_probs.dtype, shape);
  return TENON_OK;
}

TENON_INFER(edit_distance) {
  const char* op = "edit_distance";
  const tenon_tensor &x = tensor_of(args[0]), &target = tensor_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 2, "[N, S]", err));
  TENON_TRY(check_batch(op, x.shape[0], target, args + 2, err));
  const int64_t shape[] = {x.shape[0]};
  set_new(outs[0], TENON_DTYPE_F32, shape);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
