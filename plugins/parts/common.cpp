// SPDX-License-Identifier: Apache-2.0
// What is the same for all kinds.
#include "rules.hpp"

#include <tenon/dtypes.h>
#include <tenon/error.hpp>

namespace tenon::parts {
namespace {

// f(part) for every part, which is the same kind of tensor again.
template <class F>
Tensor each_part(Scope& scope, const tenon_tensor* whole, F&& f) {
  const Composed& from = *composed_of(whole);
  std::vector<Tensor> parts;
  std::vector<tenon_tensor*> handles;
  for (const Tensor& part : from.parts) {
    parts.push_back(f(part));
    handles.push_back(parts.back().get());
  }
  tenon_tensor* made;
  if (!scope.ok() || !scope.check(create(from.kind, whole->ndim, whole->shape, handles.data(),
                                         from.words.data(), &made, scope.err())))
    return {};
  return Tensor::adopt(made);
}

// Of every part, because the caller may write into a copy and into what it was made of.
Result clone(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  return {each_part(scope, as_tensor(call.args[0]),
                    [&](const Tensor& part) { return run(scope, op::clone, {box(part)}); })};
}

Result same(Scope&, const Call& call) { return {call.tensor(0)}; }

Result cast(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  Tensor x = call.tensor(0);
  // To integers and truths no sum of converted elements is the converted sum.
  const Kind* kind = call.composed(0)->kind;
  const bool has_sums = kind == &kCoo || is_compressed(kind);
  const bool is_exact = has_exact_sums(x->dtype) && call.args[1].v.i >= TENON_DTYPE_F8E4M3;
  if (has_sums && !is_exact && call.args[1].v.i != x->dtype) x = distinct(scope, x);
  if (!scope.ok()) return {};
  const Tensor values = run(scope, op::cast, {box(composed_of(x.get())->values()), call.args[1]});
  return {with_values(scope, x.get(), values)};
}

Result copy_to_device(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  return {each_part(scope, as_tensor(call.args[0]), [&](const Tensor& part) {
    return run(scope, op::copy_to_device, {box(part), call.args[1], boxed_device(part->device)});
  })};
}

constexpr NamedRule kRules[] = {
    {"clone", clone}, {"contiguous", same}, {"cast", cast}, {"copy_to_device", copy_to_device}};

// As of tensors with memory: truths, integers, floating and complex numbers hold those before them.
DtypeClass class_of(int32_t dtype) { return kDtypeTable[dtype].type_class; }

// The name of the layout of the first composed tensor of the call.
std::string layout_of(const Call& call) {
  std::string name;
  const auto look = [&](const tenon_value& value) {
    if (!name.empty()) return;
    if (const Composed* composed = composed_of(value)) name = composed->kind->name;
    if (value.tag != TENON_VALUE_TENSORS) return;
    auto* list = static_cast<tenon_tensor* const*>(value.v.p);
    for (uint32_t k = 0; k < value.aux && name.empty(); ++k)
      if (const Composed* composed = list[k] ? composed_of(list[k]) : nullptr)
        name = composed->kind->name;
  };
  for (uint32_t i = 0; i < call.nargs; ++i) look(call.args[i]);
  for (uint32_t i = 0; i < call.nouts; ++i) look(call.outs[i]);
  return name.empty() ? "another kind" : name;
}

}  // namespace

Result zeros_like(Scope& scope, const Call& call) {
  if (!call.composed(0)) return declined();
  const Composed& x = *call.composed(0);
  std::vector<Tensor> none;
  for (size_t part = 0; part < x.parts.size(); ++part) {
    const Tensor& like = x.parts[part];
    std::vector<int64_t> shape = shape_of(like.get());
    const bool is_values = part == x.kind->values;
    if (is_values || x.kind != &kCoo) {
      if (part != kIndptr || is_values) shape[0] = 0;
    } else {
      shape[1] = 0;
    }
    none.push_back(run(scope, op::full,
                       {box(shape), boxed(int64_t{0}),
                        is_values && call.is_given(1) ? call.args[1] : boxed_dtype(like->dtype),
                        call.is_given(2) ? call.args[2] : boxed_device(like->device)}));
  }
  return {compose(scope, x.kind, shape_of(as_tensor(call.args[0])), none)};
}

bool Call::is_number(uint32_t i) const {
  if (i >= nargs) return false;
  const tenon_tensor* tensor = as_tensor(args[i]);
  if (tensor) return tensor->ndim == 0;
  const int32_t tag = args[i].tag;
  return tag == TENON_VALUE_INT || tag == TENON_VALUE_FLOAT || tag == TENON_VALUE_BOOL ||
         tag == TENON_VALUE_COMPLEX;
}

tenon_status refuse(const Call& call, std::string_view why) {
  return fail(call.err, TENON_UNSUPPORTED,
              "[" + std::string(call.name()) + "] of tensors of layout " + layout_of(call) + ": " +
                  std::string(why));
}

tenon_status deliver(const Call& call, uint32_t index, Tensor result) {
  tenon_value& out = call.outs[index];
  if (out.tag == TENON_VALUE_NONE) {
    out = boxed(result.release());
    return TENON_OK;
  }
  tenon_tensor* given = as_tensor(out);
  const Composed *to = composed_of(given), *from = composed_of(result.get());
  if (!to && !from) {
    tenon_value args[] = {boxed(result.get())}, outs[] = {out};
    Scope scope(call.err);
    op::clone.run(scope, args, 1, outs, 1);
    return scope.status();
  }
  if (!to || !from || to->kind != from->kind || shape_of(given) != shape_of(result.get()))
    return refuse(call, std::string("expected an output of layout ") +
                            (from ? from->kind->name : "strided") + " and shape " +
                            list_text(shape_of(result.get())) + ", got " +
                            (to ? to->kind->name : "strided") + " and " +
                            list_text(shape_of(given)) + "; use the result instead");
  Scope scope(call.err);
  if (class_of(from->values()->dtype) > class_of(given->dtype))
    return fail(call.err, TENON_TYPE_MISMATCH,
                "[" + std::string(call.name()) + "] the result is " +
                    host->dtype_name(from->values()->dtype) +
                    " and does not fit an output of dtype " + host->dtype_name(given->dtype) +
                    "; convert the result instead");
  if (from->values()->dtype != given->dtype)
    result = with_values(scope, result.get(), cast_to(scope, from->values(), given->dtype));
  if (!scope.ok()) return scope.status();
  from = composed_of(result.get());
  std::vector<tenon_tensor*> parts;
  for (const Tensor& part : from->parts) parts.push_back(part.get());
  return replace(given, parts.data(), from->words.data(), call.err);
}

tenon_status run_rule(std::span<const NamedRule> rules, const Call& call) {
  const std::string_view name = call.name();
  for (const NamedRule& named : rules) {
    if (named.op != name) continue;
    Scope scope(call.err);
    Result result = named.rule(scope, call);
    if (!scope.ok()) return scope.status();
    if (result.declines) return TENON_LAYER_DECLINED;
    return deliver(call, 0, std::move(result.tensor));
  }
  return TENON_LAYER_DECLINED;
}

int64_t read_integer(Scope& scope, const Tensor& x) {
  const Tensor number = cast_to(scope, x, TENON_DTYPE_I64);
  tenon_tensor* read;
  if (!scope.ok() || !scope.check(host->tensor_create(host->device_host(), TENON_DTYPE_I64, 0,
                                                      nullptr, &read, scope.err())))
    return 0;
  const Tensor held = Tensor::adopt(read);
  const Tensor flat = reshaped(scope, number, {});
  if (!scope.ok() || !scope.check(host->tensor_copy(read, flat.get(), scope.err()))) return 0;
  return *static_cast<const int64_t*>(read->data);
}

tenon_status call_common(const tenon_op* op, tenon_value* args, uint32_t nargs, tenon_value* outs,
                         uint32_t nouts, tenon_err* err) {
  const Call call{op, args, nargs, outs, nouts, err};
  tenon_status status = TENON_LAYER_DECLINED;
  const tenon_status escaped = guarded(err, [&] { status = run_rule(kRules, call); });
  if (escaped != TENON_OK) return escaped;
  if (status != TENON_LAYER_DECLINED || call.def().flags & TENON_OP_COMPOSITE) return status;
  return refuse(call, "there is no rule for it; use to_dense() first");
}

}  // namespace tenon::parts
