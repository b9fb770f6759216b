// SPDX-License-Identifier: Apache-2.0
#include "candidates.hpp"

#include <tenon/operator_traits.hpp>

#include <algorithm>
#include <map>
#include <mutex>

#include "rules.hpp"

namespace tenon::sharding {

namespace {

std::mutex rules_mutex;
std::map<const tenon_op*, std::vector<ShardingRule>>& known_rules() {
  static std::map<const tenon_op*, std::vector<ShardingRule>> known;
  return known;
}

ShardingRule parse_rule(const tenon_op* op, std::string_view line) {
  try {
    return ShardingRule::parse(line);
  } catch (const std::invalid_argument& error) {
    throw Error(TENON_INVALID_ARGUMENT,
                std::string(host->op_def(op)->name) + ": a line `shard`: " + error.what());
  }
}

}  // namespace

const std::vector<ShardingRule>& rules_of(const tenon_op* op) {
  std::lock_guard lock(rules_mutex);
  const auto found = known_rules().find(op);
  if (found != known_rules().end()) return found->second;
  std::vector<ShardingRule> rules;
  for_each_trait(*host->op_def(op), "shard: ", [&](std::string_view line) {
    rules.push_back(parse_rule(op, line));
    return false;
  });
  return known_rules()[op] = std::move(rules);
}

tenon_status set_rules(const tenon_op* op, const char* lines, tenon_err* err) {
  return guarded(err, [&] {
    std::vector<ShardingRule> rules;
    std::string_view rest = lines ? lines : "";
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (!line.empty()) rules.push_back(parse_rule(op, line));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    std::lock_guard lock(rules_mutex);
    if (lines)
      known_rules()[op] = std::move(rules);
    else
      known_rules().erase(op);
  });
}

const char* Call::name() const {
  constexpr std::string_view kOwn = "tenon::";
  return std::string_view(def.name).starts_with(kOwn) ? def.name + kOwn.size() : def.name;
}

int32_t Call::find_param(std::string_view wanted) const {
  for (uint32_t i = 0; i < def.nparams; ++i)
    if (wanted == def.params[i].name) return static_cast<int32_t>(i);
  return -1;
}

std::optional<std::vector<int64_t>> Call::numbers(int32_t param) const {
  if (param < 0 || static_cast<uint32_t>(param) >= nargs) return {};
  const tenon_value& value = args[param];
  if (value.tag == TENON_VALUE_INT) return std::vector<int64_t>{value.v.i};
  if (value.tag != TENON_VALUE_INTS) return {};
  auto* list = static_cast<const int64_t*>(value.v.p);
  return std::vector<int64_t>(list, list + value.aux);
}

std::vector<Candidate> candidates(const Call& call, uint32_t a,
                                  const std::vector<Candidate>& chosen, bool& has_rule) {
  Rules rules{call, a, chosen, {}};
  rules.add(Candidate{std::vector<Placement>(call.operands.size()),
                      std::vector<Placement>(std::max<size_t>(call.results.size(), call.def.nouts)),
                      false});
  has_rule = false;
  if (call.results.empty() || call.def.flags & TENON_OP_RANDOM) return std::move(rules.found);
  if (call.def.flags & TENON_OP_VIEW) {
    has_rule = rules.add_view();
  } else if (const auto& stated = rules_of(call.op); !stated.empty()) {
    for (const ShardingRule& rule : stated) has_rule |= rules.add_rule(rule);
  } else if (call.def.flags & TENON_OP_ELEMENTWISE) {
    ShardingRule elementwise;
    elementwise.kind = ShardingRule::Kind::kElementwise;
    has_rule = rules.add_rule(elementwise);
  }
  return std::move(rules.found);
}

}  // namespace tenon::sharding
