// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace tenon::onnx {
namespace {

constexpr int kMaxDerived = 128;  // calls in each other, which are made again one within the other

const tenon_param_def& param_at(const tenon_op_def& def, size_t index) {
  return *reinterpret_cast<const tenon_param_def*>(reinterpret_cast<const char*>(def.params) +
                                                   index * def.param_size);
}

// Boxed arguments, and what they point to.
class Boxes {
 public:
  Boxes(const tenon_op_def& def, const Arguments& arguments) : def_(def) {
    values.assign(def.nparams, kNoValue);
    std::vector<bool> is_given(def.nparams);
    size_t next = 0;
    for (const Argument& argument : arguments) {
      const size_t index = argument.name.empty() ? next++ : find(argument.name);
      if (index >= def.nparams)
        throw Error(TENON_INTERNAL, std::string(def.name) + " has no parameter " +
                                        (argument.name.empty() ? std::to_string(index)
                                                               : "`" + argument.name + "`"));
      if (argument.value.is_none()) continue;
      values[index] = box(param_at(def, index), argument.value);
      is_given[index] = true;
    }
    for (size_t i = 0; i < def.nparams; ++i)
      if (!is_given[i] && (param_at(def, i).flags & TENON_PARAM_FLAG_HAS_DEFAULT))
        values[i] = param_at(def, i).default_value;
  }

  std::vector<tenon_value> values;

 private:
  size_t find(const std::string& name) const {
    for (size_t i = 0; i < def_.nparams; ++i)
      if (name == param_at(def_, i).name) return i;
    return def_.nparams;
  }

  tenon_value box(const tenon_param_def& param, const Value& value) {
    const std::string what = std::string(def_.name) + ", " + param.name;
    switch (param.kind) {
      case TENON_PARAM_TENSOR:
        if (const Tensor* tensor = value.get<Tensor>()) return boxed(tensor->get());
        return box_number(value, what);
      case TENON_PARAM_TENSORS:
        return box_tensors(value, what);
      case TENON_PARAM_INT:
        return boxed(int_of(value, what));
      case TENON_PARAM_FLOAT:
        return boxed(float_of(value, what));
      case TENON_PARAM_BOOL:
        return boxed(bool_of(value, what));
      case TENON_PARAM_SCALAR:
        return box_scalar(value, what);
      case TENON_PARAM_STRING:
        if (const std::string* text = value.get<std::string>())
          return boxed(std::string_view(texts_.emplace_back(*text)));
        break;
      case TENON_PARAM_DTYPE:
        if (const Dtype* dtype = value.get<Dtype>()) return boxed_dtype(dtype->id);
        break;
      case TENON_PARAM_INTS: {
        const Ints& list = ints_.emplace_back(ints_of(value, what));
        return boxed(list.data(), list.size());
      }
      case TENON_PARAM_FLOATS: {
        const Floats& list = floats_.emplace_back(floats_of(value, what));
        return boxed(list.data(), list.size());
      }
      default:
        break;
    }
    throw Error(TENON_INVALID_ARGUMENT, what + ": " + value.describe() + " does not fit");
  }

  static tenon_value box_number(const Value& value, const std::string& what) {
    if (const int64_t* number = value.get<int64_t>()) return boxed(*number);
    if (const double* number = value.get<double>()) return boxed(*number);
    if (const bool* truth = value.get<bool>()) return boxed(*truth);
    throw Error(TENON_INVALID_ARGUMENT, what + ": expected a tensor, got " + value.describe());
  }

  static tenon_value box_scalar(const Value& value, const std::string& what) {
    const Tensor* tensor = value.get<Tensor>();
    if (!tensor) return box_number(value, what);
    if ((*tensor)->dtype == TENON_DTYPE_BOOL) return boxed(bool_of(value, what));
    if ((*tensor)->dtype <= TENON_DTYPE_I64) return boxed(int_of(value, what));
    return boxed(float_of(value, what));
  }

  tenon_value box_tensors(const Value& value, const std::string& what) {
    const Values* list = value.get<Values>();
    const Values one = list ? Values() : Values{value};
    std::vector<tenon_tensor*>& handles = lists_.emplace_back();
    for (const Value& item : list ? *list : one) handles.push_back(item.tensor(what).get());
    return boxed(handles.data(), handles.size());
  }

  const tenon_op_def& def_;
  std::deque<std::string> texts_;
  std::deque<Ints> ints_;
  std::deque<Floats> floats_;
  std::deque<std::vector<tenon_tensor*>> lists_;
};

template <class Visit>
void for_each_tensor(const std::vector<tenon_value>& args, Visit&& visit) {
  for (const tenon_value& arg : args) {
    if (arg.tag == TENON_VALUE_TENSOR) visit(*static_cast<const tenon_tensor*>(arg.v.p));
    if (arg.tag != TENON_VALUE_TENSORS) continue;
    for (uint32_t i = 0; i < arg.aux; ++i) visit(*static_cast<tenon_tensor* const*>(arg.v.p)[i]);
  }
}

// What a call gave, owned.
Values take_results(const tenon_op_def& def, std::vector<tenon_value>& outs) {
  Values results;
  if (def.flags & TENON_OP_LIST_OUTPUT) {
    auto** list = static_cast<tenon_tensor**>(outs[0].v.p);
    for (uint32_t i = 0; i < outs[0].aux; ++i) results.emplace_back(Tensor::borrow(list[i]));
    host->list_release(list, outs[0].aux);
    return results;
  }
  for (const tenon_value& out : outs)
    results.emplace_back(Tensor::adopt(static_cast<tenon_tensor*>(out.v.p)));
  return results;
}

// Do sizes among the arguments ask for a tensor that is not small?
bool asks_for_much(const tenon_op_def& def, const std::vector<tenon_value>& args) {
  static constexpr std::string_view kSizes[] = {"shape", "repeats", "padding", "size",
                                                "count", "rows",    "columns", "num"};
  int64_t product = 1;
  const auto grows = [&](int64_t by) {
    return __builtin_mul_overflow(product, std::max<int64_t>(by, 1), &product) ||
           product > kMaxKnownBytes;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (std::find(std::begin(kSizes), std::end(kSizes), param_at(def, i).name) == std::end(kSizes))
      continue;
    if (args[i].tag == TENON_VALUE_INT && grows(args[i].v.i)) return true;
    if (args[i].tag != TENON_VALUE_INTS) continue;
    for (uint32_t k = 0; k < args[i].aux; ++k)
      if (grows(static_cast<const int64_t*>(args[i].v.p)[k])) return true;
  }
  // Tensors that are broadcast, or multiplied as matrices, make as much as the product of their sizes.
  product = 1;
  for (const tenon_value& arg : args)
    if (arg.tag == TENON_VALUE_TENSOR &&
        (__builtin_mul_overflow(
             product, std::max<int64_t>(static_cast<const tenon_tensor*>(arg.v.p)->numel, 1),
             &product) ||
         product > kMaxKnownProduct))
      return true;
  return false;
}

}  // namespace

const tenon_graph_service_api& graph_service() {
  const auto* api = static_cast<const tenon_graph_service_api*>(
      host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
  if (!api || api->struct_size <= offsetof(tenon_graph_service_api, builder_gradients))
    throw Error(TENON_UNAVAILABLE,
                "onnx: expected the plugin `graph` of this version, which builds programs; it was "
                "not loaded");
  return *api;
}

void ReleaseProgram::operator()(tenon_graph_program* program) const {
  graph_service().program_release(program);
}

Steps::Steps() : graph_(&graph_service()) {
  const ErrorSink err;
  err.check(graph_->builder_begin(TENON_DEVICE_NONE, &builder_, err));
}

Steps::~Steps() { graph_->builder_abandon(builder_); }

Tensor Steps::input(int32_t dtype, const Ints& shape) {
  const ErrorSink err;
  tenon_tensor* value;
  err.check(graph_->builder_input(builder_, dtype, static_cast<int32_t>(shape.size()), shape.data(),
                                  TENON_DEVICE_NONE, &value, err));
  return Tensor::adopt(value);
}

Tensor Steps::leaf(const Tensor& tensor, const std::string& name) {
  const ErrorSink err;
  tenon_tensor* value;
  err.check(graph_->builder_leaf(builder_, tensor.get(), name.c_str(), 0, &value, err));
  return Tensor::adopt(value);
}

// Of known tensors alone, all of them small, and nothing random.
bool Steps::may_compute(const tenon_op_def& def, const std::vector<tenon_value>& args) const {
  if ((def.flags & TENON_OP_RANDOM) || asks_for_much(def, args)) return false;
  bool may = true;
  for_each_tensor(args, [&](const tenon_tensor& tensor) {
    may = may && tensor.device != TENON_DEVICE_META &&
          tensor.numel * static_cast<int64_t>(host->dtype_size(tensor.dtype)) <= kMaxKnownBytes;
  });
  return may;
}

Values Steps::call_now(const tenon_op* op, std::vector<tenon_value>& args) const {
  const ErrorSink err;
  const tenon_op_def& def = *host->op_def(op);
  std::vector<tenon_value> outs(def.nouts, kNoValue);
  err.check(host->op_call(op, args.data(), static_cast<uint32_t>(args.size()), outs.data(),
                          def.nouts, err));
  return take_results(def, outs);
}

void Steps::add_sizes(const Tensor& tensor) {
  derived_.try_emplace(tensor.get(), Derivation{.tensor = tensor});
}

void Steps::derive(const std::string& op, const Arguments& arguments,
                   const std::vector<tenon_value>& args, const Values& results) {
  bool has_tensors = false, has_derived = false, has_steps = true;
  int depth = 0;
  for_each_tensor(args, [&](const tenon_tensor& tensor) {
    has_tensors = true;
    const auto found = derived_.find(&tensor);
    if (found == derived_.end()) return;
    has_derived = true;
    has_steps = has_steps && !found->second.op.empty();
    depth = std::max(depth, found->second.depth);
  });
  if (seen_ == SeenSizes::kValues && has_tensors && !has_derived) return;
  has_steps = has_steps && depth < kMaxDerived;
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i].tensor("a result");
    bool is_argument = false;
    for_each_tensor(args, [&](const tenon_tensor& tensor) {
      is_argument = is_argument || &tensor == result.get();
    });
    if (is_argument) continue;
    if (has_steps)
      derived_.try_emplace(result.get(), Derivation{result, op, arguments, i, depth + 1, {}});
    else
      add_sizes(result);
  }
}

Tensor Steps::step_of(const tenon_tensor* tensor) {
  const auto found = derived_.find(tensor);
  if (found == derived_.end() || found->second.op.empty()) return {};
  Derivation& derivation = found->second;
  if (!derivation.step) {
    const tenon_op* op = host->op_find(derivation.op.c_str());
    Boxes boxes(*host->op_def(op), derivation.arguments);
    derivation.step = build(op, boxes.values)[derivation.result].tensor("a step");
  }
  return derivation.step;
}

// What is known is data of the program: passes may compute with it, and imports at other sizes have the same.
tenon_tensor* Steps::constant(tenon_tensor* tensor, std::vector<Tensor>& held) {
  if (tensor->device == TENON_DEVICE_META) return tensor;
  if (const Tensor step = step_of(tensor)) {
    held.push_back(step);
    return step.get();
  }
  const ErrorSink err;
  tenon_tensor* value;
  err.check(graph_->builder_leaf(builder_, tensor, nullptr, 1, &value, err));
  held.push_back(Tensor::adopt(value));
  return value;
}

Values Steps::build(const tenon_op* op, std::vector<tenon_value>& args) {
  const ErrorSink err;
  std::vector<Tensor> held;
  for (tenon_value& arg : args) {
    if (arg.tag == TENON_VALUE_TENSOR)
      arg.v.p = constant(static_cast<tenon_tensor*>(arg.v.p), held);
    if (arg.tag != TENON_VALUE_TENSORS) continue;
    auto** list = static_cast<tenon_tensor**>(arg.v.p);  // of the boxes, which end with the call
    for (uint32_t i = 0; i < arg.aux; ++i) list[i] = constant(list[i], held);
  }
  const tenon_op_def& def = *host->op_def(op);
  std::vector<tenon_value> outs(def.nouts, kNoValue);
  err.check(graph_->builder_call(builder_, op, args.data(), static_cast<uint32_t>(args.size()),
                                 outs.data(), def.nouts, err));
  return take_results(def, outs);
}

Values Steps::call(const std::string& name, const Arguments& arguments) {
  const tenon_op* op = host->op_find(name.c_str());
  if (!op)
    throw Error(TENON_NOT_FOUND, "operator `" + name + "` is not there; its plugin was not loaded");
  Boxes boxes(*host->op_def(op), arguments);
  if (!may_compute(*host->op_def(op), boxes.values)) return build(op, boxes.values);
  Values results = call_now(op, boxes.values);
  if (seen_ != SeenSizes::kNone) derive(name, arguments, boxes.values, results);
  return results;
}

Values Steps::control(int32_t kind, const Values& operands, size_t ncarried, size_t nscanned,
                      const std::vector<tenon_graph_program*>& regions, size_t nresults) {
  std::vector<Tensor> held;
  std::vector<tenon_tensor*> handles, results(nresults);
  for (const Value& operand : operands)
    handles.push_back(constant(operand.tensor("an operand").get(), held));
  const ErrorSink err;
  err.check(graph_->builder_control(
      builder_, kind, handles.data(), static_cast<uint32_t>(handles.size()),
      static_cast<uint32_t>(ncarried), static_cast<uint32_t>(nscanned), regions.data(),
      static_cast<uint32_t>(regions.size()), results.data(), static_cast<uint32_t>(nresults), err));
  Values made;
  for (tenon_tensor* result : results) made.emplace_back(Tensor::adopt(result));
  return made;
}

Tensor Steps::variable(const Tensor& tensor) {
  const Tensor step = step_of(tensor.get());
  return call("clone", {step               ? step
                        : is_known(tensor) ? leaf(tensor, "")
                                           : tensor})[0]
      .tensor("a variable");
}

Values Steps::gradients(const Tensor& result, const std::vector<Tensor>& variables) {
  std::vector<tenon_tensor*> handles, gradients(variables.size());
  for (const Tensor& variable : variables) handles.push_back(variable.get());
  const ErrorSink err;
  err.check(graph_->builder_gradients(builder_, result.get(), handles.data(),
                                      static_cast<uint32_t>(handles.size()), gradients.data(),
                                      err));
  Values made;
  for (tenon_tensor* gradient : gradients) made.emplace_back(Tensor::adopt(gradient));
  return made;
}

Tensor Steps::result(const Tensor& tensor) { return is_known(tensor) ? variable(tensor) : tensor; }

tenon_graph_program* Steps::finish(const std::vector<Tensor>& results) {
  std::vector<tenon_tensor*> handles;
  for (const Tensor& result : results) handles.push_back(result.get());
  const ErrorSink err;
  tenon_graph_program* program;
  tenon_graph_builder* owned = std::exchange(builder_, nullptr);
  err.check(graph_->builder_end(owned, handles.data(), static_cast<uint32_t>(handles.size()),
                                &program, err));
  return program;
}

}  // namespace tenon::onnx
