// SPDX-License-Identifier: Apache-2.0
// Where in a program an expression stands.
#pragma once

#include <optional>

#include "ir/alias_analysis.hpp"
#include "rewrite/rule.hpp"

namespace tenon::graph {

struct Match {
  std::vector<Operand> variables;  // what each stands for
  std::vector<uint32_t>
      steps;  // that compute it and nothing else, the root last; views are left out
};

// What matching asks about a program; made once for each state of it.
class Matcher {
 public:
  explicit Matcher(const Graph& graph);

  // `rule.from` with the result of step `root` as its value. Not where a part of it is used by others, is
  // written into, or was made without gradients where the root was not.
  std::optional<Match> find(const Rule& rule, uint32_t root) const;

  const AliasAnalysis& aliases() const { return aliases_; }
  bool is_live_out(ValueId value) const { return live_out_[value]; }

 private:
  friend class Search;
  static constexpr uint32_t kNoStep = ~uint32_t{0};

  const Graph& graph_;
  AliasAnalysis aliases_;
  std::vector<uint32_t> made_by_, uses_;  // by value
  std::vector<bool> live_out_;
};

}  // namespace tenon::graph
