// SPDX-License-Identifier: Apache-2.0
#include "passes/built_in_passes.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <charconv>

#include "passes/common_subexpressions.hpp"
#include "passes/copies.hpp"
#include "passes/dead_code.hpp"
#include "passes/fold_batch_norms.hpp"
#include "passes/fold_constants.hpp"
#include "passes/freeze.hpp"
#include "passes/rematerialize.hpp"
#include "passes/views.hpp"
#include "rewrite/apply.hpp"
#include "rewrite/registry.hpp"

namespace tenon::graph {
namespace {

// A level that lets results differ lets gradients differ, too.
void run_rewrites(Graph& graph, PassContext& context) {
  const RuleChoice chosen = choose_rules(context.argument);
  const bool is_exact = chosen.numerics == TENON_GRAPH_EXACT;
  apply_rewrites(chosen.rules, graph, context.passes_gradients && is_exact, context.changes);
  set_numerics(graph, chosen.numerics);
}

void run_rematerialize(Graph& graph, PassContext& context) {
  const std::string_view bytes = context.argument.substr(1);
  int64_t budget = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), budget);
  if (error != std::errc() || end != bytes.data() + bytes.size() || budget < 1)
    throw Error(TENON_INVALID_ARGUMENT,
                "program: expected recompute=BYTES with a number of at least 1, got '" +
                    std::string(bytes) + "'");
  const bool may_have_gradient =
      context.passes_gradients && std::any_of(graph.steps.begin(), graph.steps.end(),
                                              [](const Step& step) { return step.is_recorded; });
  if (!may_have_gradient) {
    context.needs_disjoint_inputs = rematerialize(graph, budget, context.changes);
    return;
  }
  context.changes.push_back(
      "recompute: gradients may pass through the program, whose history would keep all results; "
      "nothing is made again");
}

void run_freeze(Graph& graph, PassContext& context) {
  if (context.argument.empty()) return freeze_leaves(graph);
  if (context.argument == "=share") return share_leaves(graph);
  throw Error(TENON_INVALID_ARGUMENT, "program: expected freeze or freeze=share, got 'freeze" +
                                          std::string(context.argument) + "'");
}

void run_fold(Graph& graph, PassContext& context) {
  if (!context.argument.empty() && context.argument != "=all")
    throw Error(TENON_INVALID_ARGUMENT, "program: expected fold or fold=all, got 'fold" +
                                            std::string(context.argument) + "'");
  fold_constants(graph, !context.argument.empty(), context.changes);
}

constexpr BuiltInPass kPasses[] = {
    {"dce", BuiltInPass::kNone, [](Graph& graph, PassContext&) { eliminate_dead_code(graph); }},
    {"cse", BuiltInPass::kNone,
     [](Graph& graph, PassContext& context) {
       eliminate_common_subexpressions(graph, context.passes_gradients);
     }},
    {"copies", BuiltInPass::kNone,
     [](Graph& graph, PassContext& context) { eliminate_copies(graph, context.passes_gradients); }},
    {"views", BuiltInPass::kNone, [](Graph& graph, PassContext&) { hoist_views(graph); }},
    {"rewrites", BuiltInPass::kOptional, run_rewrites},
    {"recompute", BuiltInPass::kNeeded, run_rematerialize},
    {"freeze", BuiltInPass::kOptional, run_freeze},
    {"fold", BuiltInPass::kOptional, run_fold},
    {"batch_norms", BuiltInPass::kNone,
     [](Graph& graph, PassContext& context) { fold_batch_norms(graph, context.changes); }},
};

}  // namespace

bool BuiltInPass::is_named_by(std::string_view text) const {
  const std::string_view behind = text.substr(std::min(text.size(), text.find_first_of("=!")));
  if (text.substr(0, text.size() - behind.size()) != name) return false;
  return argument == kOptional || (argument == kNone ? behind.empty() : behind.starts_with('='));
}

std::span<const BuiltInPass> built_in_passes() { return kPasses; }

}  // namespace tenon::graph
