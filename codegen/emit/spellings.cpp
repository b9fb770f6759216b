// SPDX-License-Identifier: Apache-2.0
// What operators are called elsewhere: the entries `names`, as a table for the namespaces in
// tenon.compat.
#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {

std::vector<OutputFile> emit_spellings(const Package& package, const EmitOptions&) {
  std::map<std::string, std::map<std::string, std::string>> tables;  // sorted, for one text
  for (const Operator* op : package.emitted)
    if (op->is_public())
      for (const auto& [ecosystem, names] : op->names)
        for (const std::string& name : names) tables[ecosystem][name] = op->name;
  std::string text = generated_line(package.files, "#");
  text += "\"\"\"Operators by their names in other libraries.\"\"\"\n\nSPELLINGS = {\n";
  for (const auto& [ecosystem, names] : tables) {
    text += cat("    \"", ecosystem, "\": {\n");
    for (const auto& [name, own] : names) text += cat("        \"", name, "\": \"", own, "\",\n");
    text += "    },\n";
  }
  return {{"python/_spellings.py", text + "}\n"}};
}

}  // namespace tenon::codegen
