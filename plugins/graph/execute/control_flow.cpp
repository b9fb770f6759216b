// SPDX-License-Identifier: Apache-2.0
#include "execute/control_flow.hpp"

#include <tenon/error.hpp>

#include <memory>
#include <utility>

#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Tensors that a run owns for a while.
class Owned {
 public:
  explicit Owned(size_t count) : tensors_(count) {}
  ~Owned() {
    for (tenon_tensor* tensor : tensors_) host->tensor_release(tensor);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  tenon_tensor** data() { return tensors_.data(); }
  tenon_tensor*& operator[](size_t i) { return tensors_[i]; }
  size_t size() const { return tensors_.size(); }
  void replace(Owned& other) { tensors_.swap(other.tensors_); }

 private:
  std::vector<tenon_tensor*> tensors_;
};

tenon_status read_truth(tenon_tensor* tensor, const char* what, bool& truth, tenon_err* err) {
  if (tensor->dtype != TENON_DTYPE_BOOL || tensor->numel != 1)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "%s: expected a bool tensor of one element, got %s %s; compare it, as in "
                       "x.sum() > 0",
                       what, host->dtype_name(tensor->dtype), shape_text(*tensor).c_str());
  return guarded(err, [&] {
    const Tensor readable = on_host(Tensor::borrow(tensor));
    truth = *static_cast<const uint8_t*>(readable->data) != 0;
  });
}

tenon_status call(const char* name, tenon_value* args, uint32_t nargs, tenon_tensor** out,
                  tenon_err* err) {
  const tenon_op* op = host->op_find(name);
  if (!op)
    return fail_format(err, TENON_NOT_FOUND,
                       "scan needs the operator `%s`; load the plugin standard_ops", name);
  tenon_value result = kNoValue;
  TENON_TRY(host->op_call(op, args, nargs, &result, 1, err));
  *out = as_tensor(result);
  return TENON_OK;
}

tenon_status select(tenon_tensor* x, int64_t index, tenon_tensor** out, tenon_err* err) {
  tenon_value args[] = {boxed(x), boxed(int64_t{0}), boxed(index)};
  return call("select", args, 3, out, err);
}

tenon_status stack(Owned& parts, tenon_tensor** out, tenon_err* err) {
  tenon_value args[] = {boxed(parts.data(), parts.size()), boxed(int64_t{0})};
  return call("stack", args, 2, out, err);
}

}  // namespace

tenon_status run_cond(const std::vector<tenon_tensor*>& operands, const RegionFn& then_region,
                      const RegionFn& else_region, tenon_tensor** results, tenon_err* err) {
  bool truth;
  TENON_TRY(read_truth(operands[0], "cond", truth, err));
  return (truth ? then_region : else_region)(operands.data() + 1, results);
}

tenon_status run_while(const std::vector<tenon_tensor*>& operands, uint32_t carried,
                       const RegionFn& condition, const RegionFn& body, tenon_tensor** results,
                       tenon_err* err) {
  std::vector<tenon_tensor*> inputs = operands;
  Owned current(carried);
  for (;;) {
    Owned condition_result(1);
    TENON_TRY(condition(inputs.data(), condition_result.data()));
    bool truth;
    TENON_TRY(read_truth(condition_result[0], "while_loop", truth, err));
    if (!truth) break;
    Owned next(carried);
    TENON_TRY(body(inputs.data(), next.data()));
    current.replace(next);
    for (uint32_t i = 0; i < carried; ++i) inputs[i] = current[i];
  }
  for (uint32_t i = 0; i < carried; ++i) host->tensor_retain(results[i] = inputs[i]);
  return TENON_OK;
}

tenon_status run_scan(const std::vector<tenon_tensor*>& operands, uint32_t carried,
                      uint32_t scanned, const RegionFn& body, std::vector<tenon_tensor*>& results,
                      tenon_err* err) {
  tenon_tensor* const* xs = operands.data() + carried;
  if (scanned == 0 || xs[0]->ndim == 0 || xs[0]->shape[0] == 0)
    return fail(err, TENON_INVALID_ARGUMENT,
                "scan: expected tensors with a first axis of at least one element, got none");
  const int64_t length = xs[0]->shape[0];
  for (uint32_t i = 0; i < scanned; ++i)
    if (xs[i]->ndim == 0 || xs[i]->shape[0] != length)
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "scan: expected a first axis of %lld for all tensors, got %s",
                         static_cast<long long>(length), shape_text(*xs[i]).c_str());
  const size_t stacked = results.size() - carried;
  std::vector<tenon_tensor*> inputs = operands;
  Owned current(carried);
  std::vector<std::unique_ptr<Owned>> parts;
  for (size_t i = 0; i < stacked; ++i)
    parts.push_back(std::make_unique<Owned>(static_cast<size_t>(length)));
  for (int64_t index = 0; index < length; ++index) {
    Owned slices(scanned), made(results.size()), next(carried);
    for (uint32_t i = 0; i < scanned; ++i) {
      TENON_TRY(select(xs[i], index, &slices[i], err));
      inputs[carried + i] = slices[i];
    }
    TENON_TRY(body(inputs.data(), made.data()));
    for (uint32_t i = 0; i < carried; ++i) next[i] = std::exchange(made[i], nullptr);
    for (size_t i = 0; i < stacked; ++i)
      (*parts[i])[static_cast<size_t>(index)] = std::exchange(made[carried + i], nullptr);
    current.replace(next);
    for (uint32_t i = 0; i < carried; ++i) inputs[i] = current[i];
  }
  Owned joined(stacked);
  for (size_t i = 0; i < stacked; ++i) TENON_TRY(stack(*parts[i], &joined[i], err));
  for (uint32_t i = 0; i < carried; ++i) host->tensor_retain(results[i] = inputs[i]);
  for (size_t i = 0; i < stacked; ++i) results[carried + i] = std::exchange(joined[i], nullptr);
  return TENON_OK;
}

}  // namespace tenon::graph
