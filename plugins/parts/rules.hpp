// SPDX-License-Identifier: Apache-2.0
// What the layer does with a call that takes composed tensors: the rule of the operator for the kind, what is derived of
// the operator itself, what is common to all kinds, or a refusal that says what to do.
#pragma once

#include "operators.hpp"

#include <span>
#include <string_view>

namespace tenon::parts {

// One call that the layer sees.
struct Call {
  const tenon_op* op;
  tenon_value* args;
  uint32_t nargs;
  tenon_value* outs;
  uint32_t nouts;
  tenon_err* err;

  const tenon_op_def& def() const { return *host->op_def(op); }
  // "add" for "tenon::add".
  std::string_view name() const {
    const std::string_view full = def().name;
    return full.starts_with("tenon::") ? full.substr(7) : full;
  }
  Composed* composed(uint32_t i) const { return i < nargs ? composed_of(args[i]) : nullptr; }
  Tensor tensor(uint32_t i) const { return Tensor::borrow(as_tensor(args[i])); }
  bool is_number(uint32_t i) const;  // a number, or a tensor of no axes
  bool is_given(uint32_t i) const { return i < nargs && args[i].tag != TENON_VALUE_NONE; }
};

// The result of the only output. Empty: the scope has failed, or the rule does not apply (`declines`).
struct Result {
  Tensor tensor;
  bool declines = false;
};
inline Result declined() { return {{}, true}; }
using Rule = Result (*)(Scope&, const Call&);
struct NamedRule {
  std::string_view op;
  Rule rule;
};

// Hands a result over: to the caller, or by writing into the tensor that the caller gave.
tenon_status deliver(const Call& call, uint32_t index, Tensor result);
// Runs the rule of the call's operator in the table. TENON_LAYER_DECLINED: there is none, or it declines.
tenon_status run_rule(std::span<const NamedRule> rules, const Call& call);

// Elementwise operators whose value at 0 is 0 act on the stored elements alone.
tenon_status call_elementwise(const Call& call);
tenon_status call_with_number(const Call& call);
// Copies, conversions, moves, refusals.
tenon_status call_common(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                         uint32_t nouts, tenon_err* err);
// "[exp] ...", with the layout of the first composed tensor, and what to do.
tenon_status refuse(const Call& call, std::string_view why);

// -- coo: indices [axes, stored], values [stored, dense axes...] ----------------------------------------
extern const Kind kCoo;
tenon_status call_coo(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                      uint32_t nouts, tenon_err* err);
// Sorted by their indices, with the elements of equal ones added up.
Tensor coalesced(Scope& scope, const Tensor& x);
Tensor coo_to_dense(Scope& scope, const Tensor& x);
// Whether the stored elements are sorted by their indices and none of these repeat.
bool is_ascending(Scope& scope, const Tensor& x);
// x with the stored elements added.
Tensor added_to(Scope& scope, const Tensor& x, const Composed& coo, tenon_tensor* out = nullptr);

// -- csr: indptr [rows + 1], indices [stored], values [stored] ------------------------------------------
extern const Kind kCsr;
tenon_status call_csr(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                      uint32_t nouts, tenon_err* err);
Tensor csr_to_coo(Scope& scope, const Tensor& x);
Tensor coo_to_csr(Scope& scope, const Tensor& x);
// The tensor itself if the columns of every row ascend and none repeats; else another that is so, and equal.
Tensor csr_distinct(Scope& scope, const Tensor& x);

// -- conversions ----------------------------------------------------------------------------------------
tenon_status convert(tenon_tensor* x, const char* layout, tenon_tensor** out, tenon_err* err);
tenon_status coalesce(tenon_tensor* x, tenon_tensor** out, tenon_err* err);

}  // namespace tenon::parts
