// SPDX-License-Identifier: Apache-2.0
#include "record/builder.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <deque>
#include <string>

#include "ir/alias_analysis.hpp"
#include "ir/verify.hpp"
#include "record/building.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

Tensor meta_tensor(const Type& type) {
  const ErrorSink err;
  tenon_tensor* tensor;
  err.check(host->tensor_create(TENON_DEVICE_META, type.dtype,
                                static_cast<int32_t>(type.shape.size()), type.shape.data(), &tensor,
                                err));
  return Tensor::adopt(tensor);
}

bool shares_memory(const tenon_tensor* a, const tenon_tensor* b) {
  const void* storage = host->tensor_storage(a);
  return a == b || (storage && storage == host->tensor_storage(b));
}

void append(void* text, const char* part, uint64_t bytes) {
  static_cast<std::string*>(text)->append(part, bytes);
}

}  // namespace

// -- values ---------------------------------------------------------------------------------------

void Builder::bind(tenon_tensor* meta, ValueId value) {
  values_.push_back(Tensor::borrow(meta));
  by_tensor_[meta] = value;
}

Tensor Builder::add(Type type) {
  Tensor meta = meta_tensor(type);
  bind(meta.get(), graph_.add_value(std::move(type)));
  return meta;
}

Tensor Builder::add_input(Type type) {
  if (type.device == TENON_DEVICE_NONE) type.device = device_;
  Tensor meta = add(std::move(type));
  graph_.inputs.push_back(by_tensor_[meta.get()]);
  return meta;
}

Tensor Builder::add_leaf(tenon_tensor* tensor, const char* name, bool is_constant) {
  if (tensor->device == TENON_DEVICE_META)
    throw Error(
        TENON_INVALID_ARGUMENT,
        "builder: expected a tensor with data as a leaf, got one of the device meta; what a "
        "program is given at each run is an input");
  if (const auto known = leaves_.find(tensor); known != leaves_.end())
    return Tensor::borrow(known->second);
  Leaf leaf;
  Tensor meta = add(type_of(*tensor));
  leaf.value = by_tensor_[meta.get()];
  leaf.tensor = Tensor::borrow(tensor);
  leaf.name = name ? name : "";
  leaf.is_constant = is_constant;
  leaves_[tensor] = meta.get();
  graph_.leaves.push_back(std::move(leaf));
  return meta;
}

tenon_tensor* Builder::stand_in(tenon_tensor* tensor, bool is_constant) {
  if (tensor->device == TENON_DEVICE_META) return tensor;
  return add_leaf(tensor, nullptr, is_constant).get();
}

ValueId Builder::value_of(const tenon_tensor* value, const char* what) const {
  const auto known = by_tensor_.find(value);
  if (known == by_tensor_.end())
    throw Error(TENON_INVALID_ARGUMENT, "builder: " + std::string(what) +
                                            ": expected values of this builder, got another tensor "
                                            "of the device meta");
  return known->second;
}

tenon_tensor* Builder::constant(const tenon_tensor* value) const {
  const ValueId id = value_of(value, "constant");
  for (const Leaf& leaf : graph_.leaves)
    if (leaf.value == id) return leaf.is_constant ? leaf.tensor.get() : nullptr;
  return nullptr;
}

tenon_device_id Builder::device(const tenon_tensor* value) const {
  return graph_.values[value_of(value, "device")].device;
}

void Builder::locate(const char* file, int32_t line) {
  location_ = {};
  if (!file || line <= 0) return;
  location_.file = file;
  location_.line = line;
}

// -- calls ----------------------------------------------------------------------------------------

// A composite stays one step where the device has a kernel for the whole of it, as when a program
// is recorded.
bool Builder::is_served_whole(const tenon_op* op, const tenon_value* args, uint32_t nargs) const {
  const tenon_op_def& def = *host->op_def(op);
  if (def.flags & (TENON_OP_LIST_OUTPUT | TENON_OP_VIEW) || !(def.infer || def.infer_self))
    return false;
  for (uint32_t i = 0; i < nargs; ++i) {
    const tenon_tensor* tensor = as_tensor(args[i]);
    if (!tensor) continue;
    std::string text;
    if (host->op_explain(op, device(tensor), tensor->dtype, append, &text, nullptr) != TENON_OK)
      return false;
    return text.find("\"route\":\"native\"") != text.npos ||
           text.find("\"route\": \"native\"") != text.npos;
  }
  return false;
}

tenon_status Builder::call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                           tenon_value* outs, uint32_t nouts, tenon_err* err) {
  const tenon_op_def& def = *host->op_def(op);
  if (nargs > def.nparams)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected at most %u arguments, got %u: %s", def.name, def.nparams,
                       nargs, def.schema);
  std::vector<tenon_value> given(args, args + nargs);
  std::deque<std::vector<tenon_tensor*>> lists;
  TENON_TRY(guarded(err, [&] {
    for (tenon_value& value : given) {
      if (tenon_tensor* tensor = as_tensor(value)) value = boxed(stand_in(tensor, false));
      if (value.tag != TENON_VALUE_TENSORS) continue;
      auto* tensors = static_cast<tenon_tensor* const*>(value.v.p);
      auto& list = lists.emplace_back();
      for (uint32_t i = 0; i < value.aux; ++i) list.push_back(stand_in(tensors[i], false));
      value = boxed(list.data(), list.size());
    }
    is_recorded_ = autograd() && autograd()->enabled();
  }));
  tenon_status status = TENON_OK;
  TENON_TRY(guarded(err, [&] {
    if (def.flags & TENON_OP_COMPOSITE && is_served_whole(op, given.data(), nargs)) {
      for (uint32_t i = nargs; i < def.nparams; ++i)
        given.push_back(def.params[i].flags & TENON_PARAM_FLAG_HAS_DEFAULT
                            ? def.params[i].default_value
                            : kNoValue);
      const Building scope(nullptr);
      status = record(op, given.data(), def.nparams, outs, nouts, host->op_call, err);
    } else {
      const Building scope(this);
      status = host->op_call(op, given.data(), nargs, outs, nouts, err);
    }
  }));
  return status;
}

tenon_status Builder::record(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                             tenon_value* outs, uint32_t nouts, Below below, tenon_err* err) {
  const tenon_op_def& def = *host->op_def(op);
  std::vector<tenon_value> asked(args, args + nargs);  // of tensors of the device meta alone
  std::deque<std::vector<tenon_tensor*>> lists;
  Step step;
  tenon_device_id device = TENON_DEVICE_NONE;
  TENON_TRY(guarded(err, [&] {
    if (def.flags & TENON_OP_LIST_OUTPUT || nargs > kMaxArguments || nouts > kMaxResults)
      throw Error(TENON_UNSUPPORTED, "builder: `" + std::string(def.name) +
                                         "` has more results or arguments than a program can hold");
    step.op = op;
    step.schema_hash = def.schema_hash;
    step.name = def.name;
    step.is_recorded = is_recorded_;
    step.location = location_;
    const tenon_tensor* first = nargs ? as_tensor(args[0]) : nullptr;
    step.copies_dense =
        def.flags & TENON_OP_MATERIALIZE && first && first->flags & TENON_TENSOR_CONTIGUOUS;
    auto add_operand = [&](tenon_tensor* tensor) {
      const ValueId id = value_of(tensor, def.name);
      if (device == TENON_DEVICE_NONE) device = graph_.values[id].device;
      return id;
    };
    for (tenon_value& value : asked) {
      if (tenon_tensor* tensor = as_tensor(value)) {
        value = boxed(stand_in(tensor, true));  // what a decomposition makes itself is data
        step.operands.push_back(Operand::of(add_operand(as_tensor(value))));
      } else if (value.tag == TENON_VALUE_TENSORS) {
        auto* tensors = static_cast<tenon_tensor* const*>(value.v.p);
        auto& list = lists.emplace_back();
        Operand operand;
        operand.kind = Operand::kList;
        for (uint32_t i = 0; i < value.aux; ++i) {
          list.push_back(stand_in(tensors[i], true));
          operand.list.push_back(add_operand(list.back()));
        }
        value = boxed(list.data(), list.size());
        step.operands.push_back(std::move(operand));
      } else {
        step.operands.push_back(Operand::of(Attribute(value)));
      }
    }
    // A device that is given says where the results are. What a decomposition has read off a value
    // is "meta".
    const bool has_tensors = device != TENON_DEVICE_NONE;
    if (!has_tensors) device = device_;
    tenon_device_id told = TENON_DEVICE_NONE;
    for (uint32_t i = 0; i < nargs; ++i) {
      if (def.params[i].kind != TENON_PARAM_DEVICE) continue;
      const bool is_absent = args[i].tag == TENON_VALUE_NONE;
      if (is_absent && has_tensors) continue;
      told = is_absent || args[i].v.i == TENON_DEVICE_META
                 ? device
                 : static_cast<tenon_device_id>(args[i].v.i);
      tenon_value value = {TENON_VALUE_DEVICE, 0, {.i = told}};
      step.operands[i] = Operand::of(Attribute(value));
      asked[i] = {TENON_VALUE_DEVICE, 0, {.i = TENON_DEVICE_META}};
    }
    if (told != TENON_DEVICE_NONE) device = told;
    step.results = SmallVector<ValueId, 2>(nouts, kNoValueId);
    for (uint32_t i = 0; i < nouts; ++i) {
      if (tenon_tensor* out = as_tensor(outs[i])) {
        step.given |= 1u << i;
        step.results[i] = value_of(out, def.name);
      }
    }
  }));
  TENON_TRY(below(op, asked.data(), nargs, outs, nouts, err));
  const tenon_status status = guarded(err, [&] {
    for (uint32_t i = 0; i < nouts; ++i) {
      if (is_given(step, i)) continue;
      tenon_tensor* out = as_tensor(outs[i]);
      for (const tenon_value& value : asked)
        if (const tenon_tensor* arg = as_tensor(value);
            arg && !(def.flags & TENON_OP_VIEW) && shares_memory(out, arg))
          throw Error(TENON_UNSUPPORTED,
                      "builder: the result of `" + std::string(def.name) +
                          "` shares memory with an argument, though the operator "
                          "is no view");
      Type type = type_of(*out);
      type.device = device;
      step.results[i] = graph_.add_value(std::move(type));
      bind(out, step.results[i]);
    }
    graph_.steps.push_back(std::move(step));
  });
  if (status == TENON_OK) return TENON_OK;
  for (uint32_t i = 0; i < nouts; ++i) {
    if (step.given >> i & 1) continue;
    host->tensor_release(as_tensor(outs[i]));
    outs[i] = kNoValue;
  }
  return status;
}

ProgramPtr Builder::finish(tenon_tensor* const* results, uint32_t nresults) {
  for (uint32_t i = 0; i < nresults; ++i)
    graph_.results.push_back(value_of(stand_in(results[i], false), "results"));
  ProgramPtr program(new Program);
  program->graph = std::move(graph_);
  verify(program->graph);
  const AliasAnalysis memory(program->graph);
  for (const Leaf& leaf : program->graph.leaves)
    if (leaf.is_constant && memory.is_written(leaf.value))
      throw Error(
          TENON_INVALID_ARGUMENT,
          "builder: a step writes into a constant, which holds the same elements at the begin "
          "of every run; expected a leaf, or a clone of the constant");
  return program;
}

}  // namespace tenon::graph
