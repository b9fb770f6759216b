// SPDX-License-Identifier: Apache-2.0
#include "program/program.hpp"

#include "ir/verify.hpp"

void tenon_graph_program::make_plan() const {
  const std::lock_guard lock(planning_);
  if (is_planned_.load(std::memory_order_relaxed)) return;
  if (!is_verified) tenon::graph::verify(graph);
  tenon::graph::Plan plan;
  plan.build(graph);
  plan_ = std::move(plan);
  is_planned_.store(true, std::memory_order_release);
}
