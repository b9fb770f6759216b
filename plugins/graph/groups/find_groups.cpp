// SPDX-License-Identifier: Apache-2.0
#include "groups/find_groups.hpp"

#include <algorithm>

#include "groups/delegated_group.hpp"
#include "groups/fused_kernel.hpp"
#include "groups/tiled_group.hpp"

namespace tenon::graph {

std::vector<GroupPtr> find_groups(const GroupContext& context) {
  // Groups of the steps from `begin` to before `end`. Kinds are for devices of different sorts: no step is in two groups.
  using Find = std::vector<GroupPtr> (*)(const GroupContext&, uint32_t begin, uint32_t end);
  constexpr Find kKinds[] = {TiledGroup::find, FusedKernel::find};

  const auto nsteps = static_cast<uint32_t>(context.graph.steps.size());
  std::vector<GroupPtr> groups = DelegatedGroup::find(context, 0, nsteps);
  std::vector<uint32_t> bounds = {0};  // no other group has steps on both sides of one
  for (const GroupPtr& group : groups) bounds.insert(bounds.end(), {group->begin(), group->end()});
  bounds.push_back(nsteps);
  for (size_t i = 1; i < bounds.size(); ++i)
    for (Find find : kKinds)
      for (GroupPtr& group : find(context, bounds[i - 1], bounds[i]))
        groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupPtr& a, const GroupPtr& b) { return a->begin() < b->begin(); });
  return groups;
}

std::string Group::steps_text() const {
  return "steps " + std::to_string(begin_) + " to " + std::to_string(end_ - 1);
}

}  // namespace tenon::graph
