// SPDX-License-Identifier: Apache-2.0
// One function for each kind of rule. Each adds what it allows, or returns false where the rule does not say anything about
// the call.
#pragma once

#include "candidates.hpp"

namespace tenon::sharding {

struct Rules {
  const Call& call;
  uint32_t a;  // the axis of the mesh
  const std::vector<Candidate>& chosen;
  std::vector<Candidate> found;

  void add(Candidate candidate) { found.push_back(std::move(candidate)); }
  bool add_rule(const ShardingRule& rule);
  bool add_view();

  bool add_elementwise(const ShardingRule& rule);
  bool add_reduction(const ShardingRule& rule);
  bool add_rows(const ShardingRule& rule);
  bool add_product(const ShardingRule& rule);

  // Candidates for operands that are sums of the ranks' parts.
  void add_linear(const ShardingRule& rule);
  // A sum on the axis where every operand of `names` is Partial(reduce). False: one of them is a number.
  bool place_partial(const std::vector<std::string>& names, int32_t reduce,
                     std::vector<Placement>& operands) const;

  int64_t ranks() const { return call.mesh->sizes[a]; }
  // Into how many pieces axes of the mesh cut axis `axis` of operand `k`, with this one.
  int64_t pieces(size_t k, int64_t axis) const;
  const tenon_tensor& tensor(size_t k) const { return *call.operands[k].tensor; }
  const tenon_meta& result(size_t k) const { return call.results[k]; }
  Candidate empty() const {
    return {std::vector<Placement>(call.operands.size()),
            std::vector<Placement>(call.results.size()), false};
  }
};

// The axes that `word` names, a parameter or last(count), as numbers from 0 on; all of them for none.
std::vector<int64_t> axes_of(const Call& call, std::string_view word, int64_t ndim);

}  // namespace tenon::sharding
