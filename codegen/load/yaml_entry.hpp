// SPDX-License-Identifier: Apache-2.0
// A YAML mapping read strictly: every key must be known, every value of the expected form.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>
#include <vector>

#include "support/location.hpp"

namespace tenon::codegen {

class YamlEntry {
 public:
  // `what` names the mapping in messages: "an operator", "dtypes".
  YamlEntry(YAML::Node node, const std::string& file, std::string what);

  // Refuse keys that are not among these, and keys given twice.
  void check_keys(const std::vector<std::string>& known) const;

  bool has(const std::string& key) const { return static_cast<bool>(find(key)); }
  YAML::Node find(const std::string& key) const;
  YAML::Node require(const std::string& key) const;
  std::string text(const std::string& key) const;  // require, and it must be a scalar
  std::string text_or(const std::string& key, const std::string& otherwise) const;
  bool flag_or(const std::string& key, bool otherwise) const;
  std::vector<std::pair<std::string, YAML::Node>> items() const;

  Location where() const { return location(node_); }
  Location where(const std::string& key) const;
  Location location(const YAML::Node& node) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& text) const;

  // A scalar's text; refuses lists and mappings.
  std::string scalar(const YAML::Node& node, const std::string& key) const;
  // A scalar, or a list of scalars, as a list with the line of each.
  std::vector<std::pair<std::string, Location>> scalars(const YAML::Node& node,
                                                        const std::string& key) const;

 private:
  YAML::Node node_;
  std::string file_;
  std::string what_;
};

}  // namespace tenon::codegen
