// SPDX-License-Identifier: Apache-2.0
#include "execute/plan.hpp"

#include <tenon/services/autograd.h>
#include <tenon/services/calls.h>

#include <algorithm>
#include <memory>

#include "execute/control_flow.hpp"
#include "groups/find_groups.hpp"
#include "ir/alias_analysis.hpp"
#include "support/host.hpp"

namespace tenon::graph {

void Plan::build(const Graph& graph) {
  graph_ = &graph;
  for (const Step& step : graph.steps)
    if (step.kind == StepKind::kCall) use_operator(step);
  ErrorSink err;  // what follows asks operators what they are
  err.check(check_operators(err));
  std::vector<bool> is_result(graph.values.size()), is_owned(graph.values.size());
  for_each_live_out(graph, [&](ValueId id) { is_result[id] = true; });
  // A value dies after the last step that reads it or writes it, or at once if there is none.
  std::vector<uint32_t> last(graph.values.size());
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    for_each_operand(graph.steps[i], [&](ValueId id) { last[id] = i; });
    for (size_t k = 0; k < graph.steps[i].results.size(); ++k) {
      last[graph.steps[i].results[k]] = i;
      if (!is_given(graph.steps[i], k)) is_owned[graph.steps[i].results[k]] = true;
    }
  }
  std::vector<std::vector<ValueId>> dead(graph.steps.size());
  for (ValueId id = 0; id < graph.values.size(); ++id)
    if (is_owned[id]) {
      owned_.push_back(id);
      if (!is_result[id]) dead[last[id]].push_back(id);
    }

  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    const Step& step = graph.steps[i];
    Instruction instruction{.step = &step,
                            .op = step.op,
                            .kind = step.kind,
                            .is_recorded = step.is_recorded,
                            .is_result = false,
                            .may_copy = false,
                            .arguments = {static_cast<uint32_t>(arguments_.size()), 0},
                            .patches = {static_cast<uint32_t>(patches_.size()), 0},
                            .results = {static_cast<uint32_t>(results_.size()), 0},
                            .dead = {static_cast<uint32_t>(dead_.size()), 0},
                            .given = step.given,
                            .regions = {}};
    for (uint32_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      arguments_.push_back(operand.attribute.value());
      if (operand.kind == Operand::kAttribute) continue;
      patches_.push_back({k, operand.value, operand.kind == Operand::kList ? &operand : nullptr});
    }
    dead_.insert(dead_.end(), dead[i].begin(), dead[i].end());
    for (ValueId id : step.results) instruction.is_result |= is_result[id];
    results_.insert(results_.end(), step.results.begin(), step.results.end());
    instruction.results.count = static_cast<uint32_t>(step.results.size());
    instruction.arguments.count = static_cast<uint32_t>(step.operands.size());
    instruction.patches.count = static_cast<uint32_t>(patches_.size()) - instruction.patches.begin;
    instruction.dead.count = static_cast<uint32_t>(dead[i].size());
    for (const Graph& region : step.regions) instruction.regions.emplace_back().build(region);
    instructions_.push_back(std::move(instruction));
  }
  for (uint32_t i = 0; i < graph.grads.size(); ++i) {
    const GradUpdate& update = graph.grads[i];
    if (!update.from_none && (update.grad == kNoValueId || is_owned[update.grad]))
      replaced_grads_.push_back(i);
  }
  const AliasAnalysis aliases(graph);
  Constants constants;
  for (uint32_t i = 0; i < graph.leaves.size(); ++i) {
    const Leaf& leaf = graph.leaves[i];
    if (!leaf.is_constant) continue;
    if (aliases.is_written(leaf.value) || aliases.is_outside(leaf.value))
      copied_leaves_.push_back(i);
    else if (leaf.tensor && leaf.tensor->flags & TENON_TENSOR_CONTIGUOUS)
      constants[leaf.value] = leaf.tensor.get();
  }
  const auto is_needed_after = [&](ValueId id, uint32_t step) {
    return is_result[id] || last[id] > step;
  };
  groups_ = find_groups({graph, is_needed_after, std::move(constants)});
  find_views_of_copies(aliases);
  find_direct_results();
  find_shared_results(aliases);
}

void Plan::find_views_of_copies(const AliasAnalysis& aliases) {
  const tenon_op* view = host->op_find("view");
  for (Instruction& instruction : instructions_) {
    if (instruction.kind != StepKind::kCall || instruction.step->operands.empty()) continue;
    const Operand& base = instruction.step->operands[0];
    if (base.kind != Operand::kValue || aliases.is_written(base.value)) continue;
    instruction.may_copy = instruction.op == view;
  }
}

void Plan::find_shared_results(const AliasAnalysis& aliases) {
  std::vector<bool> is_outer(graph_->values.size());  // by group of values
  for (ValueId id : graph_->inputs) is_outer[aliases.alias_set(id)] = true;
  for (const Leaf& leaf : graph_->leaves)
    if (!leaf.is_constant) is_outer[aliases.alias_set(leaf.value)] = true;
  for (ValueId id : graph_->results) is_shared_.push_back(is_outer[aliases.alias_set(id)]);
}

void Plan::find_direct_results() {
  std::vector<uint32_t> uses(graph_->values.size());
  for (const Step& step : graph_->steps) {
    for_each_operand(step, [&](ValueId id) { ++uses[id]; });
    for (size_t i = 0; i < step.results.size(); ++i)
      if (is_given(step, i)) ++uses[step.results[i]];
  }
  for_each_live_out(*graph_, [&](ValueId id) { ++uses[id]; });
  std::vector<bool> is_made(graph_->values.size());
  auto add = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const Step& step = graph_->steps[i];
      if (step.kind != StepKind::kCall || host->op_def(step.op)->flags & TENON_OP_VIEW) continue;
      for (size_t k = 0; k < step.results.size(); ++k)
        if (!is_given(step, k)) is_made[step.results[k]] = true;
    }
  };
  // What makes results of its own, in memory that it chooses.
  uint32_t next = 0;
  for (const GroupPtr& group : groups_) {
    if (group->writes_into_given_results()) continue;
    if (group->begin() > next) add(next, group->begin());
    next = std::max(next, group->end());
  }
  add(next, static_cast<uint32_t>(graph_->steps.size()));
  for (ValueId id : graph_->results) is_direct_.push_back(is_made[id] && uses[id] == 1);
}

std::string Plan::text() const {
  std::string text;
  uint32_t end = 0;  // of a group whose steps run in no other one
  for (const GroupPtr& group : groups_) {
    if (group->begin() < end) continue;
    text += group->describe() + "\n";
    if (group->runs_as_one()) end = group->end();
  }
  for (const Instruction& instruction : instructions_)
    for (const Plan& region : instruction.regions) text += region.text();
  return text;
}

uint32_t Plan::count_steps() const {
  auto count = static_cast<uint32_t>(instructions_.size());
  for (const Instruction& instruction : instructions_)
    for (const Plan& region : instruction.regions) count += region.count_steps();
  return count;
}

void Plan::for_each_claim(const VisitClaim& visit, uint32_t first) const {
  std::vector<uint32_t> index;  // of each step, and of the end
  for (const Instruction& instruction : instructions_) {
    index.push_back(first++);
    for (const Plan& region : instruction.regions) {
      region.for_each_claim(visit, first);
      first += region.count_steps();
    }
  }
  index.push_back(first);
  for (const GroupPtr& group : groups_) {
    std::string problem;
    const std::string claimer = group->claimer(&problem);
    if (!claimer.empty()) visit(index[group->begin()], index[group->end()], claimer, problem);
  }
}

void Plan::use_operator(const Step& step) {
  const tenon_op_def* def = host->op_def(step.op);
  auto is_known = [&](const UsedOperator& used) { return used.def == def; };
  if (std::none_of(operators_.begin(), operators_.end(), is_known))
    operators_.push_back({def, &step});
}

tenon_status Plan::check_operators(tenon_err* err) const {
  for (const UsedOperator& used : operators_)
    if (used.def->schema_hash != used.step->schema_hash) [[unlikely]]
      return fail_format(err, TENON_NOT_FOUND,
                         "program: operator %s is not what it was when the program was made; was "
                         "its plugin unloaded?",
                         used.step->name.c_str());
  for (const Instruction& instruction : instructions_)
    for (const Plan& region : instruction.regions) TENON_TRY(region.check_operators(err));
  return TENON_OK;
}

// The values of one run. What steps made is released when the run ends, on failure as well.
class Plan::Run {
 public:
  Run(const Plan& plan, Gradients gradients, const RunOptions& options, tenon_err* err)
      : plan_(plan),
        calls_(calls()),
        graph_(*plan.graph_),
        gradients_(gradients),
        options_(options),
        err_(err),
        values_(graph_.values.size()) {}
  Run(const Run&) = delete;
  ~Run() {
    for (ValueId id : plan_.owned_)
      if (values_[id]) host->tensor_release(values_[id]);
  }

  tenon_status run(tenon_tensor* const* inputs, tenon_tensor** results) {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) values_[graph_.inputs[i]] = inputs[i];
    for (const Leaf& leaf : graph_.leaves) values_[leaf.value] = leaf.tensor.get();
    TENON_TRY(check_grads());
    TENON_TRY(release_replaced_grads());
    std::vector<Tensor> copies;
    for (uint32_t index : plan_.copied_leaves_) {
      const Leaf& leaf = graph_.leaves[index];
      TENON_TRY(guarded(err_, [&] { copies.push_back(copy_of(leaf.tensor)); }));
      values_[leaf.value] = copies.back().get();
    }
    place_results();
    auto group = plan_.groups_.begin();
    const auto last_group = plan_.groups_.end();
    for (uint32_t i = 0; i < plan_.instructions_.size();) {
      if (options_.before) TENON_TRY(options_.before(options_.user, err_));
      uint32_t end = i;
      for (; end == i && group != last_group && (*group)->begin() == i; ++group)
        TENON_TRY(run_group(**group, &end));
      const bool is_group = end > i;
      if (is_group) {
        while (group != last_group && (*group)->begin() < end) ++group;  // within one that ran
      } else {
        const Instruction& instruction = plan_.instructions_[end++];
        const tenon_status status = step(instruction);
        if (status != TENON_OK) [[unlikely]]
          return describe(*instruction.step, status);
      }
      if (options_.after) TENON_TRY(tell(i, end, is_group));
      for (; i < end; ++i) release_dead(plan_.instructions_[i]);
      if (observation_ && end == observed_->end()) {
        observation_->finish(values_);
        observation_.reset();
      }
    }
    for (const GradUpdate& update : graph_.grads) {
      tenon_tensor* grad = update.grad == kNoValueId ? nullptr : values_[update.grad];
      TENON_TRY(autograd()->set_grad(values_[update.tensor], grad, err_));
    }
    TENON_TRY(copy_results());
    std::vector<Tensor> own;
    if (options_.flags & TENON_GRAPH_RUN_OWN_RESULTS)
      TENON_TRY(guarded(err_, [&] { own = copies_of_shared_results(); }));
    for (size_t i = 0; i < graph_.results.size(); ++i) {
      results[i] = target(i) ? target(i) : values_[graph_.results[i]];
      if (!own.empty() && own[i]) results[i] = own[i].get();
      host->tensor_retain(results[i]);
    }
    return TENON_OK;
  }

 private:
  tenon_tensor* target(size_t result) const {
    return options_.into ? options_.into[result] : nullptr;
  }

  // A value that is there before its step ran is where the step writes.
  void place_results() {
    if (gradients_ != Gradients::kOff) return;
    for (size_t i = 0; i < graph_.results.size(); ++i)
      if (target(i) && plan_.is_direct_[i])
        host->tensor_retain(values_[graph_.results[i]] = target(i));
  }

  tenon_status copy_results() const {
    for (size_t i = 0; i < graph_.results.size(); ++i)
      if (target(i) && target(i) != values_[graph_.results[i]])
        TENON_TRY(host->tensor_copy(target(i), values_[graph_.results[i]], err_));
    return TENON_OK;
  }

  // By result; empty where there is none.
  std::vector<Tensor> copies_of_shared_results() const {
    std::vector<Tensor> copies;
    for (size_t i = 0; i < graph_.results.size(); ++i) {
      if (!plan_.is_shared_[i] || target(i)) continue;
      copies.resize(graph_.results.size());
      copies[i] = copy_of(Tensor::borrow(values_[graph_.results[i]]));
    }
    return copies;
  }

  tenon_status tell(uint32_t begin, uint32_t end, bool is_group) const {
    tenon_tensor* results[kMaxResults];
    uint32_t count = 0;
    if (!is_group)
      for (ValueId id : plan_.instructions_[begin].step->results)
        if (count < kMaxResults) results[count++] = values_[id];
    return options_.after(options_.user, begin, end, results, count, err_);
  }

  // `*end`: where the group ends; untouched where its steps have to run one by one.
  tenon_status run_group(const Group& group, uint32_t* end) {
    const bool one_by_one = options_.flags & TENON_GRAPH_RUN_ONE_BY_ONE;
    if (gradients_ != Gradients::kOff || one_by_one) return TENON_OK;
    switch (group.run(values_)) {
      case Group::Outcome::kDone:
        *end = group.end();
        return TENON_OK;
      case Group::Outcome::kBroken:
        return describe_broken(group);
      case Group::Outcome::kDeclined:
        break;
    }
    if (std::unique_ptr<Group::Observation> observation = group.observe(values_)) {
      observation_ = std::move(observation);
      observed_ = &group;
    }
    return TENON_OK;
  }

  [[gnu::cold]] tenon_status describe_broken(const Group& group) const {
    return fail_format(err_, TENON_INTERNAL,
                       "program: steps %u to %u: a kernel failed while another one of the group "
                       "wrote in place; the tensors that they write hold parts of the results",
                       group.begin(), group.end() - 1);
  }

  void release_dead(const Instruction& instruction) {
    for (uint32_t i = 0; i < instruction.dead.count; ++i) {
      tenon_tensor*& value = values_[plan_.dead_[instruction.dead.begin + i]];
      host->tensor_release(std::exchange(value, nullptr));
    }
  }

  tenon_status check_grads() const {
    if (graph_.grads.empty()) return TENON_OK;
    if (!autograd())
      return fail(err_, TENON_UNAVAILABLE, "program: it sets .grad; load the plugin autograd");
    for (const GradUpdate& update : graph_.grads) {
      const tenon_tensor* tensor = values_[update.tensor];
      if (update.from_none && autograd()->grad(tensor))
        return fail_format(err_, TENON_FAILED_PRECONDITION,
                           "program: expected no .grad in the tensor %s, as when the function was "
                           "recorded, got one; call optimizer.zero_grad() before the program, or "
                           "first in the exported function",
                           type_text(type_of(*tensor)).c_str());
    }
    return TENON_OK;
  }

  // What the program replaces in .grad makes room for what it makes, as where a function begins with
  // zero_grad(). A caller may have nothing but .grad to hold an input.
  tenon_status release_replaced_grads() const {
    for (uint32_t index : plan_.replaced_grads_) {
      tenon_tensor* tensor = values_[graph_.grads[index].tensor];
      const tenon_tensor* grad = autograd()->grad(tensor);
      const auto is_it = [&](ValueId input) { return values_[input] == grad; };
      if (!grad || std::any_of(graph_.inputs.begin(), graph_.inputs.end(), is_it)) continue;
      TENON_TRY(autograd()->set_grad(tensor, nullptr, err_));
    }
    return TENON_OK;
  }

  tenon_status step(const Instruction& instruction) {
    switch (instruction.kind) {
      case StepKind::kCall:
        return call(instruction);
      case StepKind::kView:
        return view(*instruction.step);
      case StepKind::kDetach:
        return detach(instruction);
      default:
        return run_regions(instruction);
    }
  }

  tenon_status call(const Instruction& instruction) {
    const uint32_t nargs = instruction.arguments.count, nouts = instruction.results.count;
    const ValueId* results = plan_.results_.data() + instruction.results.begin;
    tenon_value args[kMaxArguments], outs[kMaxResults];
    std::copy_n(plan_.arguments_.data() + instruction.arguments.begin, nargs, args);
    if (!lists_.empty()) lists_.clear();
    const Patch* patch = plan_.patches_.data() + instruction.patches.begin;
    for (const Patch* end = patch + instruction.patches.count; patch != end; ++patch)
      args[patch->argument] = patch->list ? gather(*patch->list) : boxed(values_[patch->value]);
    for (uint32_t i = 0; i < nouts; ++i)
      outs[i] = values_[results[i]] ? boxed(values_[results[i]]) : kNoValue;
    if (gradients_ == Gradients::kReplay) autograd()->set_enabled(instruction.is_recorded);
    tenon_status status = calls_ ? calls_->call(instruction.op, args, outs, err_)
                                 : host->op_call(instruction.op, args, nargs, outs, nouts, err_);
    if (status != TENON_OK && instruction.may_copy) [[unlikely]]
      status = view_copy(instruction, args, outs);
    TENON_TRY(status);
    for (uint32_t i = 0; i < nouts; ++i)
      if (!values_[results[i]]) values_[results[i]] = static_cast<tenon_tensor*>(outs[i].v.p);
    return TENON_OK;
  }

  // The program was told what no kernel had run for: that the value is dense. A kernel may give it
  // in the order of its argument, channels last, where no view has the shape.
  [[gnu::cold]] tenon_status view_copy(const Instruction& instruction, tenon_value* args,
                                       tenon_value* outs) {
    const tenon_op* contiguous = host->op_find("contiguous");
    if (as_tensor(args[0])->flags & TENON_TENSOR_CONTIGUOUS || !contiguous)
      return TENON_INVALID_ARGUMENT;  // as `err_` says
    host->err_clear(err_);
    tenon_value copy = kNoValue;
    TENON_TRY(host->op_call(contiguous, args, 1, &copy, 1, err_));
    const Tensor owned = Tensor::adopt(as_tensor(copy));
    args[0] = copy;
    return host->op_call(instruction.op, args, instruction.arguments.count, outs,
                         instruction.results.count, err_);
  }

  tenon_value gather(const Operand& operand) {
    auto& list = lists_.emplace_back();
    for (ValueId id : operand.list) list.push_back(values_[id]);
    return boxed(list.data(), list.size());
  }

  // The stride of an axis of one element leads nowhere.
  static bool has_strides(const tenon_tensor& tensor, const std::vector<int64_t>& strides) {
    for (int32_t i = 0; i < tensor.ndim; ++i)
      if (tensor.strides[i] != strides[static_cast<size_t>(i)] && tensor.shape[i] > 1) return false;
    return true;
  }

  tenon_status view(const Step& step) {
    tenon_tensor* base = values_[step.operands[0].value];
    if (!has_strides(*base, step.base_strides))
      return fail(err_, TENON_INVALID_ARGUMENT,
                  "expected a tensor with the strides " + list_text(step.base_strides) +
                      ", as when the program was recorded, got " +
                      list_text({base->strides, static_cast<size_t>(base->ndim)}) +
                      "; pass tensors with the same layout, such as x.contiguous()");
    const Type& type = graph_.values[step.results[0]];
    return host->tensor_view(base, type.dtype, static_cast<int32_t>(type.shape.size()),
                             type.shape.data(), step.strides.data(), step.offset,
                             &values_[step.results[0]], err_);
  }

  tenon_status detach(const Instruction& instruction) {
    tenon_tensor* base = values_[instruction.step->operands[0].value];
    tenon_tensor*& out = values_[instruction.step->results[0]];
    // Without gradients the tensor itself does; but a caller gets one of its own.
    if (gradients_ == Gradients::kOff && !instruction.is_result) {
      host->tensor_retain(out = base);
      return TENON_OK;
    }
    if (autograd()) return autograd()->detach(base, &out, err_);
    return host->tensor_view(base, base->dtype, base->ndim, base->shape, base->strides, 0, &out,
                             err_);
  }

  tenon_status run_regions(const Instruction& instruction) {
    const Step& step = *instruction.step;
    std::vector<tenon_tensor*> operands, results(step.results.size());
    for (const Operand& operand : step.operands) operands.push_back(values_[operand.value]);
    // What joins the regions together, such as the slices of a scan, is recorded for gradients.
    auto resume_gradients = [&] {
      if (gradients_ == Gradients::kReplay) autograd()->set_enabled(1);
    };
    auto region = [&](size_t index) -> RegionFn {
      return [&, index](tenon_tensor* const* inputs, tenon_tensor** outs) {
        const tenon_status status = instruction.regions[index].run(
            inputs, outs, gradients_, options_in_region(options_), err_);
        resume_gradients();
        return status;
      };
    };
    resume_gradients();
    switch (step.kind) {
      case StepKind::kCond:
        TENON_TRY(run_cond(operands, region(0), region(1), results.data(), err_));
        break;
      case StepKind::kWhile:
        TENON_TRY(run_while(operands, step.carried, region(0), region(1), results.data(), err_));
        break;
      default:
        TENON_TRY(run_scan(operands, step.carried, step.scanned, region(0), results, err_));
    }
    for (size_t i = 0; i < results.size(); ++i) values_[step.results[i]] = results[i];
    return TENON_OK;
  }

  [[gnu::cold]] tenon_status describe(const Step& step, tenon_status status) const {
    const std::string where = location_text(step.location);
    add_context(err_, "program: %s%s%s", call_text(graph_, step).c_str(),
                where.empty() ? "" : " at ", where.c_str());
    return status;
  }

  const Plan& plan_;
  const tenon_calls_api* const calls_;
  const Graph& graph_;
  const Gradients gradients_;
  const RunOptions& options_;
  tenon_err* err_;
  std::vector<tenon_tensor*> values_;
  std::vector<std::vector<tenon_tensor*>> lists_;  // arguments of the call under way
  // Of a group that runs step by step.
  std::unique_ptr<Group::Observation> observation_;
  const Group* observed_ = nullptr;
};

tenon_status Plan::run(tenon_tensor* const* inputs, tenon_tensor** results, Gradients gradients,
                       const RunOptions& options, tenon_err* err) const {
  tenon_status status = TENON_OK;
  const tenon_status thrown =
      guarded(err, [&] { status = Run(*this, gradients, options, err).run(inputs, results); });
  return thrown != TENON_OK ? thrown : status;
}

}  // namespace tenon::graph
