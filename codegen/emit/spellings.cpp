// SPDX-License-Identifier: Apache-2.0
// What other libraries call operators, functions and keywords: the entries `names` and the file of
// names, as tables for Python and for its bindings.
#include "emit/emit.hpp"
#include "emit/python_text.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Table = std::map<std::string, std::map<std::string, std::string>>;  // sorted, for one text

// `NAME = {"torch": {"neg": "negative"}}`, with a comment above.
std::string table(const char* name, const char* comment, const Table& rows) {
  std::string text = cat("\n# ", comment, "\n", name, " = {\n");
  for (const auto& [library, names] : rows) {
    text += cat("    \"", library, "\": {\n");
    for (const auto& [theirs, ours] : names)
      text += cat("        ", python_string(theirs), ": ", python_string(ours), ",\n");
    text += "    },\n";
  }
  return text + "}\n";
}

std::string keyword_table(const char* name, const char* comment, const Package& package,
                          bool with_meant) {
  std::string text = cat("\n# ", comment, "\n", name, " = {\n");
  for (const Keyword& keyword : package.keywords) {
    std::vector<std::string> ours = keyword.takes;
    if (with_meant) ours.insert(ours.end(), keyword.means.begin(), keyword.means.end());
    if (ours.empty()) continue;
    text += cat("    ", python_string(keyword.name), ": (",
                join(ours, " ", [](const auto& each) { return cat(python_string(each), ","); }),
                "),\n");
  }
  return text + "}\n";
}

std::string method_table(const Package& package) {
  std::string text = "\n# Method of Tensor -> the library whose function it is.\nMETHODS = {\n";
  for (const auto& [library, names] : package.methods)
    for (const std::string& name : names)
      text += cat("    ", python_string(name), ": ", python_string(library), ",\n");
  return text + "}\n";
}

std::string python_tables(const Package& package) {
  Table operators, signatures, functions;
  const auto add = [&](const Names& names, const std::string& ours, Table& paths) {
    for (const auto& [library, spellings] : names)
      for (const Spelling& each : spellings) {
        paths[library][each.name] = ours;
        if (!each.signature.empty()) signatures[library][each.name] = each.signature;
      }
  };
  for (const Operator* op : package.emitted)
    if (op->is_public()) add(op->names, op->name, operators);
  for (const auto& [place, names] : package.functions) add(names, place, functions);
  return generated_line(package.files, "#") +
         "\"\"\"What other libraries call operators, functions and parameters.\"\"\"\n" +
         table("SPELLINGS", "Library -> name there -> operator.", operators) +
         table("FUNCTIONS", "Library -> name there -> what is no operator, by its path in `tenon`.",
               functions) +
         table("SIGNATURES", "Library -> name there -> the signature by which ours is called.",
               signatures) +
         keyword_table("TAKEN", "Keyword -> the parameters for which operators take it.", package,
                       false) +
         keyword_table("KEYWORDS", "Keyword -> the parameters that it means: those, and others.",
                       package, true) +
         method_table(package);
}

std::string pairs(const char* name, const char* comment,
                  const std::vector<std::pair<std::string, std::string>>& rows) {
  return cat("\n// ", comment, "\ninline constexpr std::array<Spelling, ", rows.size(), "> ", name,
             " = {{\n",
             join(rows, "",
                  [](const auto& row) {
                    return cat("    {", quoted(row.first), ", ", quoted(row.second), "},\n");
                  }),
             "}};\n");
}

std::string method_names(const Package& package) {
  std::vector<std::string> all;
  for (const auto& [library, names] : package.methods)
    all.insert(all.end(), names.begin(), names.end());
  return cat("\n// Methods that are functions of other libraries.\n",
             "inline constexpr std::array<const char*, ", all.size(), "> kMethods = {{\n",
             join(all, "", [](const auto& name) { return cat("    ", quoted(name), ",\n"); }),
             "}};\n");
}

std::string drawing_operators(const Package& package) {
  std::vector<std::string> names;
  for (const Operator* op : package.emitted)
    if (op->has_tag("draws")) names.push_back(op->name);
  return cat("\n// Operators that draw random numbers, or are made of some that do.\n",
             "inline constexpr std::array<const char*, ", names.size(), "> kDraws = {{\n",
             join(names, "", [](const auto& name) { return cat("    ", quoted(name), ",\n"); }),
             "}};\n");
}

std::vector<std::pair<std::string, std::string>> keyword_pairs(
    const Package& package, std::vector<std::string> Keyword::*ours) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Keyword& keyword : package.keywords)
    for (const std::string& each : keyword.*ours) rows.emplace_back(keyword.name, each);
  return rows;
}

std::string cpp_tables(const Package& package) {
  std::map<std::string, std::string> operators;
  for (const Operator* op : package.emitted)
    if (auto found = op->names.find("tenon"); found != op->names.end() && op->is_public())
      for (const Spelling& each : found->second) operators[each.name] = op->name;
  return cat(generated_line(package.files),
             "#pragma once\n\n#include <array>\n\nnamespace tenon::python {\n\n"
             "struct Spelling {\n  const char* theirs;\n  const char* ours;\n};\n",
             pairs("kOperatorSpellings", "Other names of operators, in `tenon` and as methods.",
                   {operators.begin(), operators.end()}),
             pairs("kTakenKeywords", "Keywords that operators take for parameters.",
                   keyword_pairs(package, &Keyword::takes)),
             pairs("kMeantKeywords", "Keywords that errors explain.",
                   keyword_pairs(package, &Keyword::means)),
             method_names(package), drawing_operators(package),
             "\n}  // namespace tenon::python\n");
}

}  // namespace

std::vector<OutputFile> emit_spellings(const Package& package, const EmitOptions&) {
  return {{"python/_spellings.py", python_tables(package)},
          {"python/spellings.hpp", cpp_tables(package)}};
}

}  // namespace tenon::codegen
