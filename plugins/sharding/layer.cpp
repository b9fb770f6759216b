// SPDX-License-Identifier: Apache-2.0
// A call with sharded tensors: placements are chosen by what the operator's rules allow and moving the operands costs, then
// every rank calls the operator on its parts.
#include <algorithm>
#include <limits>

#include "candidates.hpp"
#include "operators.hpp"
#include "replicas.hpp"
#include "same_places.hpp"

namespace tenon::sharding {
namespace {

tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}

[[noreturn]] void refuse(const Call& call, tenon_status code, const std::string& text) {
  throw Error(code, "[" + std::string(call.name()) + "] of sharded tensors: " + text);
}

void find_mesh_of(Call& call, const View& view) {
  if (!view.mesh) return;
  if (call.mesh && call.mesh != view.mesh)
    refuse(call, TENON_INVALID_ARGUMENT,
           "expected tensors on one mesh, got two; bring one over with full_tensor() and "
           "distribute_tensor()");
  call.mesh = view.mesh;
}

void find_operands(Call& call, const tenon_value* outs, uint32_t nouts) {
  const auto add = [&](uint32_t param, int32_t element, tenon_tensor* tensor) {
    const View view = view_of(tensor);
    if (tensor->flags & TENON_TENSOR_COMPOSED && !view.mesh)
      refuse(call, TENON_UNSUPPORTED,
             "expected plain tensors beside them, got one that is composed of others; use "
             "to_dense() first");
    find_mesh_of(call, view);
    call.operands.push_back({param, element, tensor, view});
  };
  for (uint32_t i = 0; i < call.nargs; ++i) {
    if (tenon_tensor* tensor = as_tensor(call.args[i])) add(i, -1, tensor);
    if (call.args[i].tag != TENON_VALUE_TENSORS) continue;
    auto* list = static_cast<tenon_tensor* const*>(call.args[i].v.p);
    for (uint32_t k = 0; k < call.args[i].aux; ++k)
      if (list[k]) add(i, static_cast<int32_t>(k), list[k]);
  }
  for (uint32_t k = 0; k < nouts; ++k)
    if (const tenon_tensor* out = as_tensor(outs[k])) find_mesh_of(call, view_of(out));
}

// -- shapes of the whole --------------------------------------------------------------------------------

void broadcast_shape(Call& call) {
  tenon_meta out = {};
  for (const Operand& operand : call.operands) out.ndim = std::max(out.ndim, operand.tensor->ndim);
  std::fill_n(out.shape, out.ndim, 1);
  for (const Operand& operand : call.operands)
    for (int32_t i = 0; i < operand.tensor->ndim; ++i) {
      int64_t& size = out.shape[out.ndim - operand.tensor->ndim + i];
      const int64_t other = operand.tensor->shape[i];
      if (size != other && size != 1 && other != 1)
        refuse(call, TENON_INVALID_ARGUMENT,
               "expected shapes that broadcast, got " + shape_text(*call.operands[0].tensor) +
                   " and " + shape_text(*operand.tensor));
      if (other != 1) size = other;
    }
  call.results = {out};
}

// Asks the shape rule about tensors that look as the wholes would in memory. Empty if there is none: what is generated for
// operators whose shapes depend on data checks dtypes, and gives no shape.
void infer_shapes(Call& call, tenon_err* err) {
  const tenon_op_def& def = call.def;
  if (def.shape == TENON_SHAPE_BROADCAST) return broadcast_shape(call);
  if (!def.infer && !def.infer_self) return;
  std::vector<tenon_tensor> fakes;
  fakes.reserve(call.operands.size() + call.nargs);
  std::vector<tenon_value> values(call.args, call.args + call.nargs);
  std::vector<std::vector<tenon_tensor*>> lists(call.nargs);
  const auto fake = [&](const tenon_tensor* tensor) {
    fakes.push_back(*tensor);
    if (tensor->flags & TENON_TENSOR_COMPOSED) fakes.back().flags = TENON_TENSOR_CONTIGUOUS;
    return &fakes.back();
  };
  for (uint32_t i = 0; i < call.nargs; ++i) {
    if (const tenon_tensor* tensor = as_tensor(values[i])) values[i] = boxed(fake(tensor));
    if (values[i].tag == TENON_VALUE_TENSORS) {
      auto* list = static_cast<tenon_tensor* const*>(values[i].v.p);
      for (uint32_t k = 0; k < values[i].aux; ++k)
        lists[i].push_back(list[k] ? fake(list[k]) : nullptr);
      values[i].v.p = lists[i].data();
    }
    const int32_t tag = values[i].tag;
    if (i < def.nparams && def.params[i].kind == TENON_PARAM_TENSOR &&
        (tag == TENON_VALUE_INT || tag == TENON_VALUE_FLOAT || tag == TENON_VALUE_BOOL)) {
      tenon_tensor number = {};
      number.flags = TENON_TENSOR_CONTIGUOUS | TENON_TENSOR_HOST_SCALAR;
      number.dtype = tag == TENON_VALUE_INT     ? TENON_DTYPE_I64
                     : tag == TENON_VALUE_FLOAT ? TENON_DTYPE_F32
                                                : TENON_DTYPE_BOOL;
      number.device = host->device_host();
      number.numel = 1;
      number.data = &values[i].v;
      fakes.push_back(number);
      values[i] = boxed(&fakes.back());
    }
  }
  call.results.resize(def.nouts);
  const tenon_status status =
      def.infer ? def.infer(values.data(), call.nargs, call.results.data(), def.nouts, err)
                : def.infer_self(values.data(), call.nargs, call.results.data(), def.nouts, err,
                                 def.self);
  if (status != TENON_OK) throw Error(status, "");
  if (def.flags & TENON_OP_DATA_DEPENDENT) call.results.clear();
}

// -- the choice -------------------------------------------------------------------------------------------

// Bytes, about, that a rank sends. A slice costs next to nothing, but more than none.
double cost(const Operand& operand, Placement from, Placement to, int64_t ranks) {
  if (from == to || ranks == 1) return 0;
  const double bytes =
      static_cast<double>(operand.tensor->numel) * host->dtype_size(operand.tensor->dtype) + 64;
  const double part = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (from.is_replicate()) {
    // Another maximum of equal tensors would be right, but nothing makes them.
    const bool is_free =
        to.is_shard() || to.value == TENON_REDUCE_SUM || to.value == TENON_REDUCE_MEAN;
    return is_free ? 1e-3 * bytes : std::numeric_limits<double>::infinity();
  }
  if (to.is_partial()) return std::numeric_limits<double>::infinity();
  if (from.is_partial()) return bytes * part * (to.is_shard() ? 1 : 2);
  return to.is_shard() ? bytes * part / static_cast<double>(ranks) : bytes * part;
}

double cost(const Call& call, const Candidate& candidate, uint32_t a, const tenon_value* outs,
            uint32_t nouts) {
  double total = 0;
  const int64_t ranks = call.mesh->sizes[a];
  for (size_t k = 0; k < call.operands.size(); ++k)
    total += cost(call.operands[k], call.operands[k].view.at[a], candidate.operands[k], ranks);
  for (uint32_t k = 0; k < nouts; ++k)
    if (tenon_tensor* out = as_tensor(outs[k]))
      total += cost({0, -1, out, {}}, candidate.results[k], view_of(out).at[a], ranks);
  return total;
}

struct Choice {
  std::vector<Placements> operands, results;
  bool has_rule = true, cuts_mean = false;
};

Choice choose(const Call& call, const tenon_value* outs, uint32_t nouts) {
  Choice choice;
  choice.operands.resize(call.operands.size());
  choice.results.resize(nouts);
  std::vector<Candidate> chosen;
  for (uint32_t a = 0; a < call.mesh->ndim; ++a) {
    bool has_rule;
    const std::vector<Candidate> all = candidates(call, a, chosen, has_rule);
    choice.has_rule &= has_rule;
    const Candidate* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& each : all)
      if (const double price = cost(call, each, a, outs, nouts); price < least)
        least = price, best = &each;
    if (!best) best = &all.front();
    for (size_t k = 0; k < call.operands.size(); ++k) choice.operands[k][a] = best->operands[k];
    for (uint32_t k = 0; k < nouts; ++k) choice.results[k][a] = best->results[k];
    choice.cuts_mean |= best->cuts_mean;
    chosen.push_back(*best);
  }
  return choice;
}

// -- the call on this rank's parts --------------------------------------------------------------------

// What the operator is called with here: parts for wholes, and the shape of a part where the whole's was named.
struct LocalCall {
  std::vector<tenon_value> args;
  std::vector<Tensor> held;
  std::vector<std::vector<tenon_tensor*>> lists;
  Shape shape;
  bool is_copy = false;  // a view shows a copy of the caller's part
};

int64_t numel(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

Shape result_shape(const Call& call, uint32_t k) {
  return {call.results[k].shape, call.results[k].shape + call.results[k].ndim};
}

// The parameter that says what shape the result has, or -1.
int32_t find_shape(const Call& call) {
  const bool is_view = call.def.flags & TENON_OP_VIEW;
  for (uint32_t i = 0; i < call.def.nparams && !call.results.empty(); ++i) {
    if (call.def.params[i].kind != TENON_PARAM_INTS) continue;
    if (!std::string_view(call.def.params[i].name).ends_with("shape")) continue;
    if (is_view || call.numbers(static_cast<int32_t>(i)) == result_shape(call, 0))
      return static_cast<int32_t>(i);
  }
  return -1;
}

void put_local_shape(Scope& scope, const Call& call, const Choice& choice, LocalCall& local) {
  const int32_t param = find_shape(call);
  if (param < 0) return;
  const Shape whole = result_shape(call, 0);
  local.shape = local_shape(*call.mesh, choice.results[0], call.results[0].ndim, whole.data());
  local.args[static_cast<size_t>(param)] = boxed(local.shape.data(), local.shape.size());
  if (!(call.def.flags & TENON_OP_VIEW)) return;
  // Another shape of what does not lie in one piece is one of a copy.
  Tensor& part = local.held[0];
  if (part->flags & TENON_TENSOR_CONTIGUOUS || numel(whole) != call.operands[0].tensor->numel)
    return;
  part = run(scope, op::clone, {box(part)});
  local.args[0] = box(part);
  local.is_copy = true;
}

LocalCall localize(Scope& scope, const Call& call, const Choice& choice) {
  LocalCall local;
  local.args.assign(call.args, call.args + call.nargs);
  local.lists.resize(call.nargs);
  const Reason reason{call.name(), choice.has_rule};
  for (size_t k = 0; k < call.operands.size() && scope.ok(); ++k) {
    const Operand& operand = call.operands[k];
    Tensor part = Tensor::borrow(operand.view.mesh ? operand.view.local : operand.tensor);
    if (operand.view.at != choice.operands[k])
      part = redistributed(scope, *call.mesh, shape_of(operand.tensor), operand.view.at,
                           choice.operands[k], std::move(part), reason);
    if (operand.element < 0) {
      local.args[operand.param] = box(part);
    } else {
      auto& list = local.lists[operand.param];
      if (list.empty()) {
        auto* before = static_cast<tenon_tensor* const*>(call.args[operand.param].v.p);
        list.assign(before, before + call.args[operand.param].aux);
        local.args[operand.param].v.p = list.data();
      }
      list[static_cast<size_t>(operand.element)] = part.get();
    }
    local.held.push_back(std::move(part));
  }
  if (scope.ok()) put_local_shape(scope, call, choice, local);
  return local;
}

// The mean of a part counts for as much as it has of the elements; the mean of nothing counts for nothing.
Tensor weighted(Scope& scope, const Call& call, const Tensor& part, const Tensor& mean) {
  const auto elements = [](int64_t numel, int64_t results) {
    return results ? static_cast<double>(numel) / static_cast<double>(results) : 0.0;
  };
  const double here = elements(part->numel, mean->numel),
               all = elements(call.operands[0].tensor->numel, numel(result_shape(call, 0)));
  if (here == 0) return run(scope, op::zeros_like, {box(mean)});
  return run(scope, op::multiply, {box(mean), boxed(here / all)});
}

void check_shape(const Call& call, const Choice& choice, uint32_t k, const Tensor& part) {
  if (call.results.empty()) return;
  const Shape whole = result_shape(call, k);
  const Shape expected =
      local_shape(*call.mesh, choice.results[k], static_cast<int64_t>(whole.size()), whole.data());
  if (shape_of(part.get()) != expected)
    refuse(call, TENON_INTERNAL,
           "its rule `shard` is wrong: expected a part of shape " + list_text(expected) +
               " of the result in " + text_of(choice.results[k], call.mesh->ndim) + ", got " +
               shape_text(*part.get()));
}

// The tensor that the caller gave gets the elements, in its own placements.
void write(Scope& scope, const Call& call, tenon_tensor* out, const Placements& at, Tensor part,
           Reason reason) {
  const View to = view_of(out);
  part = redistributed(scope, *call.mesh, shape_of(out), at, to.at, std::move(part), reason);
  tenon_value from[] = {box(part)}, into[] = {boxed(to.local)};
  op::clone.run(scope, from, 1, into, 1);
}

void check_output(const Call& call, uint32_t k, tenon_tensor* out) {
  const View to = view_of(out);
  if (!to.mesh)
    refuse(call, TENON_UNSUPPORTED,
           "expected a sharded tensor to write into, got a plain one; use the result instead, or "
           "full_tensor() of the operands");
  if (to.is_copy)
    refuse(
        call, TENON_UNSUPPORTED,
        "expected a tensor to write into, got a copy that a view of a sharded tensor had to make; "
        "write into the whole, or use the result");
  if (call.results.empty() || shape_of(out) == result_shape(call, k)) return;
  refuse(call, TENON_INVALID_ARGUMENT,
         "expected an output of shape " + list_text(result_shape(call, k)) + ", got " +
             shape_text(*out));
}

void check_random(Scope& scope, const Call& call, tenon_device_id device) {
  uint64_t seed, offset;
  host->random_get(device, &seed, &offset);
  check_agreement(
      scope, *call.mesh, {static_cast<int64_t>(seed), static_cast<int64_t>(offset)},
      "[" + std::string(call.name()) +
          "] of sharded tensors: expected the same state of random numbers on all ranks, "
          "so that they draw the same for the whole, got different ones; call "
          "tenon.manual_seed with one number on all of them");
}

// A view that only orders axes, or adds or drops axes of length 1, is made from where the axes of the whole are: what the
// operator does may depend on lengths, which are others here. Empty: it does more.
Tensor view_directly(Scope& scope, const Call& call, const Choice& choice, const Tensor& part) {
  const tenon_tensor& x = *call.operands[0].tensor;
  const tenon_meta& out = call.results[0];
  const Shape whole = result_shape(call, 0);
  if (call.operands.size() != 1 || numel(whole) != x.numel || x.numel == 0 || out.dtype != x.dtype)
    return {};
  const Shape shape = local_shape(*call.mesh, choice.results[0], out.ndim, whole.data());
  Shape strides(whole.size(), 1);
  for (size_t j = 0; j < whole.size(); ++j) {
    if (whole[j] == 1) continue;
    int64_t stride = 1, found = -1;
    for (int64_t i = x.ndim; i-- > 0; stride *= x.shape[i])
      if (x.shape[i] == whole[j] && stride == out.strides[j]) found = i;
    if (found < 0) return {};
    strides[j] = part->strides[found];
  }
  tenon_tensor* made;
  if (!scope.check(host->tensor_view_of(part.get(), part->dtype, out.ndim, shape.data(),
                                        strides.data(), 0, &made, scope.err())))
    return {};
  return Tensor::adopt(made);
}

tenon_status run_call(Scope& scope, const Call& call, const Choice& choice, tenon_value* outs,
                      uint32_t nouts) {
  LocalCall local = localize(scope, call, choice);
  if (!scope.ok()) return scope.status();
  std::vector<tenon_value> results(nouts, kNoValue);
  std::vector<bool> is_direct(nouts);
  for (uint32_t k = 0; k < nouts; ++k) {
    tenon_tensor* out = as_tensor(outs[k]);
    if (!out) continue;
    check_output(call, k, out);
    const View to = view_of(out);
    is_direct[k] = to.at == choice.results[k] && !choice.cuts_mean && !call.operands.empty();
    if (is_direct[k]) results[k] = boxed(to.local);
  }
  const bool is_view = call.def.flags & TENON_OP_VIEW;
  if (is_view && !local.is_copy && !call.results.empty())
    if (Tensor view = view_directly(scope, call, choice, local.held[0]))
      results[0] = boxed(view.release());
  if (!scope.ok()) return scope.status();
  if (!(is_view && results[0].tag != TENON_VALUE_NONE) &&
      !scope.check(host->op_call_below(layer, call.op, local.args.data(), call.nargs,
                                       results.data(), nouts, scope.err())))
    return scope.status();
  std::vector<Tensor> parts(nouts);
  for (uint32_t k = 0; k < nouts; ++k)
    parts[k] =
        is_direct[k] ? Tensor::borrow(as_tensor(results[k])) : Tensor::adopt(as_tensor(results[k]));
  const Reason reason{call.name(), choice.has_rule};
  for (uint32_t k = 0; k < nouts && scope.ok(); ++k) {
    if (choice.cuts_mean) parts[k] = weighted(scope, call, local.held[0], parts[k]);
    if (!scope.ok()) break;
    check_shape(call, choice, k, parts[k]);
    if (tenon_tensor* out = as_tensor(outs[k])) {
      if (!is_direct[k]) write(scope, call, out, choice.results[k], std::move(parts[k]), reason);
      host->tensor_bump_version(out);
      continue;
    }
    const Shape whole = call.results.empty() ? shape_of(parts[k].get()) : result_shape(call, k);
    const bool is_copy = is_view && (local.is_copy || call.operands[0].view.is_copy ||
                                     call.operands[0].view.at != choice.operands[0]);
    parts[k] = create(scope, *call.mesh, whole, parts[k], choice.results[k], is_copy);
  }
  if (!scope.ok()) return scope.status();
  for (uint32_t k = 0; k < nouts; ++k)
    if (outs[k].tag == TENON_VALUE_NONE) outs[k] = boxed(parts[k].release());
  return TENON_OK;
}

// -- composites ---------------------------------------------------------------------------------------------

// What is new in the shape of a sharded tensor is sharded as it is. Others come apart, and the parts are seen.
tenon_status call_composite(Scope& scope, const Call& call, tenon_value* outs, uint32_t nouts) {
  bool gives_output = false;
  for (uint32_t k = 0; k < nouts; ++k) gives_output |= outs[k].tag != TENON_VALUE_NONE;
  bool is_like = false, is_random = false;
  for (const ShardingRule& rule : rules_of(call.op)) {
    is_like |= rule.kind == ShardingRule::Kind::kLike;
    is_random |= rule.kind == ShardingRule::Kind::kRandom;
  }
  if (is_random) check_random(scope, call, call.operands[0].tensor->device);
  if (!scope.ok()) return scope.status();
  if (!is_like || gives_output || nouts != 1 || call.operands[0].param != 0)
    return TENON_LAYER_DECLINED;
  const Operand& x = call.operands[0];
  std::vector<tenon_value> args(call.args, call.args + call.nargs);
  args[0] = boxed(x.view.local);
  tenon_value result = kNoValue;
  if (!scope.check(host->op_call(call.op, args.data(), call.nargs, &result, 1, scope.err())))
    return scope.status();
  Placements at = x.view.at;
  for (Placement& each : at)
    if (each.is_partial()) each = {};
  const Tensor made =
      create(scope, *call.mesh, shape_of(x.tensor), Tensor::adopt(as_tensor(result)), at);
  if (!scope.ok()) return scope.status();
  outs[0] = boxed(Tensor(made).release());
  return TENON_OK;
}

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err) {
  tenon_status status = TENON_OK;
  const tenon_status escaped = guarded(err, [&] {
    const tenon_op_def& def = *host->op_def(op);
    if (!checks_replicas()) {
      status = call_in_same_places(op, def, args, nargs, outs, nouts, err);
      if (status != TENON_LAYER_DECLINED) return;
      status = TENON_OK;
    }
    Call call{op, def, args, nargs, {}, {}, nullptr};
    find_operands(call, outs, nouts);
    if (!call.mesh)
      throw Error(TENON_INTERNAL, "sharding: the layer was given a call without a sharded tensor");
    Scope scope(err);
    if (def.flags & TENON_OP_COMPOSITE) {
      status = call_composite(scope, call, outs, nouts);
      return;
    }
    infer_shapes(call, err);
    if (checks_replicas()) check_replicas(scope, call);
    if (def.flags & TENON_OP_RANDOM)
      check_random(
          scope, call,
          call.operands.empty() ? as_tensor(outs[0])->device : call.operands[0].tensor->device);
    if (scope.ok()) status = run_call(scope, call, choose(call, outs, nouts), outs, nouts);
    if (!scope.ok()) status = scope.status();
  });
  return escaped != TENON_OK ? escaped : status;
}

}  // namespace tenon::sharding
