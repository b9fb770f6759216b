// SPDX-License-Identifier: Apache-2.0
#include "load/earlier.hpp"

#include <algorithm>
#include <map>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Words = std::map<std::string, std::string>;

Words read_words(const YamlEntry& map, const std::string& key) {
  Words words;
  if (!map.has(key)) return words;
  for (const auto& [name, value] : YamlEntry(map.find(key), map.where().file, key).items())
    words[name] = map.scalar(value, cat("earlier.", key));
  return words;
}

// As programs write it: texts stand in double quotes.
std::string as_in_programs(std::string text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
    text = cat("\"", text.substr(1, text.size() - 2), "\"");
  return text;
}

struct Change {
  const Operator& op;
  Signature before;
  Words renamed, values;  // `renamed`, and `with`
  Location where;

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(where, cat("`earlier`: ", problem));
  }

  // The parameter of now that takes what `param` took.
  int index_of(const Param& param) const {
    const auto found = renamed.find(param.name);
    return op.signature.find_param(found == renamed.end() ? param.name : found->second);
  }

  std::string line() const {
    const std::string schema = op.qualified_name() + before.canonical();
    if (schema == op.schema()) fail("this is the signature of now; leave it out");
    if (before.results.size() != op.signature.results.size())
      fail("expected as many results as the operator has now");
    std::string text = hex64(fnv1a(schema)).substr(2);
    Words written = values;
    std::vector<bool> is_known(op.signature.params.size());
    for (size_t i = 0; i < before.params.size(); ++i) {
      const Param& old = before.params[i];
      const int index = index_of(old);
      if (index < 0)
        fail(cat("expected a parameter that takes what `", old.name,
                 "` took; name it in `renamed: {", old.name, ": ...}`"));
      const Param& now = op.signature.params[static_cast<size_t>(index)];
      is_known[static_cast<size_t>(index)] = true;
      if (old.holds_tensors() != now.holds_tensors() ||
          (old.holds_tensors() && index != static_cast<int>(i)))
        fail(cat("expected `", old.name,
                 "` at its old place: programs write tensors without names"));
      if (old.default_value && old.default_text != now.default_text)
        written.emplace(now.name, old.default_text);
      if (old.name != now.name) text += cat(" ", old.name, "->", now.name);
    }
    for (size_t i = 0; i < op.signature.params.size(); ++i) {
      const Param& now = op.signature.params[i];
      if (!is_known[i] && !now.default_value && !now.optional && !written.count(now.name))
        fail(cat("expected what `", now.name, "` is for an earlier call; say so in `with: {",
                 now.name, ": ...}`"));
    }
    for (const auto& [name, value] : written) {
      if (op.signature.find_param(name) < 0) fail(cat("`with`: no parameter `", name, "`"));
      text += cat(" ", name, "=", as_in_programs(value));
    }
    return text;
  }
};

}  // namespace

void read_earlier(const YamlEntry& entry, Operator& op) {
  if (!entry.has("earlier")) return;
  const YAML::Node list = entry.find("earlier");
  if (!list.IsSequence() || list.size() == 0)
    entry.fail(list, "`earlier`: expected a list of signatures");
  for (const YAML::Node& node : list) {
    Change change{op, {}, {}, {}, entry.location(node)};
    if (node.IsMap()) {
      YamlEntry map(node, op.file, "earlier");
      map.check_keys({"sig", "renamed", "with"});
      change.before = parse_signature(map.text("sig"), map.where("sig"));
      change.renamed = read_words(map, "renamed");
      change.values = read_words(map, "with");
    } else {
      change.before = parse_signature(entry.scalar(node, "earlier"), change.where);
    }
    for (const auto& [before, now] : change.renamed)
      if (change.before.find_param(before) < 0 || op.signature.find_param(now) < 0)
        change.fail(cat("`renamed`: expected a parameter of then and one of now, got `", before,
                        ": ", now, "`"));
    op.earlier.push_back(change.line());
  }
}

}  // namespace tenon::codegen
