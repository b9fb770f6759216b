// SPDX-License-Identifier: Apache-2.0
// Decompositions that compute float16, bfloat16 and float8 in float32 (`dtypes: {interior:
// float32}`): tensors are converted before the first step and results rounded once, after the last.
// The decomposition then gives the result of a kernel for the whole operator, which rounds once.
#pragma once

#include <tenon/services/amp.h>
#include <tenon/unbox.h>
#include <tenon/ops/call.hpp>
#include <tenon/ops/primitive_calls.hpp>

#include <algorithm>

namespace tenon::interior {

struct Rule {
  uint64_t tensors;  // bit of every tensor parameter that is computed with
  uint64_t rounded;  // bit of every result that has the operator's own dtype
  bool first;        // that is the first tensor's dtype, otherwise what all of them promote to
  bool stays_wide = false;    // a composite of `amp: high`: float32 is kept where amp casts
  bool takes_floats = false;  // integers and bool count as float32 (or float64 beside it)
};

// Are floats cast on this thread? Asked only where narrow ones arrive.
inline bool is_in_amp_region() {
  auto* amp =
      static_cast<const tenon_amp_api*>(host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION));
  return amp && amp->dtype() >= 0;
}

using primitive::is_narrow_float;

// `x` in another dtype. Layers see the conversion, so gradients pass through it.
inline Tensor cast(Scope& scope, const TensorArg& x, int32_t dtype) {
  static constinit call::Operator op("cast");
  tenon_value args[] = {x.value(), call::boxed_dtype(dtype)};
  return call::result(scope, op, args, 2);
}

// `x`, in float32 if it is narrower.
inline Tensor widened(Scope& scope, const Tensor& x) {
  if (!scope.ok() || !x || !is_narrow_float(x->dtype)) return x;
  return cast(scope, x, TENON_DTYPE_F32);
}

inline bool is_whole(int32_t dtype) { return dtype < TENON_DTYPE_F8E4M3; }  // an integer or bool

// `decompose(args)` with narrow floats in `args` converted, and integers if the rule says so: they would
// wrap around in the steps. It sets `outs`.
template <class Decompose>
tenon_status in_float32(const Rule& rule, const tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err, Decompose&& decompose) {
  constexpr uint32_t kMaxParams = 32;
  int32_t dtype = -1, widened_to = TENON_DTYPE_F32;
  uint64_t narrow = 0;
  for (uint32_t i = 0; i < nargs; ++i) {
    if (!(rule.tensors >> i & 1) || args[i].tag != TENON_VALUE_TENSOR) continue;
    const int32_t own = tenon_arg_tensor(&args[i])->dtype;
    if (is_narrow_float(own) || (rule.takes_floats && is_whole(own))) narrow |= uint64_t{1} << i;
    if (rule.takes_floats && own == TENON_DTYPE_F64) widened_to = own;
    if (dtype < 0)
      dtype = own;
    else if (!rule.first && own != dtype)
      dtype = host->dtype_promote(dtype, own);
  }
  if (!narrow) return decompose(args);

  Scope scope(err);
  tenon_value wide[kMaxParams];
  Tensor held[kMaxParams];
  std::copy_n(args, nargs, wide);
  for (uint32_t i = 0; i < nargs; ++i) {
    if (!(narrow >> i & 1)) continue;
    held[i] = cast(scope, args[i], widened_to);
    wide[i] = TensorArg(held[i]).value();
  }
  if (!scope.ok()) return scope.status();
  if (const tenon_status status = decompose(wide); status != TENON_OK) return status;
  if (rule.stays_wide && is_in_amp_region()) return TENON_OK;
  for (uint32_t i = 0; i < nouts && is_narrow_float(dtype); ++i) {
    if (!(rule.rounded >> i & 1) || outs[i].tag != TENON_VALUE_TENSOR) continue;
    if (tenon_arg_tensor(&outs[i])->dtype != TENON_DTYPE_F32) continue;
    Tensor rounded = cast(scope, outs[i], dtype);
    if (!scope.ok()) return scope.status();
    Tensor::adopt(static_cast<tenon_tensor*>(outs[i].v.p));  // releases the wide result
    outs[i] = boxed(rounded.release());
  }
  return TENON_OK;
}

}  // namespace tenon::interior
