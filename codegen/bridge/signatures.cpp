// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "bridge/bridge.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Parts between the commas outside of brackets and texts.
std::vector<std::string> split_parameters(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  char quote = 0;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(trimmed(part));
      part.clear();
      continue;
    }
    part += c;
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

ForeignSignature parse_line(std::string line, const Location& where) {
  ForeignSignature signature;
  constexpr std::string_view kCore = "core ";
  signature.is_core = line.starts_with(kCore);
  if (signature.is_core) line = line.substr(kCore.size());
  const size_t open = line.find('('), close = line.rfind(") -> ");
  if (open == std::string::npos || close == std::string::npos || close < open)
    throw Error(where, cat("expected `name(parameters) -> results`, got `", line, "`"));
  signature.name = line.substr(0, open);
  for (const std::string& text : split_parameters(line.substr(open + 1, close - open - 1))) {
    if (text == "*") continue;
    const size_t space = text.find(' ');
    if (space == std::string::npos)
      throw Error(where, cat("expected `type name` as a parameter, got `", text, "`"));
    ForeignParam param;
    param.type = text.substr(0, space);
    const size_t equal = text.find('=', space);
    param.name = text.substr(space + 1, equal == std::string::npos ? equal : equal - space - 1);
    if (equal != std::string::npos) param.default_text = text.substr(equal + 1);
    signature.params.push_back(std::move(param));
  }
  return signature;
}

}  // namespace

const ForeignParam* ForeignSignature::find(const std::string& wanted) const {
  for (const ForeignParam& param : params)
    if (param.name == wanted) return &param;
  return nullptr;
}

ForeignSignatures load_signatures(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error({path, 1}, "cannot read this file of signatures");
  ForeignSignatures signatures;
  Location where{path, 0};
  for (std::string line; std::getline(file, line);) {
    ++where.line;
    if (line.empty() || line[0] == '#') continue;
    ForeignSignature signature = parse_line(line, where);
    std::string name = signature.name;
    if (!signatures.emplace(name, std::move(signature)).second)
      throw Error(where, cat("`", name, "` is there already"));
  }
  return signatures;
}

}  // namespace tenon::codegen
