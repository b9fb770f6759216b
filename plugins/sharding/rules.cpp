// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <cstdlib>

namespace tenon::sharding {
namespace {

bool contains(const std::vector<int64_t>& list, int64_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

bool has_value(const Call& call, const ShardingRule& rule) {
  const int32_t param = call.find_param(rule.condition);
  if (param < 0) return false;
  const tenon_value& value = call.args[param];
  if (value.tag == TENON_VALUE_STRING)
    return rule.value == std::string_view(static_cast<const char*>(value.v.p), value.aux);
  return (value.tag == TENON_VALUE_INT || value.tag == TENON_VALUE_BOOL) &&
         rule.value == std::to_string(value.v.i);
}

}  // namespace

std::vector<int64_t> axes_of(const Call& call, std::string_view word, int64_t ndim) {
  std::vector<int64_t> axes;
  if (word.starts_with("last(")) {
    const std::string inside(word.substr(5, word.size() - 6));
    char* end;
    int64_t count = std::strtoll(inside.c_str(), &end, 10);
    if (*end) {
      const auto given = call.numbers(call.find_param(inside));
      count = given && given->size() == 1 ? given->front() : ndim;
    }
    for (int64_t i = std::max<int64_t>(0, ndim - count); i < ndim; ++i) axes.push_back(i);
    return axes;
  }
  const auto given = call.numbers(call.find_param(word));
  if (given)
    for (int64_t axis : *given) axes.push_back(axis < 0 ? axis + ndim : axis);
  else
    for (int64_t i = 0; i < ndim; ++i) axes.push_back(i);
  return axes;
}

int64_t Rules::pieces(size_t k, int64_t axis) const {
  int64_t count = ranks();
  for (uint32_t b = 0; b < a; ++b)
    if (chosen[b].operands[k].cuts(axis)) count *= call.mesh->sizes[b];
  return count;
}

bool Rules::add_rule(const ShardingRule& rule) {
  if (!rule.condition.empty() && !has_value(call, rule)) return false;
  switch (rule.kind) {
    case ShardingRule::Kind::kElementwise:
      return add_elementwise(rule);
    case ShardingRule::Kind::kReduction:
      return add_reduction(rule);
    case ShardingRule::Kind::kRows:
      return add_rows(rule);
    case ShardingRule::Kind::kProduct:
      return add_product(rule);
    case ShardingRule::Kind::kLike:
    case ShardingRule::Kind::kRandom:
      break;
  }
  return false;
}

bool Rules::place_partial(const std::vector<std::string>& names, int32_t reduce,
                          std::vector<Placement>& operands) const {
  for (const std::string& name : names) {
    const int32_t param = call.find_param(name);
    if (param < 0) return false;
    const int32_t tag = call.args[param].tag;
    // A number that is added is one on every rank: it would be added once for each.
    if (tag != TENON_VALUE_NONE && tag != TENON_VALUE_TENSOR && tag != TENON_VALUE_TENSORS)
      return false;
    for (size_t k = 0; k < operands.size(); ++k)
      if (call.operands[k].param == static_cast<uint32_t>(param))
        operands[k] = Placement::partial(reduce);
  }
  return true;
}

void Rules::add_linear(const ShardingRule& rule) {
  for (const int32_t reduce : {TENON_REDUCE_SUM, TENON_REDUCE_MEAN}) {
    bool occurs = false;
    for (const Operand& operand : call.operands)
      occurs |= operand.view.at[a] == Placement::partial(reduce);
    if (!occurs) continue;
    for (const auto& set : rule.linear) {
      Candidate made = empty();
      if (!place_partial(set, reduce, made.operands)) continue;
      std::fill(made.results.begin(), made.results.end(), Placement::partial(reduce));
      add(std::move(made));
    }
  }
}

bool Rules::add_elementwise(const ShardingRule& rule) {
  const tenon_meta& out = result(0);
  for (const tenon_meta& other : call.results)
    if (other.ndim != out.ndim || !std::equal(other.shape, other.shape + other.ndim, out.shape))
      return false;
  for (int64_t d = 0; d < out.ndim; ++d) {
    if (out.shape[d] == 1) continue;
    Candidate made = empty();
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const int64_t i = d - (out.ndim - tensor(k).ndim);
      if (i >= 0 && tensor(k).shape[i] == out.shape[d]) made.operands[k] = Placement::shard(i);
    }
    std::fill(made.results.begin(), made.results.end(), Placement::shard(d));
    add(std::move(made));
  }
  add_linear(rule);
  return true;
}

bool Rules::add_reduction(const ShardingRule& rule) {
  const tenon_tensor& x = tensor(0);
  const std::vector<int64_t> reduced = axes_of(call, "axis", x.ndim);
  const bool is_mean = rule.word == "mean";
  const bool is_extreme = rule.word == "max" || rule.word == "min";
  const int32_t reduce = rule.word == "max"   ? TENON_REDUCE_MAX
                         : rule.word == "min" ? TENON_REDUCE_MIN
                                              : TENON_REDUCE_SUM;
  const bool keeps = result(0).ndim == x.ndim;
  for (int64_t i = 0; i < x.ndim; ++i) {
    Candidate made = empty();
    made.operands[0] = Placement::shard(i);
    if (contains(reduced, i)) {
      // Nothing has no maximum: every rank needs a part.
      if (is_extreme && x.shape[i] < pieces(0, i)) continue;
      made.results[0] = Placement::partial(reduce);
      made.cuts_mean = is_mean;
    } else {
      int64_t to = i;
      if (!keeps)
        to -= std::count_if(reduced.begin(), reduced.end(), [&](int64_t axis) { return axis < i; });
      made.results[0] = Placement::shard(to);
    }
    add(std::move(made));
  }
  if (is_extreme && call.operands[0].view.at[a] == Placement::partial(reduce)) {
    Candidate made = empty();
    made.operands[0] = made.results[0] = Placement::partial(reduce);
    add(std::move(made));
  }
  add_linear(rule);
  return true;
}

bool Rules::add_rows(const ShardingRule& rule) {
  if (call.operands.empty()) return false;
  const tenon_tensor& x = tensor(0);
  const tenon_meta& out = result(0);
  // Of a result with axes that the first tensor lacks, the names are those of its axes.
  const bool adds_axes = rule.adds_axes;
  const std::vector<int64_t> axes = axes_of(call, rule.word, adds_axes ? out.ndim : x.ndim);
  const auto in_front = [&](int64_t i) {
    return std::count_if(axes.begin(), axes.end(), [&](int64_t axis) { return axis < i; });
  };
  for (int64_t i = 0; i < x.ndim; ++i) {
    if (!adds_axes && contains(axes, i)) continue;
    Candidate made = empty();
    bool fits = true;
    for (size_t k = 0; k < call.operands.size() && fits; ++k) {
      const bool is_whole =
          std::find(rule.whole.begin(), rule.whole.end(),
                    call.def.params[call.operands[k].param].name) != rule.whole.end();
      if (is_whole || tensor(k).ndim != x.ndim) continue;
      fits = tensor(k).shape[i] == x.shape[i];
      made.operands[k] = Placement::shard(i);
    }
    for (size_t k = 0; k < call.results.size() && fits; ++k) {
      const int32_t ndim = result(k).ndim;
      int64_t to = i;
      if (adds_axes)
        for (int64_t axis : axes) to += axis <= to;
      else if (ndim == x.ndim - static_cast<int64_t>(axes.size()))
        to -= in_front(i);
      else if (axes.size() == 1 && i > axes[0])  // others in the place of the axis
        to += ndim - x.ndim;
      else if (ndim != x.ndim && (axes.empty() || i > axes[0]))
        fits = false;
      fits = fits && to >= 0 && to < ndim && result(k).shape[to] == x.shape[i];
      made.results[k] = Placement::shard(to);
    }
    if (fits) add(std::move(made));
  }
  add_linear(rule);
  return true;
}

}  // namespace tenon::sharding
