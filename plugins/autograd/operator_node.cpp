// SPDX-License-Identifier: Apache-2.0
#include "operator_node.hpp"

#include <cxxabi.h>
#include <tenon/kernel.hpp>

#include <bit>
#include <vector>

#include "engine.hpp"
#include "operators.hpp"
#include "saved_hooks.hpp"
#include "stand_ins.hpp"

namespace tenon::autograd {
namespace {

const OperatorInfo& info_of(const Node& node) {
  return *static_cast<const OperatorInfo*>(node.detail);
}
const char* operator_name(const Node& node) { return info_of(node).name; }

const char* argument_name(const Node& node, uint32_t index) {
  const tenon_op_def* def = host->op_def(info_of(node).op);
  return def->params && index < def->nparams ? def->params[index].name : "?";
}

[[gnu::cold]] tenon_status fail_stale(const Node& node, const char* what, const char* name,
                                      uint32_t expected, uint32_t found, tenon_err* err) {
  return fail_format(
      err, TENON_FAILED_PRECONDITION,
      "gradient of [%s]: %s `%s` was modified in place after the call: expected version %u, found "
      "version %u; "
      "use the out-of-place form of the operator that modified it, or pass a clone() to [%s]",
      short_name(operator_name(node)), what, name, expected, found,
      short_name(operator_name(node)));
}

[[gnu::cold]] tenon_status fail_complex(const Node& node, tenon_err* err) {
  return fail_format(
      err, TENON_UNSUPPORTED,
      "[%s] has no gradient for complex tensors; expected real operands and results; compute on "
      "the real and imaginary parts, or detach() before",
      short_name(operator_name(node)));
}

// What the rule is called with. Temporaries live until it returns.
struct Unpacked {
  tenon_value args[kMaxArguments];
  tenon_tensor* outs[kMaxResults];
  Tensor few[4];
  uint32_t count = 0;
  std::vector<Tensor> many;
  std::vector<std::vector<tenon_tensor*>> lists;

  tenon_tensor* keep(Tensor tensor) {
    tenon_tensor* handle = tensor.get();
    if (count < std::size(few))
      few[count++] = std::move(tensor);
    else
      many.push_back(std::move(tensor));
    return handle;
  }
};

tenon_status stand_in(const Shape& shape, Unpacked& in, tenon_tensor** out, tenon_err* err) {
  TENON_TRY(host->tensor_create(TENON_DEVICE_META, shape.dtype, shape.ndim, shape.sizes, out, err));
  in.keep(Tensor::adopt(*out));
  return TENON_OK;
}

tenon_status unpack_list(const Node& node, uint32_t index, const tenon_value& value, Unpacked& in,
                         tenon_err* err) {
  auto* list = static_cast<tenon_tensor* const*>(value.v.p);
  const uint32_t* versions = versions_of(value);
  for (uint32_t k = 0; k < value.aux; ++k) {
    if (!list[k]) continue;
    uint32_t found = version_of(list[k]);
    if (found != versions[k])
      return fail_stale(node, "an element of", argument_name(node, index), versions[k], found, err);
  }
  in.args[index] = value;
  return TENON_OK;
}

tenon_status unpack_shapes(uint32_t index, const tenon_value& value, Unpacked& in, tenon_err* err) {
  auto& list = in.lists.emplace_back(value.aux, nullptr);
  auto* at = static_cast<const char*>(value.v.p);
  for (uint32_t k = 0; k < value.aux; ++k) {
    auto* shape = reinterpret_cast<const Shape*>(at);
    if (shape->ndim >= 0) TENON_TRY(stand_in(*shape, in, &list[k], err));
    at += Shape::bytes(shape->ndim < 0 ? 0 : shape->ndim);
  }
  in.args[index] = {TENON_VALUE_TENSORS, value.aux, {.p = list.data()}};
  return TENON_OK;
}

// The history of element `element` of argument `index`, if the node has an edge to it.
Variable* history_of(Node& node, uint32_t index, uint32_t element) {
  for (uint32_t i = 0; i < node.nedges; ++i)
    if (node.edges()[i].argument == index && i + element < node.nedges &&
        node.edges()[i + element].argument == index)
      return node.edges()[i + element].to;
  return nullptr;
}

tenon_status unpack_packed(Node& node, uint32_t index, uint32_t element, const Packed& packed,
                           bool with_history, Unpacked& in, tenon_tensor** out, tenon_err* err) {
  Tensor tensor;
  TENON_TRY(packed.unpack(with_history ? history_of(node, index, element) : nullptr,
                          short_name(operator_name(node)), &tensor, err));
  *out = in.keep(std::move(tensor));
  return TENON_OK;
}

tenon_status unpack_packed_list(Node& node, uint32_t index, const tenon_value& value,
                                bool with_history, Unpacked& in, tenon_err* err) {
  auto& list = in.lists.emplace_back(value.aux, nullptr);
  auto* packed = static_cast<Packed* const*>(value.v.p);
  for (uint32_t k = 0; k < value.aux; ++k)
    if (packed[k])
      TENON_TRY(unpack_packed(node, index, k, *packed[k], with_history, in, &list[k], err));
  in.args[index] = {TENON_VALUE_TENSORS, value.aux, {.p = list.data()}};
  return TENON_OK;
}

tenon_status unpack_arguments(Node& node, bool with_history, Unpacked& in, tenon_err* err) {
  uint32_t nargs = info_of(node).nparams;
  for (uint32_t i = node.nvalues; i < nargs; ++i) in.args[i] = kNoValue;
  for (uint32_t i = 0; i < node.nvalues; ++i) {
    const tenon_value& value = values_of(node)[i];
    switch (value.tag) {
      case TENON_VALUE_TENSOR: {
        uint32_t found = version_of(as_tensor(value));
        if (found != value.aux) [[unlikely]]
          return fail_stale(node, "argument", argument_name(node, i), value.aux, found, err);
        in.args[i] = boxed(as_tensor(value));
        break;
      }
      case TENON_VALUE_TENSORS:
        TENON_TRY(unpack_list(node, i, value, in, err));
        break;
      case kShapeOnly: {
        tenon_tensor* tensor;
        TENON_TRY(stand_in(*static_cast<const Shape*>(value.v.p), in, &tensor, err));
        in.args[i] = boxed(tensor);
        break;
      }
      case kShapesOnly:
        TENON_TRY(unpack_shapes(i, value, in, err));
        break;
      case kStale:
        return fail_stale(node, "argument", argument_name(node, i), value.aux,
                          static_cast<uint32_t>(value.v.i), err);
      case kPacked: {
        tenon_tensor* tensor;
        TENON_TRY(unpack_packed(node, i, 0, *static_cast<const Packed*>(value.v.p), with_history,
                                in, &tensor, err));
        in.args[i] = boxed(tensor);
        break;
      }
      case kPackedList:
        TENON_TRY(unpack_packed_list(node, i, value, with_history, in, err));
        break;
      default:
        in.args[i] = value;
        break;
    }
  }
  return TENON_OK;
}

tenon_status unpack_outputs(Node& node, bool with_history, Unpacked& in, tenon_err* err) {
  for (uint32_t k = 0; k < node.noutputs; ++k) in.outs[k] = nullptr;
  const Saved* saved = saved_outs_of(node);
  for (uint32_t rest = node.saved_outs; rest; rest &= rest - 1, ++saved) {
    auto k = static_cast<uint32_t>(std::countr_zero(rest));
    if (!saved->tensor) [[unlikely]] {
      Tensor tensor;
      TENON_TRY(saved->packed->unpack(with_history ? &node.variables()[k] : nullptr,
                                      short_name(operator_name(node)), &tensor, err));
      in.outs[k] = in.keep(std::move(tensor));
      continue;
    }
    uint32_t found = version_of(saved->tensor);
    if (found != saved->version) [[unlikely]] {
      const tenon_op_def* def = host->op_def(info_of(node).op);
      return fail_stale(node, "result", def->out_names ? def->out_names[k] : "out", saved->version,
                        found, err);
    }
    in.outs[k] = saved->tensor;
    if (!with_history) continue;
    // The rule differentiates through its own result: give it one that has this node as history.
    Tensor view;
    TENON_TRY(alias(saved->tensor, &view, err));
    share_slots(saved->tensor, view.get());
    retain(node);
    attach(view.get(), &node.variables()[k], kStandIn);
    in.outs[k] = in.keep(std::move(view));
  }
  return TENON_OK;
}

// Releases the gradients that the rule returned and that were not delivered.
struct GradArguments {
  explicit GradArguments(uint32_t count) : count(count) {
    for (uint32_t i = 0; i < count; ++i) values[i] = kNoValue;
  }
  ~GradArguments() {
    for (uint32_t i = 0; i < count; ++i) {
      if (values[i].tag == TENON_VALUE_TENSOR) host->tensor_release(as_tensor(values[i]));
      if (values[i].tag == TENON_VALUE_TENSORS)
        host->list_release(static_cast<tenon_tensor**>(values[i].v.p), values[i].aux);
    }
  }
  Tensor take(uint32_t argument, uint32_t element) {
    tenon_value& value = values[argument];
    if (value.tag == TENON_VALUE_TENSOR) {
      value.tag = TENON_VALUE_NONE;
      return Tensor::adopt(static_cast<tenon_tensor*>(value.v.p));
    }
    if (value.tag != TENON_VALUE_TENSORS || element >= value.aux) return {};
    return Tensor::adopt(std::exchange(static_cast<tenon_tensor**>(value.v.p)[element], nullptr));
  }
  uint32_t count;
  tenon_value values[kMaxArguments];
};

// A holomorphic function f has the gradient g * conj(f'). A rule for real numbers computes g * f' from
// g, and so its conjugate from conj(g).
[[gnu::cold]] tenon_status conjugate_arrived(tenon_tensor** grad_outs, uint32_t count, Unpacked& in,
                                             tenon_err* err) {
  for (uint32_t k = 0; k < count; ++k) {
    if (!grad_outs[k] || !is_complex(grad_outs[k]->dtype)) continue;
    Tensor conjugated;
    TENON_TRY(conjugate(Tensor::borrow(grad_outs[k]), &conjugated, err));
    grad_outs[k] = in.keep(std::move(conjugated));
  }
  return TENON_OK;
}

tenon_status backward(Node& node, Run& run, tenon_err* err) {
  uint64_t needs = 0;
  for (uint32_t i = 0; i < node.nedges; ++i)
    if (run.wants(node.edges()[i])) needs |= uint64_t{1} << node.edges()[i].argument;
  if (!needs) return TENON_OK;

  const OperatorInfo& info = info_of(node);
  Unpacked in;
  TENON_TRY(unpack_arguments(node, run.creates_graph(), in, err));
  TENON_TRY(unpack_outputs(node, run.creates_graph(), in, err));
  tenon_tensor* grad_outs[kMaxResults];
  for (uint32_t k = 0; k < node.noutputs; ++k) grad_outs[k] = node.variables()[k].arriving;
  const bool conjugates = node.flags & Node::kHolomorphic;
  if (conjugates) [[unlikely]]
    TENON_TRY(conjugate_arrived(grad_outs, node.noutputs, in, err));
  GradArguments gradients(info.nparams);
  tenon_status status;
  try {
    status = run_rule(*info.rule, in.args, info.nparams, in.outs, grad_outs, node.noutputs, needs,
                      gradients.values, err);
  } catch (const abi::__forced_unwind&) {  // the thread is being ended
    throw;
  } catch (...) {  // rules are C functions and may not throw
    status = guarded(err, [] { throw; });
  }
  if (status != TENON_OK) [[unlikely]] {
    add_context(err, "gradient of [%s]", short_name(info.name));
    return status;
  }
  uint32_t element = 0;
  for (uint32_t i = 0; i < node.nedges; ++i) {
    const Edge& edge = node.edges()[i];
    element = i > 0 && edge.argument == node.edges()[i - 1].argument ? element + 1 : 0;
    if (!run.wants(edge)) continue;
    Tensor gradient = gradients.take(edge.argument, element);
    if (!gradient) continue;
    if (conjugates && is_complex(gradient->dtype)) [[unlikely]]
      TENON_TRY(conjugate(gradient, &gradient, err));
    TENON_TRY(run.deliver(node, edge, std::move(gradient), err));
  }
  return TENON_OK;
}

void clear(Node& node) {
  bool had_any = node.saved_outs != 0;
  for (uint32_t i = 0; i < node.nvalues; ++i) {
    tenon_value& value = values_of(node)[i];
    if (value.tag == TENON_VALUE_TENSOR) {
      host->tensor_release(as_tensor(value));
    } else if (value.tag == TENON_VALUE_TENSORS) {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      for (uint32_t k = 0; k < value.aux; ++k) host->tensor_release(list[k]);
    } else if (value.tag == kPacked) {
      delete static_cast<const Packed*>(value.v.p);
    } else if (value.tag == kPackedList) {
      auto* list = static_cast<Packed* const*>(value.v.p);
      for (uint32_t k = 0; k < value.aux; ++k) delete list[k];
    } else {
      continue;
    }
    value.tag = TENON_VALUE_NONE;
    had_any = true;
  }
  const Saved* saved = saved_outs_of(node);
  for (uint32_t rest = node.saved_outs; rest; rest &= rest - 1, ++saved) {
    if (saved->tensor) [[likely]]
      host->tensor_release(saved->tensor);
    else
      delete saved->packed;
  }
  node.saved_outs = 0;
  // With nothing kept there is nothing to miss: such nodes run any number of times.
  if (had_any) node.flags |= Node::kCleared;
}

tenon_status backward_without_rule(Node& node, Run&, tenon_err* err) {
  return fail_format(
      err, TENON_UNSUPPORTED,
      "[%s] has no gradient; expected a `grad` entry in its definition, or a rule registered with "
      "autograd->rule_register; if no gradient should pass here, call it on detach()ed tensors",
      short_name(operator_name(node)));
}

tenon_status backward_of_complex(Node& node, Run&, tenon_err* err) {
  return fail_complex(node, err);
}
void clear_nothing(Node&) {}

}  // namespace

const NodeType kOperatorNode = {.name = operator_name, .backward = backward, .clear = clear};
const NodeType kMissingRule = {
    .name = operator_name, .backward = backward_without_rule, .clear = clear_nothing};
const NodeType kComplexCall = {
    .name = operator_name, .backward = backward_of_complex, .clear = clear_nothing};

void forget_stale(Node& node, const void* storage) {
  if (node.type != &kOperatorNode) return;
  for (uint32_t i = 0; i < node.nvalues; ++i) {
    tenon_value& value = values_of(node)[i];
    if (value.tag != TENON_VALUE_TENSOR) continue;
    tenon_tensor* tensor = as_tensor(value);
    if (host->tensor_storage(tensor) != storage) continue;
    uint32_t found = version_of(tensor);
    if (found == value.aux) continue;
    value = {kStale, value.aux, {.i = found}};
    host->tensor_release(tensor);
  }
}

}  // namespace tenon::autograd
