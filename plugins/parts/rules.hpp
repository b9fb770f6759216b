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
// Of a sparse tensor: one of its kind of which nothing is stored. Blocks keep their size, and indices their dtypes.
Result zeros_like(Scope& scope, const Call& call);
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

// One number for the indices of each stored element, ascending with them, and the way back to `axes` rows of indices.
// Indices that lie outside are errors that name their position.
Tensor keys_of(Scope& scope, const Composed& coo, const std::vector<int64_t>& shape);
Tensor indices_of(Scope& scope, Tensor keys, int64_t axes, const std::vector<int64_t>& shape);
// The indices along one axis as int64, of which none lies outside of `size`.
Tensor checked_along(Scope& scope, const Composed& coo, int64_t axis, int64_t size);
inline int64_t index_axes(const Composed& coo) { return coo.parts[0]->shape[0]; }

// -- compressed kinds: indptr [rows + 1], indices [stored], values [stored]; csc is csr of the transpose, and elements of
// -- bsr are blocks ---------------------------------------------------------------------------------------
extern const Kind kCsr, kCsc, kBsr;
enum { kIndptr, kIndices, kStored };
inline bool is_compressed(const Kind* kind) {
  return kind == &kCsr || kind == &kCsc || kind == &kBsr;
}
tenon_status call_compressed(const tenon_op* op, tenon_value* args, uint32_t nargs,
                             tenon_value* outs, uint32_t nouts, tenon_err* err);
// A matrix of kind csr as one of kind csc that is its transpose, and the other way round: of the same parts.
Tensor flipped(Scope& scope, const Tensor& x);
// What is stored by its two indices: of csc those of the transpose, of bsr blocks.
Tensor pairs_of(Scope& scope, const Tensor& x);
// A matrix of a compressed kind of sorted pairs.
Tensor of_pairs(Scope& scope, const Tensor& pairs, const Kind* kind,
                const std::vector<int64_t>& shape);
// Any kind, as coo of elements, and as csr.
Tensor as_coo(Scope& scope, const Tensor& x);
Tensor as_csr(Scope& scope, const Tensor& x);
// A coo tensor that is sorted, and whose indices do not repeat, as another kind.
Tensor of_sorted_coo(Scope& scope, const Tensor& coo, const Kind* kind);
// The tensor itself if its indices ascend and none repeats; else another of its kind that is so, and equal.
Tensor distinct(Scope& scope, const Tensor& x);
// Matrices of blocks [rows, columns] in bsr.
inline int64_t block_size(const Composed& bsr, int axis) { return bsr.values()->shape[1 + axis]; }

// -- what several kinds share ---------------------------------------------------------------------------
Result matmul(Scope& scope, const Call& call);
// Of two sparse tensors, or a sparse and a dense one, that an elementwise operator takes.
tenon_status call_two(const Call& call);
// Sums of truths are truths, and those of integers wrap around: of equal indices they come before any conversion.
inline bool has_exact_sums(int32_t dtype) { return dtype >= TENON_DTYPE_F8E4M3; }
Tensor with_exact_sums(Scope& scope, const Tensor& x, int32_t dtype);
// The dtype of the sum of elements of this one.
int32_t accumulated(int32_t dtype);
// Of coo along the axes that the call names; and of how many elements each result of such a call is the sum.
Result sum_along(Scope& scope, const Call& call);
int64_t summed_elements(const Call& call);
Result reshape(Scope& scope, const Call& call);
Result concat(Scope& scope, const Call& call);
// Does the operator give 0 where the composed tensors among its arguments are 0?
bool is_zero_at_zero(Scope& scope, const Call& call);
// Views, which are no views of memory here: transposes, slices, selections.
extern const std::span<const NamedRule> kViewRules;

// -- ragged: offsets [n + 1], values [total, ...]; what is absent is no zero -----------------------------
extern const Kind kRagged;
tenon_status call_ragged(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                         uint32_t nouts, tenon_err* err);
Tensor ragged_to_dense(Scope& scope, const Tensor& x);

// -- conversions ----------------------------------------------------------------------------------------
tenon_status convert(tenon_tensor* x, const char* layout, tenon_tensor** out, tenon_err* err);
tenon_status coalesce(tenon_tensor* x, tenon_tensor** out, tenon_err* err);

}  // namespace tenon::parts
