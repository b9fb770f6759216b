// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <memory>

namespace tenon::amp {

int32_t layer = -1;

// On the heap: there is little room for variables of threads in a library that is opened late.
ThreadState& thread_state() {
  static thread_local std::unique_ptr<ThreadState> state;
  if (!state) state = std::make_unique<ThreadState>();
  return *state;
}

namespace {

constexpr uint32_t kMaxArguments = 64;

bool is_castable(int32_t dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 || dtype == TENON_DTYPE_F32;
}

// Floats that must not lose or gain digits behind the user's back.
bool is_other_float(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_C128 && !is_castable(dtype);
}

// visit(tensor) for every tensor among the arguments, also in lists.
template <class Visit>
void for_each_tensor(const tenon_value* args, uint32_t nargs, Visit&& visit) {
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) visit(*static_cast<tenon_tensor*>(args[i].v.p));
    if (args[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(args[i].v.p);
    for (uint32_t k = 0; k < args[i].aux; ++k)
      if (list[k]) visit(*list[k]);
  }
}

// The dtype that the call's floats are to have; -1: leave them.
int32_t find_dtype(const Region& region, const tenon_op* op, const tenon_value* args,
                   uint32_t nargs) {
  const uint32_t to = region.class_of(op);
  if (to == TENON_AMP_KEEP) return -1;
  int32_t widest = -1;
  bool is_mixed = false, has_others = false;
  for_each_tensor(args, nargs, [&](const tenon_tensor& tensor) {
    has_others |= is_other_float(tensor.dtype);
    if (!is_castable(tensor.dtype)) return;
    is_mixed |= widest >= 0 && widest != tensor.dtype;
    widest = widest < 0 ? tensor.dtype : host->dtype_promote(widest, tensor.dtype);
  });
  if (widest < 0 || has_others) return -1;
  const int32_t wanted = to == TENON_AMP_LOW    ? region.dtype()
                         : to == TENON_AMP_HIGH ? TENON_DTYPE_F32
                                                : widest;
  return is_mixed || widest != wanted ? wanted : -1;
}

const tenon_op* cast_operator() {
  static const tenon_op* op = host->op_find("tenon::cast");
  return op;
}

// The arguments of one call, cast. The host and autograd keep what they need of the results.
class CastArguments {
 public:
  // Throws what `err` says.
  CastArguments(const tenon_value* args, uint32_t nargs, int32_t dtype, tenon_err* err)
      : dtype_(dtype), err_(err) {
    std::copy_n(args, nargs, values);
    for (uint32_t i = 0; i < nargs; ++i) {
      if (values[i].tag == TENON_VALUE_TENSOR) {
        values[i].v.p = cast(static_cast<tenon_tensor*>(values[i].v.p));
      } else if (values[i].tag == TENON_VALUE_TENSORS) {
        auto* list = static_cast<tenon_tensor* const*>(values[i].v.p);
        auto& copy = lists_.emplace_back(list, list + values[i].aux);
        for (tenon_tensor*& element : copy)
          if (element) element = cast(element);
        values[i].v.p = copy.data();
      }
    }
  }

  tenon_value values[kMaxArguments];

 private:
  tenon_tensor* cast(tenon_tensor* tensor) {
    if (!is_castable(tensor->dtype) || tensor->dtype == dtype_) return tensor;
    tenon_value args[2] = {boxed(tensor), {.tag = TENON_VALUE_DTYPE, .v = {.i = dtype_}}};
    tenon_value out = {};
    const tenon_status status = host->op_call(cast_operator(), args, 2, &out, 1, err_);
    if (status != TENON_OK) throw Error(status, "a cast failed");
    held_.push_back(Tensor::adopt(static_cast<tenon_tensor*>(out.v.p)));
    tenon_amp_casts& casts = thread_state().casts;
    ++(dtype_ == TENON_DTYPE_F32 ? casts.to_high : casts.to_low);
    casts.bytes += static_cast<uint64_t>(tensor->numel) * host->dtype_size(dtype_);
    return held_.back().get();
  }

  const int32_t dtype_;
  tenon_err* const err_;
  std::vector<Tensor> held_;
  std::vector<std::vector<tenon_tensor*>> lists_;
};

bool is_given(const tenon_value& out) { return out.tag != TENON_VALUE_NONE; }

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const std::vector<Region>& regions = thread_state().regions;
  const bool may_cast = !regions.empty() && regions.back().casts() && nargs <= kMaxArguments &&
                        std::none_of(outs, outs + nouts, is_given);
  const int32_t dtype = may_cast ? find_dtype(regions.back(), op, args, nargs) : -1;
  if (dtype < 0) return host->op_call_below(layer, op, args, nargs, outs, nouts, err);
  tenon_status status = TENON_OK;
  const tenon_status escaped = guarded(err, [&] {
    CastArguments cast(args, nargs, dtype, err);
    status = host->op_call_below(layer, op, cast.values, nargs, outs, nouts, err);
  });
  return escaped == TENON_OK ? status : escaped;
}

}  // namespace tenon::amp
