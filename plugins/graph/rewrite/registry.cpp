// SPDX-License-Identifier: Apache-2.0
#include "rewrite/registry.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <mutex>

#include "rewrite/check.hpp"
#include "rewrites.hpp"

namespace tenon::graph {
namespace {

struct Registry {
  std::mutex mutex;
  bool has_built_in = false;
  Rules rules;
};
Registry& registry() {
  static Registry registry;
  return registry;
}

// Tests try them; reading them needs the operators, which are there when the first program is.
void add_built_in(Registry& known) {
  if (known.has_built_in) return;
  for (const tenon_graph_rewrite& text : kRewrites)
    known.rules.push_back(std::make_shared<const Rule>(Rule::parse(text)));
  known.has_built_in = true;
}

Rules::iterator find(Rules& rules, std::string_view name) {
  return std::find_if(rules.begin(), rules.end(),
                      [&](const std::shared_ptr<const Rule>& rule) { return rule->name == name; });
}

Rules::iterator need(Rules& rules, std::string_view name) {
  auto found = find(rules, name);
  if (found == rules.end())
    throw Error(TENON_NOT_FOUND, "there is no rewrite `" + std::string(name) + "`");
  return found;
}

int32_t numerics_of(std::string_view name) {
  if (name == "exact") return TENON_GRAPH_EXACT;
  if (name == "ulp") return TENON_GRAPH_ULP;
  if (name == "fast") return TENON_GRAPH_FAST;
  throw Error(TENON_INVALID_ARGUMENT, "program: expected numerics 'exact', 'ulp' or 'fast', got '" +
                                          std::string(name) + "'");
}

std::string_view take_until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return part;
}

}  // namespace

void add_rule(const tenon_graph_rewrite& text) {
  auto rule = std::make_shared<const Rule>(Rule::parse(text));
  constexpr uint64_t kSeeds[] = {1, 2};
  for (uint64_t seed : kSeeds) check_rule(*rule, seed);
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  add_built_in(known);
  if (find(known.rules, rule->name) != known.rules.end())
    throw Error(
        TENON_ALREADY_EXISTS,
        "rewrite `" + rule->name + "` exists already; choose another name, or remove it first");
  known.rules.push_back(std::move(rule));
}

void remove_rule(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  add_built_in(known);
  known.rules.erase(need(known.rules, name));
}

std::shared_ptr<const Rule> rule_named(std::string_view name) {
  Rules rules = all_rules();
  return *need(rules, name);
}

Rules all_rules() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  add_built_in(known);
  return known.rules;
}

RuleChoice choose_rules(std::string_view choice) {
  std::string_view level = take_until(choice, '!');
  if (!level.empty()) level.remove_prefix(1);
  const int32_t numerics = level.empty() ? int32_t{TENON_GRAPH_EXACT} : numerics_of(level);
  Rules rules = all_rules();
  while (!choice.empty()) {
    rules.erase(need(rules, take_until(choice, '!')));
  }
  std::erase_if(rules,
                [&](const std::shared_ptr<const Rule>& rule) { return rule->numerics > numerics; });
  return {std::move(rules), numerics};
}

}  // namespace tenon::graph
