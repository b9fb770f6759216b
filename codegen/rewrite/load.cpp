// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "binding/property.hpp"
#include "expression/parser.hpp"
#include "load/yaml_entry.hpp"
#include "rewrite/rewrite.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// `x * 2`, or a list of `name = expression` with the result last; each of them follows the grammar.
std::string read_side(const YamlEntry& entry, const YAML::Node& side, const std::string& key) {
  std::string text;
  const auto steps = entry.scalars(side, key);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step step = parse_step(steps[i].first, steps[i].second, key);
    if (step.name.empty() != (i + 1 == steps.size()))
      throw Error(steps[i].second,
                  cat("`", key, "`: expected `name = expression` for all but the last step, got `",
                      steps[i].first, "`"));
    text += (i ? "\n" : "") + steps[i].first;
  }
  return text;
}

// "exact", "ulp 2", "fast 8"
void read_numerics(const YamlEntry& entry, Rewrite& rewrite) {
  const std::string text = entry.text("numerics");
  const size_t space = text.find(' ');
  const std::string level = text.substr(0, space);
  char* end = nullptr;
  const std::string units = space == std::string::npos ? "" : text.substr(space + 1);
  rewrite.units = units.empty() ? 0 : std::strtod(units.c_str(), &end);
  const bool is_number = units.empty() || (*end == '\0' && rewrite.units > 0);
  const bool is_known =
      level == "exact" ? units.empty() : (level == "ulp" || level == "fast") && !units.empty();
  if (!is_known || !is_number)
    throw Error(
        entry.where("numerics"),
        cat("`numerics`: expected `exact`, `ulp K` or `fast K` with a number of units K, got `",
            text, "`"));
  rewrite.numerics = cat("TENON_GRAPH_", upper_case(level));
}

// An entry: one rewrite, and one for each other way to write its source.
std::vector<Rewrite> read_entry(const YAML::Node& node, const std::string& path) {
  YamlEntry entry(node, path, "a rewrite");
  entry.check_keys({"rewrite", "from", "also", "to", "numerics", "dtypes"});
  Rewrite rewrite;
  rewrite.where = entry.where();
  rewrite.name = entry.text("rewrite");
  rewrite.from = read_side(entry, entry.require("from"), "from");
  rewrite.to = read_side(entry, entry.require("to"), "to");
  read_numerics(entry, rewrite);
  if (entry.has("dtypes"))
    rewrite.dtypes = read_dtypes(entry.text("dtypes"), entry.where("dtypes"), "dtypes");
  std::vector<Rewrite> rewrites = {rewrite};
  if (entry.has("also"))
    for (const YAML::Node& other : entry.find("also")) {
      rewrites.push_back(rewrite);
      rewrites.back().from = read_side(entry, other, "also");
      rewrites.back().name = cat(rewrite.name, ".", rewrites.size());
    }
  return rewrites;
}

}  // namespace

void load_rewrites(const std::string& path, std::vector<Rewrite>& rewrites,
                   std::vector<std::string>& errors) {
  try {
    YamlEntry file(YAML::LoadFile(path), path, "a file of rewrites");
    file.check_keys({"rewrites"});
    for (const YAML::Node& node : file.require("rewrites")) {
      std::vector<Rewrite> entry = read_entry(node, path);
      const bool is_taken =
          std::any_of(rewrites.begin(), rewrites.end(),
                      [&](const Rewrite& known) { return known.name == entry[0].name; });
      if (is_taken) throw Error(entry[0].where, cat("`", entry[0].name, "` is there already"));
      for (Rewrite& rewrite : entry) rewrites.push_back(std::move(rewrite));
    }
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
  } catch (const std::exception& error) {
    errors.push_back(error.what());
  }
}

}  // namespace tenon::codegen
