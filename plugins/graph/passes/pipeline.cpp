// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "passes/built_in_passes.hpp"
#include "passes/registry.hpp"

namespace tenon::graph {

bool run_passes(std::string_view names, Graph& graph, bool passes_gradients,
                std::vector<std::string>& changes) {
  bool needs_disjoint = false;
  while (!names.empty()) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    const auto known = built_in_passes();
    const auto pass = std::find_if(known.begin(), known.end(),
                                   [&](const BuiltInPass& each) { return each.is_named_by(name); });
    if (pass != known.end()) {
      PassContext context = {.argument = name.substr(pass->name.size()),
                             .passes_gradients = passes_gradients,
                             .changes = changes};
      pass->run(graph, context);
      needs_disjoint |= context.needs_disjoint_inputs;
    } else if (has_pass(name)) {
      const size_t before = graph.steps.size();
      run_pass(name, graph);
      changes.push_back("pass " + std::string(name) + ": of " + std::to_string(before) + " steps " +
                        std::to_string(graph.steps.size()) + " are left");
    } else {
      throw Error(TENON_INVALID_ARGUMENT, "program: expected passes among " + pass_names() +
                                              ", got '" + std::string(name) + "'");
    }
  }
  return needs_disjoint;
}

}  // namespace tenon::graph
