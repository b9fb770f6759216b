// SPDX-License-Identifier: Apache-2.0
#include "passes/registry.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "ir/verify.hpp"
#include "passes/built_in_passes.hpp"
#include "passes/editor.hpp"

namespace tenon::graph {
namespace {

struct Passes {
  std::mutex mutex;
  std::map<std::string, tenon_graph_pass, std::less<>> by_name;
};
Passes& passes() {
  static Passes passes;
  return passes;
}

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

void add_pass(const tenon_graph_pass& pass) {
  const std::string name = pass.name ? pass.name : "";
  if (!is_name(name) || !pass.run)
    throw Error(
        TENON_INVALID_ARGUMENT,
        "pass: expected a name of letters, digits and _, and a function, got '" + name + "'");
  Passes& known = passes();
  const std::lock_guard lock(known.mutex);
  const auto built_in = built_in_passes();
  const bool is_built_in = std::any_of(built_in.begin(), built_in.end(),
                                       [&](const BuiltInPass& each) { return each.name == name; });
  if (is_built_in || !known.by_name.try_emplace(name, pass).second)
    throw Error(TENON_ALREADY_EXISTS, "pass `" + name + "` exists already; choose another name");
}

void remove_pass(std::string_view name) {
  Passes& known = passes();
  const std::lock_guard lock(known.mutex);
  auto found = known.by_name.find(name);
  if (found == known.by_name.end())
    throw Error(TENON_NOT_FOUND, "there is no pass `" + std::string(name) + "` of a plugin");
  known.by_name.erase(found);
}

bool has_pass(std::string_view name) {
  Passes& known = passes();
  const std::lock_guard lock(known.mutex);
  return known.by_name.contains(name);
}

void run_pass(std::string_view name, Graph& graph) {
  tenon_graph_pass pass = {};
  {
    Passes& known = passes();
    const std::lock_guard lock(known.mutex);
    pass = known.by_name.find(name)->second;
  }
  const std::string context = "pass `" + std::string(name) + "`: ";
  tenon_graph_editor editor(graph);
  const ErrorSink err;
  if (const tenon_status status = pass.run(pass.user, &editor, &kEditor, err); status != TENON_OK)
    throw Error(status, context + host->err_text(err));
  try {
    verify(graph);
  } catch (const Error& error) {
    throw Error(TENON_INTERNAL, context + "it left a program that cannot run: " + error.what());
  }
}

std::string pass_names() {
  std::string text;
  for (const BuiltInPass& each : built_in_passes())
    text += (text.empty() ? "" : ", ") + std::string(each.name);
  Passes& known = passes();
  const std::lock_guard lock(known.mutex);
  for (const auto& [name, pass] : known.by_name) text += ", " + name;
  return text;
}

}  // namespace tenon::graph
