// SPDX-License-Identifier: Apache-2.0
#include "load/yaml_entry.hpp"

#include <algorithm>
#include <set>

#include "support/text.hpp"

namespace tenon::codegen {

YamlEntry::YamlEntry(YAML::Node node, const std::string& file, std::string what)
    : node_(std::move(node)), file_(file), what_(std::move(what)) {
  if (!node_.IsMap()) fail(node_, cat("expected ", what_, " as a mapping `key: value`"));
}

void YamlEntry::check_keys(const std::vector<std::string>& known) const {
  std::set<std::string> seen;
  for (const auto& item : node_) {
    std::string key = item.first.Scalar();
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(item.first, cat("unknown key `", key, "` in ", what_, did_you_mean(key, known)));
    if (!seen.insert(key).second) fail(item.first, cat("key `", key, "` is given twice"));
  }
}

YAML::Node YamlEntry::find(const std::string& key) const {
  for (const auto& item : node_)
    if (item.first.Scalar() == key) return item.second;
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node YamlEntry::require(const std::string& key) const {
  YAML::Node value = find(key);
  if (!value) fail(node_, cat("expected the key `", key, "` in ", what_));
  return value;
}

std::string YamlEntry::text(const std::string& key) const { return scalar(require(key), key); }

std::string YamlEntry::text_or(const std::string& key, const std::string& otherwise) const {
  YAML::Node value = find(key);
  return value ? scalar(value, key) : otherwise;
}

bool YamlEntry::flag_or(const std::string& key, bool otherwise) const {
  YAML::Node value = find(key);
  if (!value) return otherwise;
  std::string text = scalar(value, key);
  if (text != "true" && text != "false")
    fail(value, cat("`", key, "`: expected true or false, got `", text, "`"));
  return text == "true";
}

std::vector<std::pair<std::string, YAML::Node>> YamlEntry::items() const {
  std::vector<std::pair<std::string, YAML::Node>> result;
  for (const auto& item : node_) result.emplace_back(item.first.Scalar(), item.second);
  return result;
}

Location YamlEntry::where(const std::string& key) const {
  YAML::Node value = find(key);
  return value ? location(value) : where();
}

Location YamlEntry::location(const YAML::Node& node) const {
  return {file_, node.Mark().is_null() ? 1 : node.Mark().line + 1};
}

void YamlEntry::fail(const YAML::Node& node, const std::string& text) const {
  throw Error(location(node), text);
}

std::string YamlEntry::scalar(const YAML::Node& node, const std::string& key) const {
  if (node.IsNull()) fail(node, cat("`", key, "`: expected a value, got nothing"));
  if (!node.IsScalar())
    fail(node, cat("`", key, "`: expected text, got a ", node.IsMap() ? "mapping" : "list",
                   "; put quotes around text that starts with `[` or `{`, or contains `: `"));
  return node.Scalar();
}

std::vector<std::pair<std::string, Location>> YamlEntry::scalars(const YAML::Node& node,
                                                                 const std::string& key) const {
  std::vector<std::pair<std::string, Location>> result;
  if (!node.IsSequence()) {
    result.emplace_back(scalar(node, key), location(node));
    return result;
  }
  for (const YAML::Node& item : node) result.emplace_back(scalar(item, key), location(item));
  if (result.empty()) fail(node, cat("`", key, "`: expected at least one item"));
  return result;
}

}  // namespace tenon::codegen
