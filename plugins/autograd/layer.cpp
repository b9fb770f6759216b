// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <bit>

#include "operator_node.hpp"
#include "operators.hpp"
#include "view_nodes.hpp"
#include "views.hpp"

namespace tenon::autograd {
namespace {

struct Inputs {
  uint64_t needs = 0;  // arguments with a gradient for which the operator has a rule
  Variable* variables[kMaxArguments];
};

[[gnu::noinline]] tenon_status find_in_list(const tenon_value& list, bool& found, tenon_err* err) {
  auto* tensors = static_cast<tenon_tensor* const*>(list.v.p);
  for (uint32_t k = 0; k < list.aux; ++k) {
    Variable* variable = nullptr;
    if (tensors[k]) TENON_TRY(current_variable(tensors[k], &variable, err));
    found |= variable != nullptr;
  }
  return TENON_OK;
}

inline tenon_status find_inputs(const OperatorInfo& info, const tenon_value* args, uint32_t nargs,
                                Inputs& inputs, tenon_err* err) {
  uint64_t rest = info.diff_args;
  for (uint32_t i = 0; i < nargs; ++i, rest >>= 1) {
    bool found = false;
    if (!(rest & 1)) continue;
    if (args[i].tag == TENON_VALUE_TENSOR) {
      auto* tensor = static_cast<tenon_tensor*>(args[i].v.p);
      if (!(tensor->layers & place.bit) && !follows_base(*tensor)) continue;
      TENON_TRY(current_variable(tensor, &inputs.variables[i], err));
      found = inputs.variables[i] != nullptr;
    } else if (args[i].tag == TENON_VALUE_TENSORS) [[unlikely]] {
      TENON_TRY(find_in_list(args[i], found, err));
    }
    inputs.needs |= uint64_t{found} << i;
  }
  return TENON_OK;
}

bool can_have_history(const tenon_value& out) {
  return out.tag == TENON_VALUE_TENSOR && is_differentiable(as_tensor(out)->dtype);
}

// Results that the call allocated are the caller's only if it succeeds.
void drop_results(tenon_value* outs, uint32_t nouts) {
  for (uint32_t k = 0; k < nouts; ++k) {
    if (outs[k].tag == TENON_VALUE_TENSOR) host->tensor_release(as_tensor(outs[k]));
    outs[k] = kNoValue;
  }
}

// Is the result a part of one argument, so that where it lies says all that its gradient reads? Of
// a view of the whole the operator's own gradient is another view, and cheaper. A built-in view
// that has an axis more than its base and fewer elements is made of windows, which may overlap:
// their gradients have to be added, and the operator's own gradient does that.
bool shows_a_part(const OperatorInfo& info, uint64_t needs, const tenon_value* args,
                  const tenon_value* outs) {
  if (!info.is_plain_view || needs != 1) return false;
  const tenon_tensor *from = as_tensor(args[0]), *part = as_tensor(outs[0]);
  return from && part->numel < from->numel && part->ndim <= from->ndim &&
         from->flags & TENON_TENSOR_CONTIGUOUS;
}

// Free a node that no tensor could take.
void free_unused(Node& node) {
  retain(node);
  release(node);
}

// -- results given by the caller: in-place and out= forms
// --------------------------------------------

// What the rule reads of arguments that are about to be overwritten has to be copied first.
struct Originals {
  tenon_value args[kMaxArguments];
  uint32_t versions[kMaxArguments];
  Tensor copies[kMaxResults];
};

tenon_status keep_originals(const OperatorInfo& info, uint64_t needs, const tenon_value* args,
                            uint32_t nargs, const tenon_value* outs, uint32_t nouts,
                            Originals& kept, tenon_err* err) {
  uint64_t reads = info.rule ? info.arguments_read(needs) : 0;
  for (uint32_t i = 0; i < nargs; ++i) {
    kept.args[i] = args[i];
    tenon_tensor* tensor = as_tensor(args[i]);
    if (!tensor || !(reads >> i & 1)) continue;
    for (uint32_t k = 0; k < nouts; ++k) {
      if (as_tensor(outs[k]) != tensor) continue;
      Tensor& copy = kept.copies[k];
      if (!copy) {
        RecordingScope off(false);
        TENON_TRY(clone(Tensor::borrow(tensor), &copy, err));
        if (Variable* variable = variable_of(tensor)) {  // so that the rule can be differentiated
          retain(variable->node());
          attach(copy.get(), variable, kStandIn);
        }
      }
      kept.args[i].v.p = copy.get();
      break;
    }
    kept.versions[i] = version_of(as_tensor(kept.args[i]));
  }
  return TENON_OK;
}

bool is_argument(const tenon_tensor* tensor, const tenon_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; ++i)
    if (as_tensor(args[i]) == tensor) return true;
  return false;
}

[[gnu::noinline]] tenon_status call_into(const OperatorInfo& info, tenon_value* args,
                                         uint32_t nargs, tenon_value* outs, uint32_t nouts,
                                         tenon_err* err) {
  Inputs inputs;
  TENON_TRY(find_inputs(info, args, nargs, inputs, err));
  bool concerns_us = inputs.needs != 0;
  for (uint32_t k = 0; k < nouts; ++k)
    concerns_us |= can_have_history(outs[k]) && has_history(as_tensor(outs[k]));
  if (!concerns_us) return host->op_call_below(place.layer, info.op, args, nargs, outs, nouts, err);

  // A copy or a fill overwrites its output on purpose: nothing of the former history remains.
  bool overwrites = info.op_flags & (TENON_OP_MATERIALIZE | TENON_OP_CONVERT) || !info.has_tensors;
  uint32_t given = 0;
  for (uint32_t k = 0; k < nouts; ++k) {
    if (outs[k].tag == TENON_VALUE_NONE) continue;
    given |= 1u << k;
    if (!can_have_history(outs[k])) continue;
    tenon_tensor* out = as_tensor(outs[k]);
    TENON_TRY(check_writable(short_name(info.name), out,
                             overwrites || is_argument(out, args, nargs), err));
  }
  Originals kept;
  TENON_TRY(keep_originals(info, inputs.needs, args, nargs, outs, nouts, kept, err));
  TENON_TRY(host->op_call_below(place.layer, info.op, args, nargs, outs, nouts, err));

  Node* node = nullptr;
  if (inputs.needs) {
    node = record_call(
        {info, kept.args, nargs, outs, nouts, inputs.needs, inputs.variables, kept.versions}, err);
    if (!node) return fail_host_memory(err);
    retain(*node);
  }
  tenon_status status = TENON_OK;
  for (uint32_t k = 0; k < nouts; ++k) {
    if (!can_have_history(outs[k])) continue;
    tenon_tensor* out = as_tensor(outs[k]);
    Variable* fresh = node ? &node->variables()[k] : nullptr;
    if (node) retain(*node);
    if (given >> k & 1) {
      tenon_status written = set_history(out, fresh, err);
      if (status == TENON_OK) status = written;
    } else if (fresh) {
      attach(out, fresh);
    }
  }
  if (node) release(*node);
  return status;
}

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const OperatorInfo* info = operator_info(op);
  if (!info) [[unlikely]]
    return fail_host_memory(err);
  if (nouts > kMaxResults || nargs > kMaxArguments) [[unlikely]]
    return fail_format(
        err, TENON_UNSUPPORTED,
        "[%s] gradients: expected at most %u arguments and %u results, got %u and %u",
        short_name(info->name), kMaxArguments, kMaxResults, nargs, nouts);
  for (uint32_t k = 0; k < nouts; ++k)
    if (outs[k].tag != TENON_VALUE_NONE) return call_into(*info, args, nargs, outs, nouts, err);

  Inputs inputs;
  TENON_TRY(find_inputs(*info, args, nargs, inputs, err));
  TENON_TRY(host->op_call_below(place.layer, op, args, nargs, outs, nouts, err));
  if (!inputs.needs) return TENON_OK;

  Node* node;
  if (shows_a_part(*info, inputs.needs, args, outs))
    node = new_view_node(*as_tensor(outs[0]), *as_tensor(args[0]), inputs.variables[0], info);
  else
    node = record_call({*info, args, nargs, outs, nouts, inputs.needs, inputs.variables, nullptr},
                       err);
  if (!node) [[unlikely]] {
    drop_results(outs, nouts);
    return err && host->err_code(err) != TENON_OK ? host->err_code(err) : fail_host_memory(err);
  }
  uint32_t holders = 0;
  for (uint32_t k = 0; k < nouts; ++k) {
    if (!can_have_history(outs[k])) continue;
    tenon_tensor* out = as_tensor(outs[k]);
    Variable* variable = &node->variables()[k];
    if (info->op_flags & TENON_OP_VIEW && host->tensor_base(out)) mark_view(out, *variable);
    attach(out, variable);
    ++holders;
  }
  if (holders == 0) [[unlikely]]
    free_unused(*node);
  else
    node->references.store(holders, std::memory_order_relaxed);
  return TENON_OK;
}

}  // namespace tenon::autograd
