// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "expression/parser.hpp"
#include "load/yaml_entry.hpp"
#include "onnx/onnx.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

int64_t number_of(const std::string& text, const Location& where) {
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 1)
    throw Error(where, cat("`since`: expected an opset, got `", text, "`"));
  return number;
}

OnnxLine read_import(const YAML::Node& node, const std::string& path) {
  YamlEntry entry(node, path, "an import");
  entry.check_keys({"onnx", "since", "import", "native"});
  OnnxLine line;
  line.where = entry.where();
  line.name = entry.text("onnx");
  line.since = number_of(entry.text_or("since", "1"), line.where);
  if (entry.has("native") == entry.has("import"))
    throw Error(line.where, "expected `import` or `native`, one of both");
  line.is_native = entry.has("native");
  if (line.is_native) {
    line.text = entry.text("native");
    return line;
  }
  std::vector<std::string> steps;
  for (const auto& [text, where] : entry.scalars(entry.find("import"), "import")) {
    parse_step(text, where, "import");
    steps.push_back(text);
  }
  line.text = join(steps, "\n");
  return line;
}

void read_refusal(const YAML::Node& node, const std::string& path, OnnxTable& table) {
  YamlEntry entry(node, path, "a refusal");
  entry.check_keys({"onnx", "since", "reason"});
  OnnxRefusal refusal;
  refusal.where = entry.where();
  refusal.name = entry.text("onnx");
  refusal.reason = entry.text("reason");
  if (!entry.has("since")) return table.refusals.push_back(refusal);
  for (const auto& [text, where] : entry.scalars(entry.find("since"), "since")) {
    refusal.since = number_of(text, where);
    table.refusals.push_back(refusal);
  }
}

}  // namespace

void load_onnx_schemas(const std::string& path, OnnxTable& table,
                       std::vector<std::string>& errors) {
  std::ifstream file(path);
  if (!file) errors.push_back(cat(path, ":1: cannot read this file"));
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') table.schemas.push_back(line);
}

void load_onnx(const std::string& path, OnnxTable& table, std::vector<std::string>& errors) {
  try {
    YamlEntry file(YAML::LoadFile(path), path, "a file of imports");
    file.check_keys({"imports", "refused"});
    if (file.has("imports"))
      for (const YAML::Node& node : file.find("imports")) {
        try {
          table.lines.push_back(read_import(node, path));
        } catch (const Error& error) {
          errors.push_back(error.what());
        }
      }
    if (file.has("refused"))
      for (const YAML::Node& node : file.find("refused")) read_refusal(node, path, table);
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
  } catch (const std::exception& error) {
    errors.push_back(error.what());
  }
}

}  // namespace tenon::codegen
