// SPDX-License-Identifier: Apache-2.0
#include "rewrite/match.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rewrite/fragment.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Both orders of their operands give the same bits.
bool is_commutative(const tenon_op* op) {
  static constexpr const char* kNames[] = {
      "tenon::add",         "tenon::multiply",    "tenon::maximum",     "tenon::minimum",
      "tenon::equal",       "tenon::not_equal",   "tenon::logical_and", "tenon::logical_or",
      "tenon::logical_xor", "tenon::bitwise_and", "tenon::bitwise_or",  "tenon::bitwise_xor"};
  const char* name = host->op_def(op)->name;
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* known) { return std::strcmp(known, name) == 0; });
}

bool is_axis(const tenon_param_def& param) { return std::strncmp(param.name, "axis", 4) == 0; }

// Counted from the first axis. `ndim` < 0: as it is.
int64_t counted(int64_t axis, int ndim) { return axis < 0 && ndim >= 0 ? axis + ndim : axis; }

// 2 is 2.0, and where the argument is an axis, -1 is the last one. `tolerance` is relative.
bool is_same(const Attribute& a, const Attribute& b, int ndim, double tolerance = 0) {
  double x = 0, y = 0;
  if (number_of(a, x) && number_of(b, y)) {
    if ((a.tag() == TENON_VALUE_BOOL) != (b.tag() == TENON_VALUE_BOOL)) return false;
    if (ndim < 0) return x == y || std::abs(x - y) <= tolerance * std::abs(x);
    return counted(static_cast<int64_t>(x), ndim) == counted(static_cast<int64_t>(y), ndim);
  }
  if (a.tag() == TENON_VALUE_INTS && b.tag() == TENON_VALUE_INTS) {
    const tenon_value left = a.value(), right = b.value();
    auto* p = static_cast<const int64_t*>(left.v.p);
    auto* q = static_cast<const int64_t*>(right.v.p);
    return std::equal(p, p + left.aux, q, q + right.aux,
                      [&](int64_t i, int64_t k) { return counted(i, ndim) == counted(k, ndim); });
  }
  return a == b;
}

}  // namespace

// What is known while the nodes of `from` are compared with a program.
class Search {
 public:
  struct Goal {
    uint32_t node;
    Operand operand;
    int ndim;  // of the tensor of whose axes the argument is one; -1: it is none
  };
  struct State {
    std::vector<std::optional<Operand>> variables, nodes;
    std::vector<uint32_t> steps, views;
  };

  Search(const Matcher& matcher, const Rule& rule, int32_t dtype)
      : matcher_(matcher),
        rule_(rule),
        tolerance_(rule.numerics == TENON_GRAPH_FAST && dtype != TENON_DTYPE_F64 ? kSmall : 0) {}

  // Do the goals hold together? Then `state` is how.
  bool solve(State& state, std::vector<Goal> goals) const {
    while (!goals.empty()) {
      const Goal goal = std::move(goals.back());
      goals.pop_back();
      const Expression::Node& node = rule_.from.nodes[goal.node];
      if (node.kind == Expression::kVariable) {
        if (!bind(state.variables[node.variable], rule_.variables[node.variable], goal))
          return false;
        continue;
      }
      if (node.kind != Expression::kCall) {
        if (goal.operand.kind != Operand::kAttribute ||
            !is_same(node.number, goal.operand.attribute, goal.ndim, tolerance_))
          return false;
        continue;
      }
      if (goal.operand.kind != Operand::kValue) return false;
      std::optional<Operand>& known = state.nodes[goal.node];
      if (known) {
        if (*known == goal.operand) continue;
        return false;
      }
      known = goal.operand;
      const uint32_t made_by = matcher_.made_by_[goal.operand.value];
      if (made_by == Matcher::kNoStep) return false;
      const Step& step = graph().steps[made_by];
      if (is_view(step)) {
        if (!match_view(goals, node, step)) return false;
        state.views.push_back(made_by);
        continue;
      }
      if (step.kind != StepKind::kCall || step.op != node.op || step.given ||
          step.results[0] != goal.operand.value)
        return false;
      state.steps.push_back(made_by);
      const size_t before = goals.size();
      if (!add_operands(goals, node, step)) return false;
      if (!is_commutative(step.op)) continue;
      State swapped = state;
      std::vector<Goal> others = goals;
      std::swap(others[before].operand, others[before + 1].operand);
      if (solve(state, std::move(goals))) return true;
      state = std::move(swapped);
      return solve(state, std::move(others));
    }
    return true;
  }

 private:
  const Graph& graph() const { return matcher_.graph_; }
  int rank_of(const Operand& operand) const {
    return operand.kind == Operand::kValue
               ? static_cast<int>(graph().values[operand.value].shape.size())
               : -1;
  }

  bool bind(std::optional<Operand>& bound, const Rule::Variable& variable, const Goal& goal) const {
    Operand operand = goal.operand;
    if (variable.is_tensor()) {
      if (operand.kind != Operand::kValue ||
          !(rule_.dtypes >> graph().values[operand.value].dtype & 1))
        return false;
    } else {
      if (operand.kind != Operand::kAttribute) return false;
      operand.attribute = attribute_as(operand.attribute, variable.kind);
      if (operand.attribute.tag() == TENON_VALUE_NONE) return false;
    }
    if (bound)
      return variable.is_tensor() ? *bound == operand
                                  : is_same(bound->attribute, operand.attribute, goal.ndim);
    bound = std::move(operand);
    return true;
  }

  // Goals for the operands of a step that calls the node's operator. False: one that the rule
  // leaves out is not the default.
  bool add_operands(std::vector<Goal>& goals, const Expression::Node& node,
                    const Step& step) const {
    const tenon_op_def& def = *host->op_def(step.op);
    for (uint32_t i = 0; i < def.nparams; ++i) {
      const tenon_param_def& param = def.params[i];
      const int ndim = is_axis(param) && i > 0 ? rank_of(step.operands[0]) : -1;
      if (node.operands[i] != Expression::kNoNode) {
        goals.push_back({node.operands[i], step.operands[i], ndim});
        continue;
      }
      Attribute absent;
      if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT) absent = Attribute(param.default_value);
      if (step.operands[i].kind != Operand::kAttribute ||
          !is_same(absent, step.operands[i].attribute, ndim))
        return false;
    }
    return true;
  }

  static bool is_view(const Step& step) {
    return step.kind == StepKind::kView ||
           (step.kind == StepKind::kCall && !step.given && makes_aliases(step) &&
            !step.operands.empty() && step.operands[0].kind == Operand::kValue);
  }

  // Is the window on its base that the step shows the one that the node's operator would show? Both
  // are asked, as a transpose is written in many ways.
  bool match_view(std::vector<Goal>& goals, const Expression::Node& node, const Step& step) const {
    const tenon_op_def& def = *host->op_def(node.op);
    if (!(def.flags & TENON_OP_VIEW) || def.nparams == 0 || node.operands[0] == Expression::kNoNode)
      return false;
    // With the base as its only variable, the node is an expression of its own.
    Expression view;
    view.nodes.resize(1);
    view.nodes[0].kind = Expression::kVariable;
    Expression::Node call = node;
    call.operands[0] = 0;
    for (uint32_t i = 1; i < def.nparams; ++i) {
      if (call.operands[i] == Expression::kNoNode) continue;
      const Expression::Node& argument = rule_.from.nodes[call.operands[i]];
      if (argument.kind != Expression::kNumber) return false;
      call.operands[i] = static_cast<uint32_t>(view.nodes.size());
      view.nodes.push_back(argument);
    }
    view.root = static_cast<uint32_t>(view.nodes.size());
    view.nodes.push_back(std::move(call));
    try {
      const Type& base_type = graph().values[step.operands[0].value];
      std::vector<Tensor> tensors = {strided_meta(base_type, step)};
      const Fragment fragment = Fragment::of(view, {Operand::of(ValueId{0})}, 1);
      fragment.run(tensors);
      const Tensor expected = tensors[fragment.result.value];
      if (!is_same_window(*expected.get(), *shown_by(step, tensors[0]).get())) return false;
    } catch (const std::exception&) {  // the operator does not take such a tensor
      return false;
    }
    goals.push_back({node.operands[0], step.operands[0], -1});
    return true;
  }

  // The base of a view, without memory. Steps that call an operator do not say the strides of
  // theirs.
  static Tensor strided_meta(const Type& type, const Step& step) {
    Axes strides = step.base_strides;
    int64_t elements = 1;
    if (step.kind == StepKind::kCall) {
      strides.resize(type.shape.size());
      for (size_t i = type.shape.size(); i-- > 0; elements *= type.shape[i]) strides[i] = elements;
    } else {
      for (size_t i = 0; i < strides.size(); ++i) {
        if (strides[i] < 0) throw Error(TENON_UNSUPPORTED, "a base with negative strides");
        elements += strides[i] * std::max<int64_t>(0, type.shape[i] - 1);
      }
    }
    const ErrorSink err;
    tenon_tensor* whole;
    err.check(host->tensor_create(TENON_DEVICE_META, type.dtype, 1, &elements, &whole, err));
    return view_of(Tensor::adopt(whole), type, strides, 0);
  }

  static Tensor view_of(const Tensor& base, const Type& type, const Axes& strides, int64_t offset) {
    const ErrorSink err;
    tenon_tensor* view;
    err.check(host->tensor_view(base.get(), type.dtype, static_cast<int32_t>(type.shape.size()),
                                type.shape.data(), strides.data(), offset, &view, err));
    return Tensor::adopt(view);
  }

  Tensor shown_by(const Step& step, const Tensor& base) const {
    if (step.kind == StepKind::kView)
      return view_of(base, graph().values[step.results[0]], step.strides, step.offset);
    Fragment fragment;
    fragment.steps.push_back(step);
    fragment.steps[0].operands[0] = Operand::of(ValueId{0});
    fragment.steps[0].results = {1};
    std::vector<Tensor> tensors = {base};
    fragment.run(tensors);
    return tensors[1];
  }

  static bool is_same_window(const tenon_tensor& a, const tenon_tensor& b) {
    if (a.dtype != b.dtype || a.ndim != b.ndim || a.byte_offset != b.byte_offset) return false;
    for (int32_t i = 0; i < a.ndim; ++i)
      if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i]))
        return false;
    return true;
  }

  // Of numbers in rules that are fast: people write 0.79788456 for the root of 2 / pi. It is half a
  // unit of float32; float64 would see it.
  static constexpr double kSmall = 0x1p-25;

  const Matcher& matcher_;
  const Rule& rule_;
  const double tolerance_;
};

Matcher::Matcher(const Graph& graph)
    : graph_(graph),
      aliases_(graph),
      made_by_(graph.values.size(), kNoStep),
      uses_(graph.values.size()),
      live_out_(graph.values.size()) {
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    const Step& step = graph.steps[i];
    for_each_operand(step, [&](ValueId id) { ++uses_[id]; });
    for (size_t k = 0; k < step.results.size(); ++k)
      if (!is_given(step, k)) made_by_[step.results[k]] = i;
  }
  for_each_live_out(graph, [&](ValueId id) { live_out_[id] = true; });
}

std::optional<Match> Matcher::find(const Rule& rule, uint32_t root) const {
  const Step& last = graph_.steps[root];
  if (last.kind != StepKind::kCall || last.given || last.op != rule.from.nodes[rule.from.root].op)
    return std::nullopt;
  const Search search(*this, rule, graph_.values[last.results[0]].dtype);
  Search::State state;
  state.variables.resize(rule.variables.size());
  state.nodes.resize(rule.from.nodes.size());
  if (!search.solve(state, {{rule.from.root, Operand::of(last.results[0]), -1}}))
    return std::nullopt;

  Match match;
  for (std::optional<Operand>& bound : state.variables) {
    if (!bound) return std::nullopt;
    if (bound->kind == Operand::kValue && aliases_.is_written(bound->value)) return std::nullopt;
    match.variables.push_back(std::move(*bound));
  }
  std::sort(state.steps.begin(), state.steps.end());
  match.steps = std::move(state.steps);
  if (match.steps.empty() || match.steps.back() != root) return std::nullopt;  // the root is a view

  // What a variable stands for stays, so none of the steps makes it: -x is both x and -y of x + -y.
  for (const Operand& variable : match.variables) {
    if (variable.kind != Operand::kValue) continue;
    const uint32_t made_by = made_by_[variable.value];
    if (std::binary_search(match.steps.begin(), match.steps.end(), made_by)) return std::nullopt;
  }
  // What the steps make is seen by none but them.
  std::vector<uint32_t> reads;
  for (uint32_t index : match.steps)
    for_each_operand(graph_.steps[index], [&](ValueId id) { reads.push_back(id); });
  for (uint32_t index : state.views)
    for_each_operand(graph_.steps[index], [&](ValueId id) { reads.push_back(id); });
  for (uint32_t index : match.steps) {
    const Step& step = graph_.steps[index];
    if (step.is_recorded != last.is_recorded) return std::nullopt;
    for (size_t k = 0; k < step.results.size(); ++k) {
      const ValueId id = step.results[k];
      if (index == root && k == 0) continue;
      const auto inside = std::count(reads.begin(), reads.end(), id);
      if (live_out_[id] || aliases_.is_written(id) || uses_[id] != inside) return std::nullopt;
    }
  }
  return match;
}

}  // namespace tenon::graph
