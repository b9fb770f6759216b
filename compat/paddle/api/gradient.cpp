// SPDX-License-Identifier: Apache-2.0
#include "api/gradient.hpp"

#include <tenon/services/autograd.h>
#include <tenon/ops.hpp>

#include <algorithm>

#include "api/arguments.hpp"

namespace tenon::paddle {
namespace {

const tenon_autograd_api* autograd() {
  return static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
}

// Where an input of the gradient operator comes from.
struct Source {
  enum Kind { kArgument, kResult, kGradient } kind;
  size_t index;  // of the operator's input or output
};

// How the gradient operator is called, and what its results are. Lives as long as the process.
struct Rule {
  explicit Rule(const Definition& differentiated);

  const Definition& forward;
  const Declaration& gradient;
  std::vector<Source> sources;         // of each input of the gradient operator
  std::vector<size_t> attributes;      // which of the operator's each of its attributes is
  std::vector<size_t> differentiated;  // input that each of its outputs is the gradient of
  tenon_grad_rule table = {};
};

tenon_value list_value(std::vector<tenon_tensor*>& list) { return boxed(list.data(), list.size()); }

// One run of a rule: the arguments of the gradient operator and what it made.
class Backward {
 public:
  Backward(const Rule& rule, const tenon_value* args, tenon_tensor* const* outs,
           tenon_tensor* const* grad_outs)
      : rule_(rule), args_(args), outs_(outs), grad_outs_(grad_outs) {}

  void run(uint64_t needs, tenon_value* grad_args) {
    set_arguments();
    counts_ = count_results(rule_.gradient, values_.data(), args_);
    for (uint32_t count : counts_) total_ += count;
    results_.resize(total_);
    if (total_ > kMaxResults)
      call_directly();
    else if (total_ > 0)
      call_operator();
    deliver(needs, grad_args);
  }

 private:
  void set_arguments() {
    lists_.reserve(rule_.sources.size());
    for (size_t i = 0; i < rule_.sources.size(); ++i) {
      const Source& source = rule_.sources[i];
      if (source.kind == Source::kArgument) {
        values_.push_back(args_[source.index]);
        continue;
      }
      std::vector<tenon_tensor*>& list = lists_.emplace_back();
      uint32_t begin = rule_.forward.offset(source.index),
               end = rule_.forward.offset(source.index + 1);
      for (uint32_t k = begin; k < end; ++k)
        list.push_back(source.kind == Source::kResult ? outs_[k] : gradient_of(k));
      const Name& name = rule_.gradient.inputs[i];
      if (name.is_list && !(name.is_optional && list.empty()))
        values_.push_back(list_value(list));
      else if (list.empty())  // an absent list is none, as it was for the operator
        values_.push_back(kNoValue);
      else
        values_.push_back(boxed(list[0]));
    }
    for (size_t index : rule_.attributes)
      values_.push_back(args_[rule_.forward.op().inputs.size() + index]);
  }

  // Zeros where none arrived.
  tenon_tensor* gradient_of(uint32_t result) {
    if (grad_outs_[result]) return grad_outs_[result];
    ErrorSink err;
    Scope scope(err);
    Tensor zeros = ops::zeros_like(scope, outs_[result]);
    err.check(scope.status());
    return kept_.emplace_back(std::move(zeros)).get();
  }

  void call_operator() {
    const tenon_op* op = find_operator(rule_.gradient, counts_);
    std::vector<tenon_value> outs(total_, kNoValue);
    ErrorSink err;
    err.check(host->op_call(op, values_.data(), static_cast<uint32_t>(values_.size()), outs.data(),
                            total_, err));
    for (uint32_t k = 0; k < total_; ++k)
      results_[k] = Tensor::adopt(static_cast<tenon_tensor*>(outs[k].v.p));
  }

  // More results than an operator may have: gradients of long lists.
  void call_directly() {
    auto limit = [&](const std::string& what) {
      throw Error(TENON_UNSUPPORTED, "[" + rule_.gradient.info.name + "] " +
                                         std::to_string(total_) + " result tensors: more than " +
                                         std::to_string(kMaxResults) + " are made only " + what);
    };
    if (autograd()->enabled() && rule_.gradient.gradient)
      limit("without create_graph; pass shorter lists for second derivatives");
    for (const tenon_value& value : values_)
      for (tenon_tensor* tensor : tensors_of(value))
        if (tensor->device != host->device_host())
          limit("on the processor; move the arguments there");
    call_kernel(rule_.gradient, counts_, values_.data(), results_);
  }

  void deliver(uint64_t needs, tenon_value* grad_args) {
    size_t at = 0;
    for (size_t g = 0; g < counts_.size(); at += counts_[g++]) {
      size_t input = rule_.differentiated[g];
      if (!(needs >> input & 1) || counts_[g] == 0) continue;
      if (!rule_.forward.op().inputs[input].is_list) {
        grad_args[input] = boxed(results_[at].release());
        continue;
      }
      tenon_tensor** list = host->list_create(counts_[g]);
      if (!list) throw std::bad_alloc();
      for (uint32_t k = 0; k < counts_[g]; ++k) list[k] = results_[at + k].release();
      grad_args[input] = boxed(list, counts_[g]);
    }
  }

  const Rule& rule_;
  const tenon_value* args_;
  tenon_tensor* const* outs_;
  tenon_tensor* const* grad_outs_;
  std::vector<tenon_value> values_;
  std::vector<std::vector<tenon_tensor*>> lists_;
  std::vector<Tensor> kept_;
  std::vector<uint32_t> counts_;
  uint32_t total_ = 0;
  std::vector<Tensor> results_;
};

tenon_status backward_entry(const tenon_host*, const tenon_value* args, uint32_t,
                            tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t,
                            uint64_t needs, tenon_value* grad_args, tenon_err* err, void* self) {
  return guarded(err, [&] {
    Backward(*static_cast<const Rule*>(self), args, outs, grad_outs).run(needs, grad_args);
  });
}

Source find_source(const Declaration& op, const Declaration& gradient, const Name& name) {
  // An input that is written in place is its result by then: the author's kernel shares its memory.
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].is(name)) {
      const int written = op.find_written(i);
      return written < 0 ? Source{Source::kArgument, i}
                         : Source{Source::kResult, static_cast<size_t>(written)};
    }
  for (size_t j = 0; j < op.outputs.size(); ++j)
    if (op.outputs[j].is(name)) return {Source::kResult, j};
  for (size_t j = 0; j < op.outputs.size(); ++j)
    if (name.is_gradient_of(op.outputs[j])) return {Source::kGradient, j};
  throw Error(TENON_INVALID_ARGUMENT, "operator `" + gradient.info.name + "`: input \"" +
                                          name.text + "\" is neither an input nor an output of `" +
                                          op.info.name + "` nor the gradient of an output");
}

Rule::Rule(const Definition& definition)
    : forward(definition), gradient(*definition.op().gradient) {
  const Declaration& op = forward.op();
  table.struct_size = sizeof table;
  table.flags = TENON_GRAD_RULE_REPLACE;
  table.op = forward.name().c_str();
  table.self = this;
  table.backward_self = backward_entry;
  for (const Name& name : gradient.inputs) {
    Source source = find_source(op, gradient, name);
    sources.push_back(source);
    if (source.kind == Source::kArgument) table.saves_args |= uint64_t{1} << source.index;
    // A gradient that does not arrive is zeros in the form of its result, which only one knows that
    // is not alone.
    if (source.kind == Source::kArgument ||
        (source.kind == Source::kGradient && forward.result_count() < 2))
      continue;
    for (uint32_t k = forward.offset(source.index); k < forward.offset(source.index + 1); ++k)
      table.saves_outs |= uint64_t{1} << k;
  }
  for (const Attribute& attribute : gradient.attributes) {
    int index = op.find_attribute(attribute.name);
    if (index < 0 || op.attributes[static_cast<size_t>(index)].type != attribute.type)
      throw Error(TENON_INVALID_ARGUMENT,
                  "operator `" + gradient.info.name + "`: attribute \"" + attribute.name + ": " +
                      attribute_type_name(attribute.type) + "\" is none of `" + op.info.name + "`");
    attributes.push_back(static_cast<size_t>(index));
  }
  for (const Name& name : gradient.outputs) {
    const int found = find_differentiated(name, op.inputs);
    if (found < 0)
      throw Error(TENON_INVALID_ARGUMENT, "operator `" + gradient.info.name + "`: output \"" +
                                              name.text + "\" is the gradient of no input of `" +
                                              op.info.name + "`");
    const auto input = static_cast<size_t>(found);
    const auto other = std::find(differentiated.begin(), differentiated.end(), input);
    if (other != differentiated.end())
      throw Error(TENON_INVALID_ARGUMENT,
                  "operator `" + gradient.info.name + "`: outputs \"" +
                      gradient.outputs[static_cast<size_t>(other - differentiated.begin())].text +
                      "\" and \"" + name.text + "\" are both the gradient of input \"" +
                      op.inputs[input].text + "\" of `" + op.info.name +
                      "`, expected one for each input");
    differentiated.push_back(input);
    table.diff_args |= uint64_t{1} << input;
    // Of a list or an optional argument it must be known how many tensors it was.
    if (op.inputs[input].is_list || op.inputs[input].is_optional)
      table.shapes_args |= uint64_t{1} << input;
  }
  table.shapes_args &= ~table.saves_args;
}

}  // namespace

void register_gradient(const Definition& definition) {
  const tenon_grad_rule* table;
  if (definition.op().gradient) {
    table = &(new Rule(definition))->table;  // recorded calls point at it
  } else {
    auto* none = new tenon_grad_rule{};
    none->struct_size = sizeof *none;
    none->flags = TENON_GRAD_RULE_REPLACE;
    none->op = definition.name().c_str();
    table = none;
  }
  if (!autograd()) return;
  ErrorSink err;
  err.check(autograd()->rule_register(table, err));
}

}  // namespace tenon::paddle
