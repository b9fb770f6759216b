// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <set>
#include <sstream>
#include <string>

namespace tenon::kit {
namespace {

// Appends a check behind all that it needs, once.
void place(const Check& check, const Checks& pool, std::set<std::string>& placed, Checks& order) {
  if (!placed.insert(check.id).second) return;
  std::istringstream needs(check.needs);
  for (std::string need; needs >> need;)
    for (const Check& other : pool)
      if (need == other.id) place(other, pool, placed, order);
  order.push_back(check);
}

}  // namespace

const Checks& all_checks() {
  static const Checks checks = [] {
    Checks pool, order;
    for (auto* family :
         {&static_checks,   &lifecycle_checks,  &skew_checks,          &fault_checks,
          &memory_checks,   &async_checks,      &pool_checks,          &graph_checks,
          &profile_checks,  &collective_checks, &exchange_checks,      &ipc_checks,
          &quiesce_checks,  &compile_checks,    &leak_checks,          &operator_checks,
          &result_checks,   &launch_checks,     &kernel_stream_checks, &gradient_checks,
          &subgraph_checks, &thread_checks,     &performance_checks,   &process_checks})
      pool.insert(pool.end(), family().begin(), family().end());
    std::set<std::string> placed;
    for (const Check& check : pool) place(check, pool, placed, order);
    return order;
  }();
  return checks;
}

}  // namespace tenon::kit
